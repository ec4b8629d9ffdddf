"""Runs the FileCheck tests below this folder: `*.mlir` files with RUN lines, as lit would.

A RUN line is `python -m stencil_dsl.opt %s ARGS | filecheck %s ARGS`. Both programs run inside this
process, which saves two starts of Python a line.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser

from stencil_dsl.opt import OptMain

HERE = Path(__file__).parent
DRIVER = ["python", "-m", "stencil_dsl.opt"]
FILES = sorted(HERE.rglob("*.mlir"))
RUN = re.compile(r"^//\s*RUN:\s*(.+)$", re.MULTILINE)


def run_lines(path: Path) -> list[str]:
    return [line.replace("%s", str(path)) for line in RUN.findall(path.read_text())]


def execute(line: str) -> None:
    """Run one pipeline of driver and filecheck; AssertionError with both outputs where it does not match."""
    commands = [shlex.split(part) for part in line.split("|")]
    assert len(commands) == 2, f"expected DRIVER | filecheck, got: {line}"
    driver, check = commands
    assert driver[: len(DRIVER)] == DRIVER and check[0] == "filecheck", line
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        OptMain(args=driver[len(DRIVER) :]).run()
    options = parse_argv_options(check)
    report = io.StringIO()
    with contextlib.redirect_stdout(report), contextlib.redirect_stderr(report):
        matcher = Matcher(options, FInput("-", printed.getvalue()), Parser.from_opts(options))
        status = matcher.run()
    assert status == 0, f"{line}\n{report.getvalue()}\n--- output of the driver\n{printed.getvalue()}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(HERE).as_posix())
def test_file(path: Path) -> None:
    lines = run_lines(path)
    assert lines, "no RUN line"
    for line in lines:
        execute(line)


def test_a_wrong_expectation_fails(tmp_path: Path) -> None:
    path = tmp_path / "wrong.mlir"
    run = "// RUN: python -m stencil_dsl.opt %s | filecheck %s"
    path.write_text(f"{run}\n// CHECK: not there\nbuiltin.module {{}}\n")
    with pytest.raises(AssertionError, match="not there"):
        execute(run_lines(path)[0])
