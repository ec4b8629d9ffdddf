"""What a tool set refused to compile, kept beside the kernels of the cache.

A machine that has only the cache cannot ask the tools, and "not in the cache" would say nothing: there a kept refusal
is the answer, in the tool's own words. Where the tools are at hand they are asked again.

A refusal is the file `<request>/<tool set>.refused.json`; it goes when the same tools make the kernel after all.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stencil_dsl.errors import ToolchainError
from stencil_dsl.toolchain.kit import Toolkit
from stencil_dsl.toolchain.paths import anonymous
from stencil_dsl.toolchain.process import ToolError

_SUFFIX = ".refused.json"


@dataclass(frozen=True)
class Refusal:
    """One tool set's refusal.

    Attributes:
        toolset: key of the tools.
        tool_versions: tool name to version.
        message: the error's text.
        tool, returncode: of the tool that failed; None where no tool was run.
    """

    toolset: str
    tool_versions: dict[str, str]
    message: str
    tool: str | None = None
    returncode: int | None = None

    def error(self) -> ToolchainError:
        """The error as it was raised where the tools were."""
        if self.tool is None:
            return ToolchainError(self.message)
        return ToolError(self.message, tool=self.tool, returncode=self.returncode)


def is_refusal(error: ToolchainError) -> bool:
    """Whether asking the same tools again gives the same answer: no time-out, no crash, no broken installation."""
    if isinstance(error, ToolError):
        return error.returncode is not None and error.returncode > 0
    return not isinstance(error.__cause__, ImportError)


def keep(folder: Path, toolkit: Toolkit, error: ToolchainError) -> None:
    """Write a refusal into a request's folder; does nothing where that is not possible."""
    tool, status = (error.tool, error.returncode) if isinstance(error, ToolError) else (None, None)
    write(folder, Refusal(toolkit.key, toolkit.versions.as_dict(), anonymous(str(error)), tool, status))


def write(folder: Path, refusal: Refusal) -> None:
    """The file of a refusal, as a whole."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f".{os.getpid()}-{secrets.token_hex(4)}.part"
        part.write_text(json.dumps(asdict(refusal), indent=1, sort_keys=True))
        os.replace(part, folder / f"{refusal.toolset}{_SUFFIX}")


def forget(folder: Path, toolset: str) -> None:
    """The tools made the kernel after all."""
    with contextlib.suppress(OSError):
        (folder / f"{toolset}{_SUFFIX}").unlink(missing_ok=True)


def read(folder: Path) -> list[Refusal]:
    """All refusals of a request; damaged files count as absent."""
    found = []
    for file in sorted(folder.glob(f"*{_SUFFIX}")):
        with contextlib.suppress(OSError, ValueError, TypeError):
            values: dict[str, Any] = json.loads(file.read_text())
            found.append(Refusal(**values))
    return found
