"""Which schedules the table's kernels use: raced against each other on a device, kept in the package's `tuned.json`.

The ranking model orders schedules well but not perfectly. For the rows of the table the schedules listed here, which
won or nearly won wider searches on an H200, run against the model's own best; the winner of each row and size is
stored. Without a stored choice (another GPU) the table uses the model's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from repro.rows import ROWS, SIZES

STORE = Path(__file__).parents[1] / "stencil_dsl" / "runtime" / "tuned.json"
"""The choices that the package ships; `TuningStore` reads and writes them."""

A, B, C = (1, 1, 128), (1, 2, 64), (1, 4, 32)
"""One row, two rows and four rows of a tile, 128 threads each."""

MODEL_BEST = 4
"""How many of the model's best join."""

NEXT_SIZE = 6
"""How many of the fastest at one size go on to the next smaller one."""


def finalists(row: str) -> Iterator[dict[str, Any]]:
    """Fields of `Schedule` that differ from streaming in pairs, for one row."""
    one: dict[str, Any] = {"chunk": 32, "rows": 2, "occupancy": 4}
    if row in ("star-7", "cond"):
        yield from ({**one, "tile": C, "occupancy": 6}, {**one, "tile": C, "rows": 1, "occupancy": 8})
        yield from ({**one, "tile": B, "occupancy": o} for o in (5, 6))
        yield from ({**one, "tile": C, "rows": 4}, {**one, "tile": B, "rows": 4}, {**one, "tile": B, "latency": 1})
    elif row == "star-13":
        yield from ({**one, "tile": A, "rows": 4, "occupancy": 3}, {**one, "tile": B, "rows": 3})
        yield from ({**one, "tile": A, "rows": 3}, {**one, "tile": (1, 2, 128), "rows": 3, "occupancy": 2, "warps": 8})
        yield {**one, "tile": B, "rows": 4}
    elif row == "box-27":
        yield from ({**one, "tile": B, "rows": r, "occupancy": o} for r, o in ((4, 4), (3, 5), (3, 4), (4, 3)))
        yield from ({**one, "tile": A, "rows": 3, "occupancy": o} for o in (4, 5))
        yield {**one, "tile": C, "rows": 4}
    elif row in ("star-19", "star-25", "box-125"):
        for tile, chunk in product((A, B), (32, 64)):
            yield {**one, "tile": tile, "unroll": 2, "chunk": chunk}
        for chunk, latency, head in product((32, 64), (None, 1), (True, False)):
            yield {**one, "tile": A, "unroll": 2, "chunk": chunk, "latency": latency, "head_loop": head}
        yield from ({**one, "tile": A, "chunk": c, "head_loop": h} for c in (32, 64) for h in (True, False))
        yield from ({**one, "tile": A, "rows": 3, "occupancy": 3, "chunk": c} for c in (32, 64))
        yield {**one, "tile": A, "unroll": 2, "chunk": 16}
        yield {**one, "tile": A, "unroll": 2, "block_order": "y"}
    elif row == "iso3dfd":
        for tile, chunk in product((C, B), (64, 128, 32)):
            yield {**one, "tile": tile, "rows": 1, "chunk": chunk}
            yield {**one, "tile": tile, "rows": 1, "chunk": chunk, "unroll": 2, "ahead": True}
            yield {**one, "tile": tile, "rows": 1, "chunk": chunk, "unroll": 2}
    elif row == "cns":
        narrow = {**one, "rows": 1, "pair": 1}
        for tile, chunk in product((C, B), (32, 64, 128)):
            yield {**narrow, "tile": tile, "chunk": chunk, "occupancy": 3}
        yield from ({**narrow, "tile": C, "occupancy": o, "chunk": 64} for o in (2, 4))
        yield {**narrow, "tile": C, "occupancy": 3, "chunk": 64, "latency": 1}
        yield {**narrow, "tile": C, "occupancy": 3, "chunk": 64, "split_tail": False}
        yield {**narrow, "tile": C, "occupancy": 3, "chunk": 64, "head_loop": False}
        yield from ({**one, "tile": t, "rows": 1, "occupancy": 2, "chunk": 64} for t in (B, C))


def tune(sizes: tuple[int, ...] = SIZES, rows: tuple[str, ...] = tuple(ROWS), arch: str = "sm_90") -> int:
    """Race the finalists of every row and size on the device and store the winners; returns the exit status."""
    from repro import stencils
    from stencil_dsl.runtime.definition import Definition
    from stencil_dsl.runtime.select import contest, rank, with_libraries
    from stencil_dsl.runtime.specialize import padded_form
    from stencil_dsl.runtime.tuning_store import TuningStore
    from stencil_dsl.schedule.schedule import Schedule
    from stencil_dsl.schedule.target import target_for

    failed = 0
    for row in rows:
        definition = Definition.of(getattr(stencils, ROWS[row].function), "float64")
        listed = [Schedule(**{"kind": "streaming", "order": "fast", "pair": 2, **f}) for f in finalists(row)]
        for size in sorted(sizes, reverse=True):
            form = padded_form(definition, (size,) * 3)
            model = [c.schedule for c in rank(definition, form, "fast", target_for(arch))[:MODEL_BEST]]
            libraries = [c.schedule for c in with_libraries(definition, form, "fast", target_for(arch), None)]
            schedules = list(dict.fromkeys(listed + model + libraries))
            try:
                ranking = contest(definition, form, schedules, arch, TuningStore(STORE))
            except Exception as error:  # noqa: BLE001 - one row must not cost the others
                print(f"{row} {size}: {error}", file=sys.stderr, flush=True)
                failed += 1
                continue
            for candidate in ranking[:4]:
                print(f"{row} {size}: {candidate.ms:.4f} ms {candidate.schedule}", flush=True)
            # Smaller cubes start from the winners; fewer cells need smaller chunks to fill the GPU.
            best = [c.schedule for c in ranking[:NEXT_SIZE]]
            listed = best + [s.with_(chunk=max(8, s.chunk // 2)) for s in best if s.kind != "shifted"]
    return 1 if failed else 0
