"""Times of bricklib's own programs: what executables that the user has built print, or CSV files of such figures.

Nothing of bricklib is here. A folder holds, for each row and size, an executable (or a link to one, or a script)
called ``<row>-<size>``, such as ``star-7-256``; it is run without arguments and prints lines like ``Trans: 0.000555``,
seconds a sweep. Or it holds CSV files with the columns stencil, size, variant and ms; lines that differ in ms alone are
samples.
"""

from __future__ import annotations

import csv
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from repro.rows import ROWS
from stencil_dsl.testing import stats
from stencil_dsl.testing.sampling import used_times

if TYPE_CHECKING:
    from repro.tables import Table

COLUMNS = ("stencil", "size", "variant", "ms")
PREFIX = "bricklib-"
MODULE = "repro/test_external.py"
TABLE_COLUMNS = ("stencil", "size", "variant", "timed_by", "ms", "ms_lo", "ms_hi", "dsl_ms", "dsl_over_it", "failure")
_LIMIT_S = 600.0
_LINE = re.compile(r"^\s*([A-Za-z][A-Za-z0-9 _-]*?)\s*:\s*([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)\s*$")
_PROGRAM = re.compile(rf"({'|'.join(map(re.escape, ROWS))})-([1-9][0-9]*)")

#: Variant -> milliseconds, one a run.
Times = dict[str, list[float]]


class ExternalError(Exception):
    """A program or file that does not keep the contract; the text says where and what is expected."""


@dataclass(frozen=True)
class Source:
    """Where the times of one row and size come from: a program, or lines of CSV files."""

    stencil: str
    size: int
    program: Path | None = None
    given: tuple[tuple[str, float], ...] = ()

    @property
    def id(self) -> str:
        return f"{self.stencil}-{self.size}"

    def times(self, runs: int) -> Times:
        """All variants' times; a program is run so often.

        Raises:
            ExternalError: the program fails, prints no time, or not the same variants each time.
        """
        found: Times = {}
        for variant, ms in self.given:
            found.setdefault(variant, []).append(ms)
        for _ in range(runs if self.program is not None else 0):
            assert self.program is not None
            for variant, ms in printed(self.program).items():
                found.setdefault(variant, []).append(ms)
        counts = {len(times) for times in found.values()}
        if self.program is not None and counts != {runs}:
            raise ExternalError(f"{self.program.name} does not print the same names each time: {', '.join(found)}")
        return found


def sources(folder: Path) -> list[Source]:
    """What a folder holds, by row and size.

    Raises:
        ExternalError: no such folder, nothing usable in it, or a CSV line that is not understood.
    """
    if not folder.is_dir():
        raise ExternalError(f"{folder}: no such folder")
    found = {}
    given: dict[tuple[str, int], list[tuple[str, float]]] = {}
    for file in sorted(folder.iterdir()):
        match = _PROGRAM.fullmatch(file.name)
        if match and os.access(file, os.X_OK) and file.is_file():
            found[match[1], int(match[2])] = Source(match[1], int(match[2]), file.absolute())
        elif file.suffix == ".csv":
            for stencil, size, variant, ms in _lines(file):
                given.setdefault((stencil, size), []).append((variant, ms))
    for key, lines in given.items():
        if key in found:
            raise ExternalError(f"{folder}: {key[0]}-{key[1]} is a program and in a CSV file too; keep one of them")
        found[key] = Source(*key, given=tuple(lines))
    if not found:
        wanted = f"an executable called <row>-<size>, or a CSV file with {', '.join(COLUMNS)}"
        raise ExternalError(f"{folder}: needs {wanted}; rows are {', '.join(ROWS)}")
    order = list(ROWS)
    return [found[key] for key in sorted(found, key=lambda key: (order.index(key[0]), key[1]))]


def _lines(file: Path) -> list[tuple[str, int, str, float]]:
    with file.open(newline="", encoding="utf-8") as text:
        reader = csv.DictReader(text)
        lacking = set(COLUMNS) - set(reader.fieldnames or ())
        if lacking:
            names = ", ".join(sorted(lacking))
            raise ExternalError(f"{file.name}: column {names} is missing; wanted: {', '.join(COLUMNS)}")
        lines = []
        for line in reader:
            place = f"{file.name}, line {reader.line_num}"
            if line["stencil"] not in ROWS:
                raise ExternalError(f"{place}: no row {line['stencil']!r}; rows are {', '.join(ROWS)}")
            try:
                size, ms = int(line["size"]), float(line["ms"])
            except (TypeError, ValueError) as error:
                raise ExternalError(f"{place}: size and ms must be numbers ({error})") from error
            if not ms > 0 or size < 1:
                raise ExternalError(f"{place}: size and ms must be positive, not {size} and {ms}")
            lines.append((line["stencil"], size, slug(line["variant"]), ms))
    return lines


def printed(program: Path) -> dict[str, float]:
    """Variant -> milliseconds of one run.

    Raises:
        ExternalError: it cannot be run, fails (as bricklib's do when values differ), or prints no time.
    """
    try:
        done = subprocess.run(
            [str(program)], cwd=program.parent, capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ExternalError(f"{program.name} cannot be run: {error}") from error
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise ExternalError(f"{program.name} ended with {done.returncode}: {last[:300]}")
    found = {}
    for line in done.stdout.splitlines():
        match = _LINE.match(line)
        if match and float(match[2]) > 0:
            found[slug(match[1])] = 1e3 * float(match[2])
    if not found:
        raise ExternalError(f"{program.name} printed no time: lines like `Trans: 0.000555` are wanted, seconds a sweep")
    return found


def slug(name: str) -> str:
    """ "Arr scatter" -> "bricklib-arr-scatter"."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    return PREFIX + "-".join(words).removeprefix(PREFIX)


def lines(table: Table) -> list[dict[str, str]]:
    """Each program's median beside that of the DSL's kernel; no interval of the ratio, they were not timed in turns."""
    found = []
    for row in table.more.get(MODULE, ()):
        of = row["params"]
        out = dict.fromkeys(TABLE_COLUMNS, "")
        out |= {"stencil": of["stencil"], "size": str(of["size"]), "variant": row["variant"]}
        out["failure"] = str(row.get("failure", "")).splitlines()[0][:160] if row.get("failure") else ""
        if row.get("samples"):
            time = stats.interval(used_times(row["samples"]))
            out |= {"ms": f"{time.median:.5f}", "ms_lo": f"{time.lo:.5f}", "ms_hi": f"{time.hi:.5f}"}
            out["timed_by"] = row["facts"]["schedule"].removeprefix("timed by ")
            for own in table.rows:
                same = own["variant"] == "dsl" and own["question"] == row["question"] and own.get("samples")
                if same:
                    ms = stats.interval(used_times(own["samples"])).median
                    out |= {"dsl_ms": f"{ms:.5f}", "dsl_over_it": f"{ms / time.median:.3f}"}
        found.append(out)
    return found


def csv_text(table: Table) -> str:
    from repro.tables import csv_of

    return csv_of(TABLE_COLUMNS, lines(table))
