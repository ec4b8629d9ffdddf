"""Predicts what a schedule costs before anything is compiled, and ranks schedules by it.

The time of a sweep is bound by the busiest of five resources, and stretched by what keeps it from being busy: memory
latency that too few bytes in flight leave uncovered, blocks that do not fill the last wave, tiles that overhang.
All inputs are counted on the lowered kernel, so the model knows nothing of particular stencils.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import ceil, prod

from stencil_dsl.schedule import shifted, streaming
from stencil_dsl.schedule.counting import Counts
from stencil_dsl.schedule.expr import accesses
from stencil_dsl.schedule.problem import Problem
from stencil_dsl.schedule.schedule import Schedule
from stencil_dsl.schedule.target import Target

BASE_REGISTERS = 34
"""Addresses, indices and constants."""

MAX_REGISTERS = 255
IN_FLIGHT = 4
"""Loaded values per compute tile that are held at a time."""

SQUEEZE = 1.15
"""What the compiler can save on the estimate before it spills."""

LATENCY_CLOCKS = 800
"""From a load's issue to its data, out of device memory under load."""

OVERLAP = 0.2
"""Share of the other resources' time that the busiest does not hide."""


@dataclass(frozen=True)
class Prediction:
    """Cost of one sweep under one schedule.

    Attributes:
        seconds: predicted time of a sweep.
        bound: the resource that takes longest.
        times: seconds that each resource would take alone.
        loads: elements loaded per cell; arithmetic: floating point instructions per cell.
        registers: estimated per thread; resident: blocks that fit one SM.
        waste: cells computed over cells wanted. redundant: planes loaded over planes of a chunk.
        waves: blocks over what the GPU holds at a time.
        spills: registers are expected not to suffice.
    """

    seconds: float
    bound: str
    times: dict[str, float]
    loads: float
    arithmetic: float
    registers: int
    resident: int
    waste: float
    redundant: float
    waves: float
    spills: bool

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class Steady:
    """What the model needs of a schedule, in units of one cell.

    Attributes:
        tiles: compute tiles whose operations one trip holds.
        lines: bytes fetched through the L2 over the bytes of one element, halo rows of neighbouring blocks included.
    """

    counts: Counts
    grid: tuple[int, ...]
    tiles: int
    waste: float
    redundant: float
    reread: float
    lines: float


def steady(problem: Problem, schedule: Schedule) -> Steady:
    """Count a schedule.

    Raises:
        ScheduleError: where it is not legal for the problem.
    """
    assert problem.shape is not None
    halo = _reach(problem)
    if schedule.kind == "shifted":
        o = shifted.outline(problem, schedule)
        assert o.grid is not None
        waste = prod(o.grid) * prod(schedule.tile) / prod(problem.shape)
        lines = prod((t + w) / t for t, w in zip(schedule.tile, halo, strict=True))
        return Steady(shifted.count(problem, schedule), o.grid, 1, waste, 1.0, 1.0, lines)
    s = streaming.outline(problem, schedule)
    g = s.geometry
    lo = max((-t.lo for t in s.plan.sums), default=0)
    hi = max((t.hi for t in s.plan.sums), default=0)
    chunk = g.nx / g.chunks
    waste = g.tiles_y * g.ty * g.tiles_z * g.tz * g.pair / (g.ny * g.nz)
    rows, width = g.rows * g.ty, g.tz * g.pair
    lines = (width + halo[-1]) / width * ((rows + halo[1]) / rows if problem.ndim == 3 else 1.0)
    # Before the first complete plane only centre lines are read, after the last everything but those.
    redundant = 1 + (0.25 * lo + (0.5 if g.tail else 1.0) * hi) / chunk
    counts = streaming.count(problem, schedule, s)
    return Steady(counts, s.grid, g.rows * g.pair * g.unroll, waste, redundant, 1 + (lo + hi) / chunk, lines)


def _reach(problem: Problem) -> list[int]:
    """Per axis the widths of the halo on both sides together."""
    nodes = accesses(problem.graph.outputs)
    return [
        max((n.offset[axis] for n in nodes), default=0) - min((n.offset[axis] for n in nodes), default=0)
        for axis in range(problem.ndim)
    ]


def predict(problem: Problem, schedule: Schedule, target: Target) -> Prediction:
    """Predict one sweep over a problem whose shape is known; raises like `steady`."""
    assert problem.shape is not None
    s = steady(problem, schedule)
    c = s.counts
    threads = 32 * schedule.warps
    pair = schedule.pair if schedule.kind == "streaming" else 1
    per_thread = max(1, prod(schedule.tile) // threads)
    loads = c.loads * pair / s.tiles
    arithmetic = c.arithmetic / s.tiles
    registers = BASE_REGISTERS + per_thread * (problem.itemsize // 4) * (
        c.carried + min(c.loads * pair, IN_FLIGHT * s.tiles)
    )
    cap = MAX_REGISTERS
    if schedule.occupancy is not None:
        cap = min(cap, target.registers // (schedule.occupancy * threads))
    spills = registers > cap * SQUEEZE
    resident = max(1, min(target.registers // (max(32, min(registers, cap)) * threads), target.threads // threads))
    waves = prod(s.grid) / (target.sms * resident)
    fields, outputs = len(problem.fields), len(problem.outputs)
    cells, size = prod(problem.shape), problem.itemsize
    work = cells * s.waste * s.redundant
    rate = target.fp64 if problem.dtype == "float64" else target.fp32
    sm_rate = target.sms * target.clock
    wide = loads / pair if pair * size >= 16 else loads
    times = {
        "hbm": cells * size * (fields * (0.7 + 0.3 * s.reread) + outputs) / target.hbm,
        "l2": cells * size * (s.lines * fields * s.waste * s.reread + outputs) / target.l2,
        "l1": work * loads * size / (target.l1 * sm_rate),
        "arithmetic": work * arithmetic / (rate * sm_rate),
        "issue": work * (arithmetic + 2.0 * wide + 2.0) / 32 / (target.issue * sm_rate),
    }
    bound = max(times, key=lambda k: times[k])
    others = sum(times.values()) - times[bound]
    in_flight = resident * threads * per_thread * c.loads * pair * size
    needed = target.hbm / target.sms * LATENCY_CLOCKS / target.clock
    stretch = max(1.0, (needed / max(in_flight, 1)) ** 0.5)
    tail = ceil(waves) / waves if waves < 8 else 1.0
    seconds = (times[bound] + OVERLAP * others) * stretch * (1 + 0.5 * (tail - 1))
    if spills:
        seconds *= registers / cap
    return Prediction(
        seconds, bound, times, loads, arithmetic, registers, resident, s.waste, s.redundant, waves, spills
    )
