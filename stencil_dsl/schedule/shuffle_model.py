"""What a shuffle schedule costs, in the terms of the ranking model (`model`), from what a trip is counted to do.

Unlike streaming, each row is loaded once, and what a warp lacks at its ends once more; lanes exchange 32 bits an
instruction, in the unit that loads as well; and the compiler of device functions keeps a trip's loads in registers
together. `python -m repro.ranking lanes` says how good the predictions are.
"""

from __future__ import annotations

from math import ceil, prod

from stencil_dsl.schedule.counting import Counts
from stencil_dsl.schedule.prediction import Prediction, reaches, together
from stencil_dsl.schedule.problem import Problem
from stencil_dsl.schedule.schedule import PAIR_BYTES, Schedule
from stencil_dsl.schedule.shuffle import check_reach
from stencil_dsl.schedule.shuffle_counting import count
from stencil_dsl.schedule.shuffle_function import WARP
from stencil_dsl.schedule.streaming import Outline, outline
from stencil_dsl.schedule.streaming_body import Geometry
from stencil_dsl.schedule.target import Target

BASE_REGISTERS, MAX_REGISTERS = 17, 255
"""Addresses, indices and constants; the most that a thread can have."""

LOAD_SHARE = 1.75
"""Registers that the compiler gives to loads, for each that a trip loads. Read off kernels for sm_90."""

LEAST_CAP, HINTED_THREADS = 64, 128
"""The assembler grants so many registers whatever the occupancy, and takes smaller blocks for ones of 128 threads."""

STAGED_OCCUPANCY, STAGED_WARPS, STAGED_ROOM = 2, 4, 0.95
"""Up to this occupancy, blocks of so many warps carry a second trip's loads through the loop where that share of the
registers holds them: star-7 in four rows has 198 instead of 104 registers, and half as many blocks."""

SLACK, WIDE_SLACK = 20, -16
"""Registers by which the order that operations are written in overestimates what must be held; less than nothing where
a lane's elements are more than one load. Read off kernels for sm_90: spills in the loop begin there."""

ROOM = 20
"""Registers that loads have at the least: a loop that lacks them spills instead of loading one by one."""

START_CLOCKS, BATCH_CLOCKS, LOAD_CLOCKS = 790, 850, 7.3
"""As in `model`: of a trip, of each round of its loads, of a scheduler for a load. These and the following were fitted
to the timings on an H200 of `results/nvidia-h200/lanes.csv`; see docs/decisions.md."""

SHUFFLE_CLOCKS = 2.75
"""Of a scheduler for 32 bits from another lane, the choice between row and halo before it included."""

WAVEFRONT = 128
"""Bytes that the load/store unit moves at a time."""

NEAR_ROWS = 0.25
"""Of the rows that neighbouring blocks along y own, those that the L2 delivers again."""

HALO_BYTES = 32
"""What a block's warps fetch beyond each end of their row, a sector."""

SHARPNESS = 4.0
"""How much the busiest resource hides the others; a warp that waits for lanes hides less than one that only loads."""

WRITES = 2.1
"""What a written line costs the L2, in read ones; as in `model`."""

SPILL_COST = 2.5
"""Relative cost of lacking as many registers as there are."""

TIGHT_COST = 0.27
"""Relative cost of lacking as many of the registers that the compiler would give to loads: fewer are under way."""

SHARED_COST = 0.36
"""Relative cost of a lane's elements being more than one load: the assembler joins them in shared memory."""


def registers(c: Counts, schedule: Schedule, target: Target, size: int, per_thread: int) -> tuple[int, int, int, float]:
    """(cap, wanted, held by loads, shortage relative to the cap) of a thread.

    Args:
        size: bytes of an element.
        per_thread: runs of `pair` elements of a row that a thread owns.
    """
    words = per_thread * size // 4
    threads = WARP * schedule.warps
    cap = MAX_REGISTERS
    if schedule.occupancy is not None:
        granted = target.registers // (schedule.occupancy * max(threads, HINTED_THREADS)) // 8 * 8
        cap = min(cap, max(granted, LEAST_CAP))
    carried, loaded = words * c.carried, words * (c.loads * schedule.pair + c.gathers)
    held = BASE_REGISTERS + words * c.live
    wanted = max(held, BASE_REGISTERS + carried + int(LOAD_SHARE * loaded))
    staged = BASE_REGISTERS + carried + int(2 * LOAD_SHARE * loaded)
    loose = (schedule.occupancy or 1) <= STAGED_OCCUPANCY and schedule.warps >= STAGED_WARPS
    if loose and staged <= STAGED_ROOM * cap:
        wanted = max(wanted, staged)
    slack = SLACK if size * schedule.pair <= PAIR_BYTES else WIDE_SLACK
    return cap, wanted, loaded, max(0.0, (held - slack - cap) / cap)


def _lines(problem: Problem, g: Geometry) -> float:
    """Elements of all fields fetched through the L2 for a cell."""
    width, sector = g.tz * g.pair, HALO_BYTES // problem.itemsize
    total = 0.0
    for reach in reaches(problem):
        along_y = (g.rows + NEAR_ROWS * reach[1]) / g.rows if problem.ndim == 3 else 1.0
        total += (width + 2 * sector * bool(reach[-1])) / width * along_y
    return total


def _waste(g: Geometry) -> float:
    """Cells computed over cells wanted; a last block along y moves back over rows of its neighbour's."""
    rows = ceil(g.tiles_y / g.rows) * g.rows * g.ty
    return rows * g.tiles_z * g.tz * g.pair / (g.ny * g.nz)


def predict(problem: Problem, schedule: Schedule, target: Target) -> Prediction:
    """Predict one sweep over a problem whose shape is known.

    Raises:
        ScheduleError: where the schedule is not legal, or neighbours lie more than a warp away.
    """
    assert problem.shape is not None
    o = outline(problem, schedule)
    check_reach(problem, schedule, o.plan)
    return _predicted(problem, schedule, target, o, count(problem, schedule, o))


def _predicted(problem: Problem, schedule: Schedule, target: Target, o: Outline, c: Counts) -> Prediction:
    assert problem.shape is not None
    g, size, threads = o.geometry, problem.itemsize, WARP * schedule.warps
    per_thread = g.tz // threads
    cap, wanted, loaded, lacking = registers(c, schedule, target, size, per_thread)
    used = max(32, min(cap, wanted))
    tight, shared = max(0.0, (wanted - cap) / cap), size * g.pair > PAIR_BYTES
    # Registers are dealt out by eights, and an SM holds so many blocks at a time.
    resident = min(target.registers // (-(-used // 8) * 8 * threads), target.threads // threads, target.blocks)
    resident = max(1, resident)
    room = max(ROOM, cap - BASE_REGISTERS - per_thread * size // 4 * c.carried)
    batches = max(1.0, loaded / room)

    lo = max((-s.lo for s in o.plan.sums), default=0)
    hi = max((s.hi for s in o.plan.sums), default=0)
    chunk = g.nx / g.chunks
    waste, reread = _waste(g), 1 + (lo + hi) / chunk
    redundant = 1 + (0.25 * lo + (0.5 if g.tail else 1.0) * hi) / chunk
    fields, outputs, cells = len(problem.fields), len(problem.outputs), prod(problem.shape)
    trip_cells, blocks = g.rows * g.tz * g.pair * g.unroll, prod(o.grid)
    held_blocks, waves = min(blocks, target.sms * resident), blocks / (target.sms * resident)
    # As for other schedules: few blocks take whole waves.
    trips = cells * waste * redundant / (trip_cells * blocks) * (ceil(waves) if waves < 3 else waves)

    # What a warp issues in a trip; a gather touches all lines of its row.
    shuffles = per_thread * c.shuffles * size // 4
    loads, stores = per_thread * (c.loads + c.gathers), per_thread * c.stores
    wide = max(1.0, g.pair * size * WARP / WAVEFRONT)
    rate = target.fp64 if problem.dtype == "float64" else target.fp32
    busy = per_thread * c.arithmetic * 128 / rate + SHUFFLE_CLOCKS * shuffles + LOAD_CLOCKS * (loads + stores)
    warps = held_blocks / target.sms * schedule.warps
    times = {
        "latency": trips * (START_CLOCKS + BATCH_CLOCKS * batches + busy) / target.clock,
        "issue": trips * warps / target.issue * busy / target.clock,
        "hbm": cells * size * (fields * (1 + 0.25 * (reread - 1)) + outputs) / target.hbm,
        "l2": cells * size * (_lines(problem, g) * waste * reread + WRITES * outputs) / target.l2,
        "lsu": trips * warps * (shuffles + wide * (loads + stores)) / (target.lsu * target.clock),
    }
    return Prediction(
        seconds=together(times, SHARPNESS) * (1 + SPILL_COST * lacking + TIGHT_COST * tight + SHARED_COST * shared),
        bound=max(times, key=lambda k: times[k]),
        times=times,
        loads=per_thread * threads * (c.loads * g.pair + c.gathers) / trip_cells,
        arithmetic=per_thread * threads * c.arithmetic / trip_cells,
        registers=used,
        resident=resident,
        batches=batches,
        waste=waste,
        redundant=redundant,
        waves=waves,
        spills=lacking > 0,
        shuffles=threads * shuffles / trip_cells,
    )
