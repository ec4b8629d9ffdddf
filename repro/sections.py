"""Sections of the report beside the tables: machine code, traffic, and bricklib's own programs."""

from __future__ import annotations

from collections.abc import Sequence

from repro import external, machine_code, traffic
from repro.rows import SIZES
from repro.tables import Table

#: Kinds whose machine code the report shows; the file has every configuration.
_KINDS = ("dsl", "arr", "trans", "stream", "published", "triton")


def sections(table: Table) -> list[str]:
    """Headings, paragraphs and tables of what the records hold; empty where they hold none of it."""
    return [*_machine_code(table), *_traffic(table), *_external(table)]


def grid(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    rows = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(rows + ["| " + " | ".join(cell.replace("|", "/") for cell in line) + " |" for line in lines])


def _shown(lines: Sequence[dict[str, str]], columns: Sequence[str]) -> str:
    """The columns that hold something."""
    kept = [c for c in columns if any(line[c] not in ("", "0") for line in lines)]
    return grid([c.replace("_", " ") for c in kept], [[line[c] for c in kept] for line in lines])


def _machine_code(table: Table) -> list[str]:
    rows = [r for r in table.rows if r["variant"] in _KINDS and r["params"]["size"] == SIZES[-1]]
    lines = machine_code.lines(rows)
    if not lines:
        return []
    text = (
        f"Instructions of the best configuration of each kind at {SIZES[-1]}³, counted in the cubin that was measured: "
        "global loads and stores by width in bits a thread, shared memory, shuffles, double-precision arithmetic. "
        "Several kernels of one sweep are added; registers and shared memory are their largest. All configurations, "
        "and the kernels of the other tables: `sass.csv`."
    )
    return ["## Machine code", text, _shown(lines, machine_code.SHOWN)]


def _traffic(table: Table) -> list[str]:
    lines = traffic.lines(machine_code.of(table))
    if not lines:
        return []
    text = (
        "Counted by Nsight Compute in processes of their own (`--ncu`), with clocks as they are and caches emptied "
        "before a launch; times of the other tables are not from there. `dram over compulsory` is bytes read and "
        "written in device memory over those that a sweep must move; L2 and L1 bytes are a grid point's; so "
        "are `exchanges`, 32-bit values that a thread gets from another lane, the model's `shuffles`. All columns: "
        "`traffic.csv`."
    )
    return ["## Traffic", text, _shown(lines, traffic.SHOWN)]


def _external(table: Table) -> list[str]:
    lines = external.lines(table)
    if not lines:
        return []
    text = (
        "What bricklib's own programs say of themselves, built by whoever ran this (`--bricklib`). They were not timed "
        "in turns with ours, so medians stand beside each other without a verdict. All columns: `external.csv`."
    )
    return ["## bricklib's own programs", text, _shown(lines, external.TABLE_COLUMNS)]
