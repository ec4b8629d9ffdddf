"""Runs one tool: its words, its return code, its time limit, and nothing left running."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stencil_dsl.errors import ToolchainError


class ToolError(ToolchainError):
    """A tool ran and failed.

    Attributes:
        tool: name of the tool, for example "tileiras".
        returncode: its exit status (negative: the signal that ended it); None where it ran out of time.
    """

    def __init__(
        self,
        message: str,
        *,
        tool: str,
        returncode: int | None,
        command: str | None = None,
        stderr: str = "",
        versions: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message, command=command, stderr=stderr, versions=versions)
        self.tool = tool
        self.returncode = returncode

    def __reduce__(self) -> tuple:
        return _restored, (str(self), self.__dict__)


def _restored(text: str, attributes: dict) -> ToolError:
    """A ToolError that comes from another process, with the text that it had there."""
    error = ToolError.__new__(ToolError, text)
    error.args = (text,)
    error.__dict__.update(attributes)
    return error


@dataclass(frozen=True)
class Finished:
    """What a tool that ended with status 0 printed."""

    stdout: str
    stderr: str


def run_tool(
    command: Sequence[str],
    *,
    tool: str,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    timeout: float | None = None,
    versions: dict[str, str] | None = None,
    advice: str = "",
) -> Finished:
    """Run `command`; raises ToolError on a missing file, a non-zero status or after `timeout` seconds.

    The tool gets a process group of its own, and on a time-out or an interrupt the whole group ends:
    tileiras starts ptxas, which would go on alone.
    """
    shown = shlex.join(command)

    def failure(message: str, returncode: int | None, words: str) -> ToolError:
        return ToolError(
            message + (f"; {advice}" if advice else ""),
            tool=tool,
            returncode=returncode,
            command=shown,
            stderr=words,
            versions=versions,
        )

    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if env is None else dict(env),
            cwd=cwd,
            start_new_session=True,
        )
    except OSError as error:
        raise failure(f"{tool} could not be started: {error}", None, "") from error
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        end_group(process)
        out, err = process.communicate()
        words = (err + out).decode(errors="replace")
        raise failure(f"{tool} was ended after its time limit of {timeout:g} s", None, words) from None
    except BaseException:
        end_group(process)
        process.wait()
        raise
    stdout, stderr = out.decode(errors="replace"), err.decode(errors="replace")
    if process.returncode != 0:
        status = process.returncode
        how = f"return code {status}" if status > 0 else f"signal {-status}"
        raise failure(f"{tool} failed with {how}", status, stderr + stdout)
    return Finished(stdout, stderr)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that was started in its own session, and everything in its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        process.kill()
