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

DEFAULTS: dict[str, Any] = {"z": 64, "y": 2, "p": 2, "u": 2, "cx": 64, "o": 4, "st": "wb"}


def configs(row: str) -> list[dict[str, Any]]:
    """What is searched for a row.

    Keys: z, y = threads of a block; p = cells a thread in z; u = rows a thread; cx = planes a chunk;
    o = blocks an SM the registers are limited for; st = "wb" or "cs" (streaming) stores.
    """
    base = DEFAULTS
    if row == "cns":  # 40 open sums a cell: one cell a thread
        return [
            base | {"z": z, "y": y, "p": 1, "u": 1, "cx": cx, "o": o}
            for z, y, cx, o in ((32, 4, 64, 3), (32, 4, 64, 4), (64, 2, 64, 3), (128, 1, 64, 3), (32, 8, 64, 2))
        ]
    wide = [
        base,
        base | {"u": 4, "o": 2},
        base | {"cx": 32},
        base | {"cx": 128},
        base | {"z": 32, "y": 4},
        base | {"u": 1},
        base | {"z": 32, "y": 8, "o": 2},
        base | {"st": "cs"},
    ]
    return [*wide, base | {"z": 32, "y": 8, "p": 1, "o": 2}, base | {"z": 128, "y": 1, "p": 1, "u": 4}]


def generate(row: str, shape: Shape, config: Mapping[str, Any] | None = None) -> Baseline:
    """The streaming kernel of a row; `configs` explains the keys of config.

    Raises:
        ValueError: for a configuration that cannot be launched or would read outside the allocation.
    """
    config = DEFAULTS | dict(config or configs(row)[0])
    z, y, p, u = (int(config[k]) for k in "zypu")
    if p not in (1, 2, 4) or not 1 <= u <= SLACK_ROWS or z * y > 1024:
        raise ValueError(f"p is 1, 2 or 4, u at most {SLACK_ROWS}, z * y at most 1024: {config}")
    m = model(row)
    layout = Layout.padded(shape, tuple((r, r) for r in m.radius), "float64")
    chunks = ceil_div(shape[0], int(config["cx"]))
    name = symbol(f"stream_{row}")
    source = Marching(m, layout, name, config, chunks).text()
    grid = (ceil_div(shape[2], z * p), ceil_div(shape[1], y * u), chunks)
    launch = Launch(name, grid, (z, y, 1), (*m.fields, *m.outputs))
    return Baseline(row, "stream", config, shape, source, (launch,))
