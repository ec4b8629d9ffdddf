"""Command line of the reproduction: ``python -m repro render``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from repro.render import render


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m repro", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("render", help="redraw tables, plots and reports from record files")
    drawing.add_argument("--results", type=Path, default=Path("results"), help="where the records are (results)")
    drawing.add_argument("--out", type=Path, help="where to draw (default: beside the records)")
    chosen = parser.parse_args(argv)
    return render(chosen.results, chosen.out)


if __name__ == "__main__":
    sys.exit(main())
