"""Command line of the reproduction: ``python -m repro`` with ``render``, ``tune`` or ``warm``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from repro.render import render
from repro.rows import ROWS


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m repro", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("render", help="redraw tables, plots and reports from record files")
    drawing.add_argument("--results", type=Path, default=Path("results"), help="where the records are (results)")
    drawing.add_argument("--out", type=Path, help="where to draw (default: beside the records)")
    racing = commands.add_parser("tune", help="race schedules on the GPU and store the fastest for each kernel")
    racing.add_argument(
        "names", nargs="*", metavar="NAME", help="row, row-steps-k or shape of the tables (default: the nine rows)"
    )
    racing.add_argument("--rounds", type=int, default=1, help="races among the neighbours of the fastest (1)")
    racing.add_argument("--near", action="store_true", help="start from the stored schedules and their neighbours")
    racing.add_argument("--arch", default="sm_90")
    warming = commands.add_parser("warm", help="compile everything that a timed run will ask for")
    warming.add_argument("--arch", default="sm_90")
    warming.add_argument("--jobs", type=int, default=2)
    warming.add_argument("--pack", type=Path, help="also copy these kernels, and no others, into this cache folder")
    warming.add_argument("--published", metavar="PYTHON", help="interpreter of an environment with cutile-stencil")
    warming.add_argument("--module", default="", help="for tests of this module only, such as test_lanes")
    chosen = parser.parse_args(argv)
    if chosen.command == "warm":
        from repro.warm import warm

        return warm(chosen.arch, chosen.jobs, chosen.pack, chosen.published, chosen.module)
    if chosen.command == "tune":
        from repro.tuning import subjects, tune

        if unknown := set(chosen.names) - set(subjects()):
            parser.error(f"no such kernels: {', '.join(sorted(unknown))}; there are {', '.join(subjects())}")
        return tune(tuple(chosen.names or ROWS), chosen.arch, chosen.rounds, chosen.near)
    return render(chosen.results, chosen.out)


if __name__ == "__main__":
    sys.exit(main())
