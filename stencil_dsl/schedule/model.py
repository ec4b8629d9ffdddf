"""Predicts what a schedule costs before anything is compiled, and ranks schedules by it.

The time of a sweep is that of its busiest resource: device memory, L2, L1, the schedulers, or the latency of a trip
of the loop, of which as many run at a time as registers allow. Registers also decide in how many rounds a trip loads.
All inputs are counted on the lowered kernel, so the model knows nothing of particular stencils.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from stencil_dsl.schedule import shifted, shuffle_model, streaming
from stencil_dsl.schedule.counting import Counts
from stencil_dsl.schedule.layout import round_up
from stencil_dsl.schedule.prediction import Prediction, reaches, together
from stencil_dsl.schedule.problem import Problem
from stencil_dsl.schedule.schedule import Schedule
from stencil_dsl.schedule.target import Target

BASE_REGISTERS = 17
"""Addresses, indices and constants. This and what follows: fitted to timings on an H200, see docs/decisions.md."""

MAX_REGISTERS = 255
START_CLOCKS = 1030
"""Of a trip of the loop that no warp can shorten: the first load's way and the trip's own bookkeeping."""

BATCH_CLOCKS = 1150
"""For each batch of loads that registers allow to be under way together."""

LOAD_CLOCKS = 7.3
"""Of a scheduler for a warp's load of one wide element each."""

CALL_CLOCKS, CALL_BUSY = 320, 30
"""Of a division in a trip, which warps that stand at a branch do not overlap with their other work, and what of it
keeps a scheduler; half as much in float32."""

LOAD_SHARE = 1.9
"""Registers that the compiler gives to loads for each that holds an accumulator, beside a fixed number."""

SHIFTED_LINES = 0.5
"""Of the lines that one tile of loads apart fetches alone, those that other blocks of its SM have not brought in."""

SHIFTED_LOADED = 112
"""Registers that the compiler spends on loads where nothing is carried and no hint bounds them."""

CHECKED_BUSY = 20
"""Of a scheduler for comparing what a warp loads with the extents, where loads are checked. Each then stands behind a
branch, and waits for the one before."""

SPILL_COST = 2.0
"""Relative cost of lacking as many registers as there are."""

WRITES = 2.1
"""What a written line costs the L2, in read ones."""

SECTOR, LINE = 32, 128
"""Bytes that are fetched and written together, and bytes of a row that the L1 returns at a time. What lies in rows
shorter than a line is counted by these; on longer rows the constants above were fitted without."""

NARROW_COST = 1.08
"""Of tiles that load single elements where pairs are possible."""


@dataclass(frozen=True)
class Steady:
    """What the model needs of a schedule, in units of one cell.

    Attributes:
        tiles: compute tiles whose operations one trip holds.
        lines: elements of all fields fetched through the L2 for a cell, halo rows of neighbouring blocks included.
        checked: loads test every element.
    """

    counts: Counts
    grid: tuple[int, ...]
    tiles: int
    waste: float
    redundant: float
    reread: float
    lines: float
    checked: bool = False


def steady(problem: Problem, schedule: Schedule) -> Steady:
    """Count a schedule.

    Raises:
        ScheduleError: where it is not legal for the problem.
    """
    assert problem.shape is not None
    halos = reaches(problem)
    if schedule.kind == "shifted":
        o = shifted.outline(problem, schedule)
        assert o.grid is not None
        waste = prod(o.grid) * prod(schedule.tile) / prod(problem.shape)
        *outer, width = schedule.tile
        lines = sum(
            prod((t + w) / t for t, w in zip(outer, r, strict=False)) * _sectors(width, problem.itemsize, r[-1]) / width
            for r in halos
        )
        lines = max(len(halos), SHIFTED_LINES * lines)
        return Steady(shifted.count(problem, schedule), o.grid, 1, waste, 1.0, 1.0, lines, o.checked)
    s = streaming.outline(problem, schedule)
    g = s.geometry
    lo = max((-t.lo for t in s.plan.sums), default=0)
    hi = max((t.hi for t in s.plan.sums), default=0)
    chunk = g.nx / g.chunks
    waste = g.tiles_y * g.ty * g.tiles_z * g.tz * g.pair / (g.ny * g.nz)
    rows, width = g.rows * g.ty, g.tz * g.pair
    lines = sum(
        _sectors(width, problem.itemsize, r[-1]) / width * ((rows + r[1]) / rows if problem.ndim == 3 else 1.0)
        for r in halos
    )
    # Before the first complete plane only centre lines are read, after the last everything but those.
    redundant = 1 + (0.25 * lo + (0.5 if g.tail else 1.0) * hi) / chunk
    counts = streaming.count(problem, schedule, s)
    return Steady(counts, s.grid, g.rows * g.pair * g.unroll, waste, redundant, 1 + (lo + hi) / chunk, lines)


def _sectors(width: int, itemsize: int, more: int = 0) -> int:
    """Elements that are fetched for so many of a row and some around them."""
    cells = width + more
    return round_up(cells, SECTOR // itemsize) if width * itemsize < LINE else cells


def _compulsory(problem: Problem) -> tuple[float, float]:
    """Elements a cell that device memory must give and take, with the fields' halos once."""
    assert problem.shape is not None
    *outer, width = problem.shape
    size = problem.itemsize
    read = sum(
        (_sectors(width, size, r[-1]) / width) * prod(1 + w / n for n, w in zip(outer, r, strict=False))
        for r in reaches(problem)
    )
    written = _sectors(width, size) / width
    # A sector that is written in part is read before.
    written *= 2 if width * size < LINE and width * size % SECTOR else 1
    return read, written * len(problem.outputs)


def predict(problem: Problem, schedule: Schedule, target: Target) -> Prediction:
    """Predict one sweep over a problem whose shape is known; raises like `steady`."""
    assert problem.shape is not None
    if schedule.kind == "shuffle":
        return shuffle_model.predict(problem, schedule, target)
    s = steady(problem, schedule)
    c, size = s.counts, problem.itemsize
    threads = 32 * schedule.warps
    pair = schedule.pair if schedule.kind == "streaming" else 1
    per_thread = max(1, prod(schedule.tile) // threads)
    words = per_thread * size // 4
    accumulators, loaded = words * c.carried, words * c.loads * pair
    cap = MAX_REGISTERS
    if schedule.occupancy is not None:
        cap = min(cap, target.registers // (schedule.occupancy * threads) // 8 * 8)
    held = BASE_REGISTERS + words * c.live
    most = SHIFTED_LOADED if schedule.kind == "shifted" else int(LOAD_SHARE * accumulators) + 40
    wanted = max(held, BASE_REGISTERS + accumulators + min(loaded, most))
    registers = max(32, min(cap, wanted))
    resident = max(1, min(target.registers // (registers * threads), target.threads // threads))
    batches = max(1.0, loaded / max(4, cap - BASE_REGISTERS - accumulators))
    batches = max(batches, per_thread * c.loads) if s.checked else batches
    lacking = max(0.0, (max(held, BASE_REGISTERS + accumulators + 12) - cap) / cap)
    outputs, cells = len(problem.outputs), prod(problem.shape)
    read, written = _compulsory(problem)
    work = cells * s.waste * s.redundant
    trip_cells = s.tiles * prod(schedule.tile)
    # Fewer blocks than the GPU holds are fewer under way, however short the sweep.
    blocks = prod(s.grid)
    held_blocks = min(blocks, target.sms * resident)
    waves = blocks / (target.sms * resident)
    trips = work / (trip_cells * blocks) * (ceil(waves) if waves < 3 else waves)
    rate = target.fp64 if problem.dtype == "float64" else target.fp32
    # Clocks a warp keeps its scheduler, of four an SM, in one trip.
    calls = per_thread * c.calls * size / 8
    busy = per_thread * (c.arithmetic * 128 / rate + c.loads * LOAD_CLOCKS * max(1.0, pair * size / 8))
    busy += CALL_BUSY * calls + CHECKED_BUSY * per_thread * c.loads * s.checked
    times = {
        "latency": trips * (START_CLOCKS + BATCH_CLOCKS * batches + busy + CALL_CLOCKS * calls) / target.clock,
        "issue": trips * held_blocks / target.sms * threads / 32 / target.issue * busy / target.clock,
        "hbm": cells * size * (read * (1 + 0.25 * (s.reread - 1)) + written) / target.hbm,
        "l2": cells * size * (s.lines * s.waste * s.reread + WRITES * outputs) / target.l2,
        "l1": work
        * c.loads
        * pair
        * per_thread
        * threads
        / trip_cells
        * size
        * max(1.0, LINE / (schedule.tile[-1] * pair * size))
        / (target.l1 * target.sms * target.clock),
    }
    bound = max(times, key=lambda k: times[k])
    seconds = together(times) * (1 + SPILL_COST * lacking)
    if pair * size < 16 and schedule.kind == "streaming":
        seconds *= NARROW_COST
    return Prediction(
        seconds=seconds,
        bound=bound,
        times=times,
        loads=c.loads * pair * per_thread * threads / trip_cells,
        arithmetic=c.arithmetic / s.tiles,
        registers=registers,
        resident=resident,
        batches=batches,
        waste=s.waste,
        redundant=s.redundant,
        waves=prod(s.grid) / (target.sms * resident),
        spills=lacking > 0,
    )
