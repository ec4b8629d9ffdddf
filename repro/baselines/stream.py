"""Streaming by hand: a block marches along x, loads every value of a plane once and scatters it.

The strongest opponent we can write without shared memory. A thread owns P consecutive cells in z (P = 2: all
loads and stores are 16 bytes wide and aligned) in each of U rows, and a chunk of planes. The sums of the
outputs that are still open live in registers; what a plane contributes to each of them is added when the plane
is there. Rows of a thread share loads and partial sums. The first and last planes of a chunk, which only some
outputs need, are written out with what those need.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from repro.baselines.base import Baseline, Launch, Shape, ceil_div, symbol
from repro.baselines.model import model
from repro.baselines.stream_body import Marching
from stencil_dsl.schedule.layout import SLACK_ROWS, Layout

DEFAULTS: dict[str, Any] = {"z": 64, "y": 2, "p": 2, "u": 2, "cx": 64, "o": 4}

#: Which outputs share a kernel.
SPLITS: dict[str, dict[int, tuple[tuple[int, ...], ...]]] = {
    "cns": {1: ((0, 1, 2, 3, 4),), 2: ((0, 1, 2), (3, 4)), 5: ((0,), (1,), (2,), (3,), (4,))}
}


def configs(row: str) -> list[dict[str, Any]]:
    """What is searched for a row.

    Keys: z, y = threads of a block; p = cells a thread in z; u = rows a thread; cx = planes a chunk;
    o = blocks an SM the registers are limited for; st = "cs" for streaming stores; at = "index" to carry one
    index instead of a pointer an array; k = kernels the outputs are split into (cns: 1, 2 or 5); unroll = planes
    a trip.
    """
    if row == "cns":  # 40 open sums a cell: one cell a thread
        cell = {"p": 1, "u": 1, "at": "index"}
        one = [{"z": 32, "y": 4, "cx": cx, "o": o} for cx, o in ((64, 3), (64, 2), (128, 3), (32, 3))]
        other = [{"z": 64, "y": 2, "cx": 64, "o": 3}, {"z": 128, "y": 1, "cx": 64, "o": 3}]
        two = [{"z": 32, "y": 4, "cx": 64, "o": o, "k": 2} for o in (4, 5)]
        return [cell | c for c in [*one, *other, *two, {"z": 32, "y": 4, "cx": 64, "o": 6, "k": 5}]]
    base = DEFAULTS
    wide = [
        base,
        base | {"u": 4, "o": 2},
        base | {"cx": 32},
        base | {"cx": 128},
        base | {"z": 32, "y": 4},
        base | {"u": 1},
        base | {"z": 32, "y": 8, "o": 2},
        base | {"st": "cs"},
        base | {"unroll": 2},
    ]
    if row == "iso3dfd":  # three fields and a queue: two cells a thread
        wide = [base | {"u": 1, "z": z, "y": y, "cx": cx} for z, y in ((64, 2), (32, 4)) for cx in (32, 64, 128)]
    return [*wide, base | {"z": 32, "y": 8, "p": 1, "o": 2}, base | {"z": 128, "y": 1, "p": 1, "u": 4, "o": 3}]


def generate(row: str, shape: Shape, config: Mapping[str, Any] | None = None) -> Baseline:
    """The streaming kernel of a row; `configs` explains the keys of config.

    Raises:
        ValueError: for a configuration that cannot be launched or would read outside the allocation.
    """
    config = DEFAULTS | dict(config or configs(row)[0])
    z, y, p, u = (int(config[k]) for k in "zypu")
    if p not in (1, 2, 4) or not 1 <= u <= SLACK_ROWS or z * y > 1024:
        raise ValueError(f"p is 1, 2 or 4, u at most {SLACK_ROWS}, z * y at most 1024: {config}")
    whole = model(row)
    layout = Layout.padded(shape, tuple((r, r) for r in whole.radius), "float64")
    if config.get("at") == "index" and layout.capacity >= 2**31:
        raise ValueError(f"fields of {shape} have {layout.capacity} elements: more than a 32-bit index counts")
    chunks = ceil_div(shape[0], int(config["cx"]))
    grid = (ceil_div(shape[2], z * p), ceil_div(shape[1], y * u), chunks)
    texts, launches = [], []
    everything = tuple(range(len(whole.outputs)))
    for number, outputs in enumerate(SPLITS.get(row, {}).get(int(config.get("k", 1)), (everything,))):
        part = whole.only(outputs)
        name = symbol(f"stream_{row}" + (f"_{number}" if outputs != everything else ""))
        texts.append(Marching(part, layout, name, config, chunks).text())
        launches.append(Launch(name, grid, (z, y, 1), (*part.fields, *part.outputs)))
    return Baseline(row, "stream", config, shape, "\n".join(texts), tuple(launches))
