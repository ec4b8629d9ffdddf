"""The errors a user of the compiler can meet; every one says what is allowed instead."""

from __future__ import annotations


class StencilError(Exception):
    """Base of all errors raised on purpose by this package."""


class FrontendError(StencilError):
    """A Python function cannot be read as a stencil.

    Attributes:
        filename, line, col: place of the offending expression (line from 1, column from 0).
        source_line: text of that line, or None where the source is not available.
        advice: what is allowed instead.
    """

    def __init__(
        self,
        message: str,
        *,
        filename: str = "<unknown>",
        line: int = 0,
        col: int = 0,
        end_col: int | None = None,
        source_line: str | None = None,
        advice: str = "",
    ) -> None:
        self.message = message
        self.filename = filename
        self.line = line
        self.col = col
        self.source_line = source_line
        self.advice = advice
        text = f"{filename}:{line}:{col + 1}: {message}"
        if source_line is not None:
            width = max(1, (end_col or col + 1) - col)
            text += f"\n    {source_line.rstrip()}\n    {' ' * col}{'^' * width}"
        if advice:
            text += f"\n  instead: {advice}"
        super().__init__(text)


class ScheduleError(StencilError):
    """A schedule is not legal for a stencil, a shape or a target."""


class ToolchainError(StencilError):
    """A tool is missing, does not match its companions, or failed.

    Attributes:
        command: the command line that failed, if one was run.
        stderr: what the tool printed.
        versions: tool name to version, as far as known.
    """

    def __init__(
        self,
        message: str,
        *,
        command: str | None = None,
        stderr: str = "",
        versions: dict[str, str] | None = None,
    ) -> None:
        self.command = command
        self.stderr = stderr
        self.versions = dict(versions or {})
        text = message
        if command:
            text += f"\n  command: {command}"
        if self.versions:
            text += "\n  versions: " + ", ".join(f"{k} {v}" for k, v in self.versions.items())
        if stderr.strip():
            text += "\n  output:\n    " + "\n    ".join(stderr.strip().splitlines()[-20:])
        super().__init__(text)


class GpuUnavailableError(StencilError):
    """A device was asked for and none can be used."""
