"""Extents that no tile divides: sweeps in one pass, and what whole blocks cover with strips beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stencil_dsl.schedule.schedule import Schedule

SHAPES = ((300,) * 3, (500,) * 3, (513,) * 3, (1000, 700, 450))

A, B, C, NARROW = (1, 1, 128), (1, 2, 64), (1, 4, 32), (1, 16, 8)
_SHORT: dict[str, Any] = {"chunk": 32, "occupancy": 4}
_LONG: dict[str, Any] = {"chunk": 64, "occupancy": 4}

MAINS: dict[str, tuple[dict[str, Any], ...]] = {
    "star-7": ({**_SHORT, "tile": C, "rows": 2, "occupancy": 6}, {**_SHORT, "tile": C, "rows": 4}),
    "star-13": (
        {"tile": A, "rows": 4, "chunk": 57, "occupancy": 3},
        {**_SHORT, "tile": B, "rows": 3},
        {**_SHORT, "tile": C, "rows": 2},
    ),
    "star-19": (
        {**_LONG, "tile": A, "rows": 2, "unroll": 2, "sums": "inward"},
        {**_LONG, "tile": C, "rows": 2, "unroll": 2, "sums": "inward"},
    ),
    "star-25": (
        {**_LONG, "tile": B, "rows": 2, "sums": "inward", "block_order": "y"},
        {**_LONG, "tile": A, "rows": 2, "unroll": 2},
        {**_LONG, "tile": C, "rows": 2, "sums": "inward"},
        {**_LONG, "tile": C, "rows": 2, "unroll": 2, "sums": "inward"},
    ),
    "box-27": ({**_SHORT, "tile": B, "rows": 4}, {**_SHORT, "tile": C, "rows": 2}),
}
"""Schedules in pairs of what whole blocks cover: those that won at 512^3, and narrower ones, which leave less."""

ONE_PASS: dict[str, dict[str, Any]] = {
    "star-7-513": {**_SHORT, "tile": C, "rows": 4},
    "star-7-1000x700x450": {**_SHORT, "tile": C, "rows": 4},
    "star-13-513": {**_LONG, "tile": (1, 8, 16), "rows": 3},
    "star-19-513": {**_SHORT, "tile": C, "rows": 2, "sums": "inward"},
    "star-25-513": {"kind": "shuffle", "tile": (1, 1, 32), "rows": 4, "chunk": 27, "warps": 1},
    "star-25-300": {**_LONG, "tile": NARROW, "rows": 1, "unroll": 2},
    "star-25-1000x700x450": {**_LONG, "tile": NARROW, "rows": 1, "unroll": 2},
    "box-27-513": {**_LONG, "tile": (1, 8, 16), "rows": 3, "occupancy": 3},
}
"""What is timed beside strips: the fastest that was raced in one pass, else the model's best."""

STRIPS: dict[str, dict[str, Any]] = {
    "star-7-513": {**MAINS["star-7"][0], "strips": "xz"},
    "star-7-1000x700x450": {**MAINS["star-7"][1], "strips": "z"},
    "star-13-513": {**MAINS["star-13"][0], "strips": "yz"},
    "star-19-513": {**MAINS["star-19"][0], "strips": "xyz"},
    "star-25-513": {**MAINS["star-25"][0], "strips": "xyz"},
    "star-25-300": {**MAINS["star-25"][0], "strips": "z"},
    "star-25-1000x700x450": {**MAINS["star-25"][2], "strips": "yz"},
    "box-27-513": {**MAINS["box-27"][0], "strips": "xyz"},
}


def schedule(fields: dict[str, Any]) -> Schedule:
    """A schedule of float64 that streams in pairs, but for the fields given."""
    from stencil_dsl.schedule.schedule import Schedule

    return Schedule(**{"kind": "streaming", "order": "fast", "pair": 2, **fields})


def named(case: str) -> dict[str, Schedule | None]:
    """The variants of a case by name: one pass and strips, where both are listed."""
    if case not in STRIPS:
        return {}
    return {"one-pass": schedule(ONE_PASS[case]), "strips": schedule(STRIPS[case])}


def entrants(case: str, shape: Sequence[int]) -> list[Schedule]:
    """What a race of a case enters: its stencil's main parts with every cut that leaves few cells."""
    from stencil_dsl.schedule.strips import cuts

    row = next((row for row in MAINS if case.startswith(f"{row}-")), None)
    mains = [schedule(fields) for fields in MAINS[row]] if row else []
    return [main.with_(strips=axes) for main in mains for axes in cuts(shape, main)]
