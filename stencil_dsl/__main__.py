"""`python -m stencil_dsl compile FILE.py:NAME`: look at a stencil at any stage, without writing a script."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stencil_dsl.errors import ScheduleError, StencilError

if TYPE_CHECKING:
    from stencil_dsl.frontend.stencil import Stencil
    from stencil_dsl.runtime.kernel import Kernel
    from stencil_dsl.schedule.schedule import Schedule

# What --emit can print, in the order of the pipeline.
EMIT: dict[str, Callable[[Kernel], str]] = {
    "level1": lambda kernel: kernel.ir("source"),
    "stencil": lambda kernel: kernel.ir("stencil"),
    "tile": lambda kernel: kernel.ir("tile"),
    "source": lambda kernel: kernel.source,
    "tile-ir": lambda kernel: kernel.tile_ir,
    "sass": lambda kernel: _sass(kernel),
    "report": lambda kernel: kernel.report(),
}
SHAPELESS = ("level1", "stencil")


class UsageError(Exception):
    """The command line asks for something that it does not say well enough; exit status 2."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0; 1 for an error of the compiler, whose message goes to stderr; bad usage leaves with status 2.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        text = compile_and_emit(options)
        if options.output is not None:
            _write(options.output, text)
        else:
            _print(text)
    except UsageError as error:
        options.parser.error(str(error))
    except StencilError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    from stencil_dsl import __version__

    parser = argparse.ArgumentParser(prog="python -m stencil_dsl", description="A stencil compiler.")
    parser.add_argument("--version", action="version", version=f"stencil-dsl {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add = commands.add_parser("compile", help="compile a stencil and print one of its stages")
    add.set_defaults(parser=add)
    add.add_argument(
        "stencil",
        metavar="FILE.py:NAME",
        help="a Python file and the function under @stencil in it; NAME,NAME compiles several into one kernel",
    )
    add.add_argument("--target", default="sm_90", metavar="sm_XX", help="GPU architecture (default: sm_90)")
    add.add_argument("--shape", type=_shape, metavar="NxNxN", help="cells of the interior, such as 512x512x512")
    add.add_argument("--dtype", choices=("float64", "float32"), default="float64", help="default: float64")
    add.add_argument(
        "--emit",
        choices=tuple(EMIT),
        default="report",
        help="level1 mirrors the Python function, stencil is the stencil dialect after all passes, tile the "
        "block-level program, source the cuTile Python file, tile-ir and sass what the toolkit makes of it, "
        "report (the default) a summary",
    )
    add.add_argument("--schedule", type=_schedule, metavar="JSON", help="such as '{\"tile\": [1, 1, 128]}'")
    add.add_argument(
        "--order",
        choices=("fast", "source"),
        default="fast",
        help="fast (the default): the schedule that is chosen may reassociate sums; one that is given says so itself",
    )
    add.add_argument("--toolkit", metavar="VERSION", help="a toolkit by release, such as 13.5; or its folder")
    add.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to FILE instead of standard output")
    return parser


def compile_and_emit(options: argparse.Namespace) -> str:
    """The text that the options ask for.

    Raises:
        UsageError: no such file or stencil, or a shape is missing.
        StencilError: whatever the compiler refuses.
    """
    from stencil_dsl import compile, compile_fused

    stencils = load(options.stencil)
    if options.shape is None and options.emit not in SHAPELESS:
        schedule = options.schedule
        if schedule is None or schedule.get("static_shape", True):
            raise UsageError(f"--emit {options.emit} needs --shape")
    common: dict[str, Any] = {
        "target": options.target,
        "dtype": options.dtype,
        "shape": None if options.emit in SHAPELESS else options.shape,
        "schedule": None if options.schedule is None else make_schedule(options.schedule, stencils[0].ndim),
        "toolkit": options.toolkit,
        "order": options.order,
    }
    kernel = compile(stencils[0], **common) if len(stencils) == 1 else compile_fused(stencils, **common)
    return EMIT[options.emit](kernel)


def load(place: str) -> list[Stencil]:
    """The stencils that FILE.py:NAME or FILE.py:NAME,NAME means; the file is run.

    What the file raises passes through; UsageError where file or name is not there.
    """
    from stencil_dsl.frontend.stencil import Stencil

    file, colon, names = place.rpartition(":")
    if not colon or not file or not names:
        raise UsageError(f"{place!r} is not FILE.py:NAME")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"there is no file {file}")
    # Like `python FILE`: modules beside the file can be imported.
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = []
    for name in names.split(","):
        value = getattr(module, name, None)
        if not isinstance(value, Stencil):
            there = sorted(n for n, v in vars(module).items() if isinstance(v, Stencil))
            raise UsageError(f"{file} has no stencil {name!r}; it has {', '.join(there) or 'none'}")
        found.append(value)
    return found


def make_schedule(values: dict[str, Any], ndim: int) -> Schedule:
    """A schedule from its fields; without a tile, one row of 128 cells.

    Raises:
        ScheduleError: for unknown fields and values that are not legal.
    """
    from stencil_dsl.schedule.schedule import Schedule

    try:
        return Schedule.from_json({"tile": [1] * (ndim - 1) + [128], **values})
    except TypeError as error:
        raise ScheduleError(f"a field of the schedule has a value of the wrong type: {error}") from error


def _shape(text: str) -> tuple[int, ...]:
    parts = text.split("x")
    if not 1 <= len(parts) <= 3 or not all(p.isascii() and p.isdigit() and int(p) > 0 for p in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not one to three positive extents, such as 512x512x512")
    return tuple(int(p) for p in parts)


def _schedule(text: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is not a JSON object of a schedule's fields")
    return values


def _sass(kernel: Kernel) -> str:
    text = kernel.sass
    if text is None:
        raise StencilError("no nvdisasm here to read the machine code; pip install 'stencil-dsl[toolchain]'")
    return text


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text.rstrip("\n") + "\n")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _print(text: str) -> None:
    try:
        print(text.rstrip("\n"), flush=True)
    except BrokenPipeError:
        # The reader (head, less) has seen enough; Python would complain again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
