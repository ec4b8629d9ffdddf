"""What no kernel of a row can be faster than, from ceilings that the same run measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from repro.rows import ROWS
from stencil_dsl.testing import stats
from stencil_dsl.testing.sampling import used_times


@dataclass(frozen=True)
class Floor:
    """Times in milliseconds that no kernel of a row can be faster than, and the largest of them.

    `l1` would be one load an access; kernels that share loads are below it, so it is no part of the floor.
    """

    hbm: float
    l2: float
    fp64: float
    l1: float

    @property
    def ms(self) -> float:
        return max(self.hbm, self.l2, self.fp64)

    @property
    def bound(self) -> str:
        return max(("hbm", "l2", "fp64"), key=lambda name: getattr(self, name))


def rates(ceilings: Iterable[Mapping[str, Any]], file: str) -> dict[str, float]:
    """Ceilings that a run measured, in bytes or multiply-adds a second, by kind."""
    found = {}
    for row in ceilings:
        amount = row.get("facts", {}).get("amount")
        if row.get("samples") and amount and row["file"] == file:
            seconds = stats.interval(used_times(row["samples"])).median / 1e3
            found[row["variant"].removeprefix("ceiling-")] = amount / seconds
    return found


def floor(
    row: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], ceilings: Iterable[Mapping[str, Any]]
) -> Floor | None:
    """The floor of a row from the ceilings that its own run measured; None where that run has none."""
    found = rates(ceilings, row.get("file", ""))
    copy = next((r for r in rows if r["question"] == row["question"] and r["variant"] == "copy"), None)
    if not {"l1", "l2", "fma"} <= set(found) or copy is None or not copy.get("samples"):
        return None
    of, points = ROWS[row["params"]["stencil"]], row["params"]["size"] ** 3
    moved = copy["bytes"] / (stats.interval(used_times(copy["samples"])).median / 1e3)
    memory = max(moved, found.get("copy", 0.0), found.get("triad", 0.0))
    seconds = (of.bytes / memory, of.bytes / found["l2"], of.slots / found["fma"], 8 * of.loads / found["l1"])
    return Floor(*(1e3 * points * s for s in seconds))
