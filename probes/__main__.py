"""`python -m probes`: compare toolkits or commits, look at a variant's code, take a census, print the ledger."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

from stencil_dsl.errors import StencilError

#: Option of `show` -> file among a variant's artefacts.
_TEXTS = {"sass": "kernel.sass", "tile_ir": "kernel.tileir", "remarks": "remarks.yaml", "source": "kernel.py"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; the exit status is 1 where something is missing or a tool fails, 2 for usage."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options) or 0
    except (StencilError, KeyError, ValueError, RuntimeError) as error:
        words = error.args[0] if isinstance(error, KeyError) else error
        print(f"error: {words}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m probes", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    add = commands.add_parser("diff", help="what two toolkits (13.4 13.5) or commits make different")
    add.add_argument("first")
    add.add_argument("second")
    add.add_argument("-k", dest="expression", help="only these probes, as pytest's -k")
    add.add_argument("--arch", default="sm_90")
    add.set_defaults(run=_diff)

    add = commands.add_parser("show", help="code of a variant, or of two side by side")
    add.add_argument("variant", help="question/variant, or enough of it")
    add.add_argument("other", nargs="?")
    for name in _TEXTS:
        add.add_argument(f"--{name.replace('_', '-')}", dest="text", action="store_const", const=name)
    add.add_argument("--arch", default="sm_90")
    add.add_argument("--toolkit", action="append", help="twice: one variant with two toolkits side by side")
    add.add_argument("--width", type=int, default=160, help="columns of two texts side by side")
    add.set_defaults(run=_show, text="sass")

    add = commands.add_parser("warm", help="compile all probes, for a timed run on a machine without toolkits")
    add.add_argument("--toolkit", action="append", help="may be given several times")
    add.add_argument("--arch", default="sm_90")
    add.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    add.add_argument("--pack", type=Path, metavar="DIR", help="also copy these kernels, and no others, into a cache")
    add.set_defaults(run=_warm)

    add = commands.add_parser("list", help="all variants")
    add.set_defaults(run=_list)

    add = commands.add_parser("census", help="every kernel that one step of a solver launches")
    add.add_argument("case", nargs="*", help="names of cases, or module:function; all cases if left out")
    add.add_argument("--size", type=int, default=512, help="cells an axis")
    add.add_argument("--arch", default="sm_90")
    add.add_argument("--toolkit")
    add.add_argument("--gpu", action="store_true", help="run the step on a device, with times")
    add.set_defaults(run=_census)

    add = commands.add_parser("ledger", help="the verdicts of results/claims.csv, and what changed between tool sets")
    add.add_argument("--file", type=Path, help="another ledger file")
    add.add_argument("--records", type=Path, nargs="+", default=[], metavar="FILE", help="first enter their verdicts")
    add.add_argument("--page", action="store_true", help="write docs/claims.md and the probes' docstrings")
    add.set_defaults(run=_ledger)
    return parser


def _diff(options: argparse.Namespace) -> int:
    from probes import comparing

    kinds = {comparing.is_toolkit(name) for name in (options.first, options.second)}
    if len(kinds) == 2:
        raise ValueError(f"{options.first} and {options.second}: compare two toolkits or two commits")
    if kinds == {True}:
        sides = comparing.of_toolkits(options.first, options.second, options.expression, options.arch)
    else:
        sides = comparing.of_commits(options.first, options.second)
    print("\n".join(comparing.report(*sides, (options.first, options.second))))
    return 0


def _show(options: argparse.Namespace) -> int:
    from probes import catalogue
    from stencil_dsl.testing import Target

    toolkits = options.toolkit or [None]
    if options.other and len(toolkits) > 1:
        raise ValueError("give two variants, or one variant and two toolkits")
    chosen = [(name, toolkits[0]) for name in (options.variant, options.other) if name]
    if len(toolkits) > 1:
        chosen = [(options.variant, kit) for kit in toolkits[:2]]
    texts = []
    for name, kit in chosen:
        item = catalogue.find(name)
        found = item.artefacts(Target(options.arch, kit))
        parts = [text for file, text in found.items() if file.endswith(_TEXTS[options.text])]
        if not parts:
            raise ValueError(f"{item.name} has no {_TEXTS[options.text]}; it has {', '.join(found) or 'nothing'}")
        texts.append((item.name + (f" {kit}" if kit else ""), "\n".join(parts)))
    print(texts[0][1] if len(texts) == 1 else "\n".join(side_by_side(texts[0], texts[1], options.width)))
    return 0


def side_by_side(left: tuple[str, str], right: tuple[str, str], width: int) -> list[str]:
    """Two (title, text) in columns, equal lines on one height; "|" marks lines that differ, "<" and ">" extra ones."""
    import difflib

    half = (width - 3) // 2
    a, b = left[1].splitlines(), right[1].splitlines()
    lines = [f"{left[0]:<{half}.{half}}   {right[0]:.{half}}".rstrip(), "-" * width]
    for kind, i1, i2, j1, j2 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        for one, two in itertools.zip_longest(a[i1:i2], b[j1:j2]):
            mark = " " if kind == "equal" else "<" if two is None else ">" if one is None else "|"
            lines.append(f"{one or '':<{half}.{half}} {mark} {two or '':.{half}}".rstrip())
    return lines


def _warm(options: argparse.Namespace) -> int:
    from probes.warm import warm

    return warm(options.arch, options.toolkit or [None], options.jobs, options.pack)


def _list(options: argparse.Namespace) -> int:
    from probes import catalogue

    for item in catalogue.items():
        print(f"{item.name:<60} {item.module}")
    return 0


def _census(options: argparse.Namespace) -> int:
    from probes import census

    for name in options.case or census.CASES:
        case = census.find_case(name)
        device = "gpu" if options.gpu else "cpu"
        print(f"{name}, {options.size} cells an axis, {options.arch}")
        print("\n".join(census.table(census.census(case, options.size, options.arch, options.toolkit, device))))
    return 0


def _ledger(options: argparse.Namespace) -> int:
    from probes import ledger_page
    from stencil_dsl.testing import ledger

    path = options.file or ledger_page.LEDGER
    rows = ledger.read(path)
    for file in options.records:
        found = ledger.rows_of_file(file)
        if not found:
            raise ValueError(f"{file} has no verdicts; a run of pytest probes writes them")
        rows = ledger.merge(rows, found)
    if options.records:
        ledger.write(path, rows)
    if not rows:
        raise ValueError(f"{path} has no verdicts; pytest probes writes them")
    if options.page:
        ledger_page.PAGE.write_text(ledger_page.page(rows), encoding="utf-8")
        stale = ledger_page.docstrings(rows, write=True)
        print(f"wrote {ledger_page.PAGE.relative_to(ledger_page.ROOT)} and {len(stale)} docstrings")
        return 0
    print("\n".join(ledger.summary(rows)))
    moved = ledger.changes(rows)
    print("\n".join(["", "verdicts that changed between tool sets:", *moved]) if moved else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
