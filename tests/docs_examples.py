"""Runs the code blocks of the documentation and compares what they print with what the pages say.

Blocks are run in the order of the page:

- `python`: executed; must print nothing.
- `pycon`: a Python session; names live on to the end of the page.
- `console`: lines after `$ ` are commands, run in the root folder of the repository; the lines that follow are
  what they print. Commands that take minutes or need a GPU are not run but looked at: `make` targets with
  `make -n`, pytest with `--collect-only`.

A file that a Python block defines functions in is the page itself, so errors in it are reported at real lines.
`...` stands for any text. `<!-- needs a toolkit -->` above a block skips it where no toolkit of the pinned
release is installed.

`python tests/docs_examples.py --update` writes what the examples print into the pages.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import linecache
import os
import re
import shlex
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
TOOLKIT = "<!-- needs a toolkit -->"
RUNNABLE = ("python", "pycon", "console")
SLOW = ("render", "install")

_FENCE = re.compile(r"^```(?P<language>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: `line` is that of its first line of code, counted from 1; `start` its place in the text."""

    language: str
    body: str
    line: int
    start: int
    needs_toolkit: bool


@dataclass(frozen=True)
class Example:
    """Something run: what the page says it prints, what it printed, and where the former stands in the page."""

    line: int
    source: str
    want: str
    got: str
    span: tuple[int, int]

    @property
    def ok(self) -> bool:
        return doctest.OutputChecker().check_output(self.want, self.got, doctest.ELLIPSIS)


def blocks(text: str) -> Iterator[Block]:
    """The code blocks of a page; MyST directives such as toctree are none."""
    for match in _FENCE.finditer(text):
        if match["language"].startswith("{"):
            continue
        start = match.start("body")
        above = text[: match.start()].rstrip().rsplit("\n", 1)[-1]
        yield Block(match["language"], match["body"], text.count("\n", 0, start) + 1, start, above == TOOLKIT)


def run_page(path: Path, text: str, toolkit: bool, environment: dict[str, str]) -> list[Example]:
    """Run a page's blocks.

    Args:
        toolkit: run the blocks that need one.
        environment: of the commands.
    """
    session = Session(path.name, text)
    examples: list[Example] = []
    for block in blocks(text):
        if block.needs_toolkit and not toolkit:
            continue
        if block.language == "console":
            examples += run_console(block, environment)
        elif block.language in RUNNABLE:
            examples += session.run(block)
        elif block.language == "text":
            continue  # shows what something looks like; nothing in it is code
        else:
            raise ValueError(f"{path.name}:{block.line}: a block of {block.language or 'no language'} cannot be run")
    return examples


class Session:
    """The Python blocks of one page, as one module whose lines are those of the page."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.lines = [""] * (text.count("\n") + 1)
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def run(self, block: Block) -> list[Example]:
        if block.language == "python":
            got = self._execute(block.body, block.line, "exec")
            return [Example(block.line, block.body, "", got, (block.start, block.start))]
        return [self._session_example(block, e) for e in doctest.DocTestParser().get_examples(block.body)]

    def _session_example(self, block: Block, example: doctest.Example) -> Example:
        line = block.line + example.lineno
        after = example.lineno + example.source.count("\n")
        offsets = [0]
        for text in block.body.splitlines(keepends=True):
            offsets.append(offsets[-1] + len(text))
        begin = block.start + offsets[after]
        want = example.want
        got = self._execute(example.source, line, "single")
        return Example(line, example.source, want, got, (begin, begin + len(want)))

    def _execute(self, source: str, line: int, mode: str) -> str:
        """Run code whose first line is `line` of the page; gives what it prints, or how it fails."""
        code = source.splitlines()
        self.lines[line - 1 : line - 1 + len(code)] = code
        text = [each + "\n" for each in self.lines]
        linecache.cache[self.name] = (sum(map(len, text)), None, text, self.name)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile("\n" * (line - 1) + source, self.name, mode), self.names)
            except Exception as error:
                words = "".join(traceback.format_exception_only(error))
                printed.write("Traceback (most recent call last):\n    ...\n" + words)
        return printed.getvalue()


def run_console(block: Block, environment: dict[str, str]) -> list[Example]:
    """Run the commands of a console block."""
    examples: list[Example] = []
    place = block.start
    command, line, begin = "", block.line, place
    want = ""
    for number, text in enumerate(block.body.splitlines(keepends=True), start=block.line):
        if text.startswith("$ "):
            if command:
                examples.append(_command(command, line, want, (begin, place), environment))
            command, line, begin, want = text[2:].strip(), number, place + len(text), ""
        else:
            want += text
        place += len(text)
    if not command:
        raise ValueError(f"line {block.line}: a console block has no line that starts with '$ '")
    return [*examples, _command(command, line, want, (begin, place), environment)]


def _command(command: str, line: int, want: str, span: tuple[int, int], environment: dict[str, str]) -> Example:
    words = shlex.split(command.partition("  #")[0])
    looked_at = rehearse(words)
    done = subprocess.run(
        looked_at or _with_this_python(words),
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
    )
    # What the page says a long command prints cannot be compared; that the command exists can.
    got = want if looked_at and done.returncode == 0 else done.stdout
    return Example(line, command, want, got, span)


def rehearse(words: list[str]) -> list[str] | None:
    """A command that says quickly whether a long command would start; None for short commands."""
    if words[0] == "make":
        return ["make", "-n", f"PY={sys.executable}", *words[1:]]
    if words[0] == "pytest":
        return [sys.executable, "-m", "pytest", "--collect-only", "-q", *words[1:]]
    if words[:2] == ["python", "-m"] and words[2] in ("repro", "stencil_dsl.toolchain") and words[3] in SLOW:
        return [sys.executable, *words[1:4], "--help"]
    if words[0] in ("git", "cd", "rsync"):
        return ["true"]
    return None


def _with_this_python(words: list[str]) -> list[str]:
    return [sys.executable, *words[1:]] if words[0] == "python" else words


def has_toolkit() -> bool:
    """Whether the toolkit of the release that the pages show is installed."""
    from stencil_dsl import StencilError
    from stencil_dsl.toolchain.builder import usable_toolkit

    try:
        return usable_toolkit(None).name == "13.5"
    except StencilError:
        return False


def environment(cache: Path) -> dict[str, str]:
    """For commands: a kernel cache of their own, no colours, no width of a terminal."""
    return os.environ | {"STENCIL_DSL_CACHE": str(cache), "NO_COLOR": "1", "COLUMNS": "110"}


def update(path: Path, cache: Path) -> int:
    """Write what the examples of a page print into it, where it differs; gives how many changed."""
    changed = 0
    # Once more while something changes: errors name lines of the page, which move with it.
    for _ in range(5):
        text = path.read_text()
        wrong = [e for e in run_page(path, text, has_toolkit(), environment(cache)) if not e.ok]
        for example in reversed(wrong):
            begin, end = example.span
            text = text[:begin] + example.got + text[end:]
        path.write_text(text)
        changed = max(changed, len(wrong))
        if not wrong:
            break
    return changed


if __name__ == "__main__":
    import tempfile

    if sys.argv[1:2] != ["--update"]:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        for page in map(Path, sys.argv[2:]) if sys.argv[2:] else PAGES:
            print(f"{page}: {update(page.resolve(), Path(folder))} examples changed")
