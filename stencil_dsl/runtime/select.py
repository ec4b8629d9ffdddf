"""Chooses a schedule: ranked by the model, checked by compiling, decided by measuring, as far as asked and possible."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import Literal

from stencil_dsl.errors import ScheduleError, StencilError, ToolchainError
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.runtime.devices import gpu_available, require_cupy
from stencil_dsl.runtime.partition import Partition
from stencil_dsl.runtime.race import plan_entry, race
from stencil_dsl.runtime.specialize import Form, problem_of
from stencil_dsl.runtime.tuning_store import TuningStore
from stencil_dsl.runtime.validate import TOLERANCE
from stencil_dsl.schedule import ranking
from stencil_dsl.schedule.candidates import plain_schedule
from stencil_dsl.schedule.layout import ITEMSIZE
from stencil_dsl.schedule.model import Prediction, predict
from stencil_dsl.schedule.neighbours import neighbours
from stencil_dsl.schedule.rings import suits_rings
from stencil_dsl.schedule.schedule import Schedule
from stencil_dsl.schedule.shuffle_candidates import CHUNKS, shuffle_candidates
from stencil_dsl.schedule.target import Target, target_for
from stencil_dsl.toolchain import BuildRequest, Entry, KernelCache, Toolkit, build_many
from stencil_dsl.toolchain.builder import usable_toolkit
from stencil_dsl.toolchain.cutile_adapter import available as cutile_available
from stencil_dsl.toolchain.libraries import check_toolkit

Mode = Literal["model", "compile", "measure"]

COMPILED = 6
"""Candidates that tune="compile" compiles."""

MEASURED = 24
"""Candidates that tune="measure" compiles and times."""

RACED_LANES = 6
"""Shuffle schedules that tune="measure" adds to them."""

LANES_MARGIN = 1.75
"""How much faster a shuffle schedule must be predicted than all others to be chosen without timing either: the errors
of both predictions together (`python -m repro.ranking lanes`)."""


@dataclass
class Candidate:
    """One schedule on its way through the selection.

    Attributes:
        partition: the kernels of a sweep, once it is made. entries: these compiled, the main part's first.
        ms: measured milliseconds of a sweep, where it was measured.
        out: why it was dropped, or "".
    """

    schedule: Schedule
    prediction: Prediction
    partition: Partition | None = None
    entries: Sequence[Entry] = ()
    ms: float | None = None
    out: str = ""


def rank(definition: Definition, form: Form, order: str, target: Target) -> list[Candidate]:
    """All legal candidates for a form, the one predicted fastest first."""
    ranked = ranking.rank(problem_of(definition, form), order, target)
    return [Candidate(schedule, prediction) for schedule, prediction in ranked]


def links(toolkit: Toolkit | str | None) -> bool:
    """Whether kernels may call tile libraries: unless a toolkit is at hand that cannot link them."""
    try:
        check_toolkit(usable_toolkit(toolkit))
    except ToolchainError:
        return not cutile_available()
    return True


def rank_lanes(definition: Definition, form: Form, order: str, target: Target) -> list[Candidate]:
    """All legal shuffle schedules, which call a tile library, the one predicted fastest first; there may be none."""
    assert form.shape is not None
    problem = problem_of(definition, form)
    found: list[Candidate] = []

    def enter(schedules: Iterable[Schedule]) -> None:
        for schedule in schedules:
            with suppress(ScheduleError):
                found.append(Candidate(schedule, predict(problem, schedule, target)))
        found.sort(key=lambda c: c.prediction.seconds)

    enter(shuffle_candidates(definition.graph, definition.dtype, form.shape, order))
    enter([c.schedule.with_(chunk=n) for c in found[: ranking.FITTED] for n in CHUNKS if n <= 2 * form.shape[0]])
    return found


def with_libraries(
    definition: Definition, form: Form, order: str, target: Target, toolkit: Toolkit | str | None
) -> list[Candidate]:
    """The shuffle schedules to race; none where a toolkit is at hand that cannot link a tile library.

    Without any toolkit they are looked for in the cache like all others.
    """
    return rank_lanes(definition, form, order, target)[:RACED_LANES] if links(toolkit) else []


def clearly_faster(
    definition: Definition, form: Form, order: str, target: Target, toolkit: Toolkit | str | None, than: Candidate
) -> list[Candidate]:
    """The shuffle schedule predicted fastest, where it is so by more than the model errs and can be linked."""
    assert form.shape is not None
    arrays = len(definition.fields) + len(definition.outputs)
    # No schedule is predicted faster than its compulsory bytes; most stencils are too near to them to look further.
    if than.prediction.seconds <= LANES_MARGIN * arrays * prod(form.shape) * ITEMSIZE[definition.dtype] / target.hbm:
        return []
    best = rank_lanes(definition, form, order, target)[:1]
    return [c for c in best if c.prediction.seconds * LANES_MARGIN < than.prediction.seconds and links(toolkit)]


def compile_best(
    definition: Definition,
    form: Form,
    ranked: list[Candidate],
    count: int,
    arch: str,
    toolkit: Toolkit | str | None,
    cache: KernelCache | None,
    note: Callable[[str], None],
) -> list[Candidate]:
    """Compile the first `count` in parallel processes; those that spill in the loop are dropped while others remain."""
    chosen = ranked[:count]
    made = [c.partition or Partition(definition, form, c.schedule, arch) for c in chosen]
    requests = [BuildRequest(**request, toolkit=toolkit) for p in made for request in p.requests(arch)]
    results = iter(build_many(requests, cache=cache))
    for done, (candidate, partition) in enumerate(zip(chosen, made, strict=True), 1):
        candidate.partition = partition
        mine = [next(results) for _ in partition.specs]
        entries = [r for r in mine if isinstance(r, Entry)]
        if len(entries) < len(mine):
            candidate.out = str(next(r for r in mine if not isinstance(r, Entry))).splitlines()[0]
        else:
            candidate.entries = entries
            spills = sum(e.resources.loop_spills or 0 for e in entries)
            candidate.out = f"spills {spills} times in the loop" if spills else ""
        note(f"compiled {done} of {len(chosen)}: {candidate.schedule} {candidate.out}")
    kept = [c for c in chosen if not c.out]
    if not kept:
        kept = [c for c in chosen if c.entries]
        for c in kept:
            c.out = ""
    if not kept:
        raise ToolchainError("none of the best schedules compiles; the first said: " + chosen[0].out)
    return kept


def choose(
    definition: Definition,
    form: Form,
    order: str,
    mode: Mode,
    arch: str,
    toolkit: Toolkit | str | None,
    cache: KernelCache | None,
    store: TuningStore | None,
    progress: bool = False,
) -> Schedule:
    """The schedule to use.

    A stored choice wins over the model, and is not measured again.

    Args:
        mode: "model" compiles nothing; "compile" compiles the best few and drops what spills; "measure" also times
            them on the device, and then schedules one step away from the fastest.

    Raises:
        StencilError: for an unknown mode.
        GpuUnavailableError: for mode "measure" without a device.
    """
    if mode not in ("model", "compile", "measure"):
        raise StencilError(f"tune is 'model', 'compile' or 'measure', got {mode!r}")
    assert form.shape is not None
    target = target_for(arch)
    gpu, kit = _names(target, toolkit, mode)
    store = store or TuningStore.default()
    known = store.find(definition.graph, definition.dtype, order, form.shape, gpu, kit)
    if known is not None and _legal(definition, form, known, arch) and (known.kind != "shuffle" or links(toolkit)):
        return known
    ranked = rank(definition, form, order, target)
    if mode != "measure":
        ranked = clearly_faster(definition, form, order, target, toolkit, ranked[0]) + ranked
    if mode == "model":
        return ranked[0].schedule
    note = _printer() if progress else _silent
    number = COMPILED if mode == "compile" else MEASURED
    if mode == "measure":
        extra = with_libraries(definition, form, order, target, toolkit)
        ranked, number = ranked[:number] + extra, number + len(extra)
    kept = compile_best(definition, form, ranked, number, arch, toolkit, cache, note)
    if mode == "compile":
        return kept[0].schedule
    best = measure(definition, form, kept, arch, toolkit, cache, note)
    raced = len(kept)
    problem = problem_of(definition, form)
    near = [Candidate(s, ranking.estimate(problem, s, target)) for s in neighbours(problem, best.schedule, target)]
    if near:
        kept = compile_best(definition, form, [best, *near], len(near) + 1, arch, toolkit, cache, note)
        best = measure(definition, form, kept, arch, toolkit, cache, note)
        raced += len(kept)
    _remember(store, definition, form, gpu, kit, best, raced)
    return best.schedule


def contest(
    definition: Definition,
    form: Form,
    schedules: Sequence[Schedule | Partition],
    arch: str,
    store: TuningStore,
    toolkit: Toolkit | str | None = None,
    cache: KernelCache | None = None,
) -> list[Candidate]:
    """Compile given schedules, race them on the device and store the fastest.

    Schedules that are not legal, do not compile, spill or compute wrong values drop out; raises where none is left.

    Args:
        schedules: or what they make of this definition and form, where that is at hand already.

    Returns:
        those that were timed, the fastest first.
    """
    assert form.shape is not None
    target, problem = target_for(arch), problem_of(definition, form)
    entered = []
    for each in schedules:
        schedule, made = (each.schedule, each) if isinstance(each, Partition) else (each, None)
        with suppress(ScheduleError):
            entered.append(Candidate(schedule, ranking.estimate(problem, schedule, target), made))
    kept = compile_best(definition, form, entered, len(entered), arch, toolkit, cache, _silent)
    best = measure(definition, form, kept, arch, toolkit, cache, _silent)
    _remember(store, definition, form, *_names(target, toolkit, "measure"), best, len(kept))
    return sorted((c for c in kept if c.ms is not None), key=lambda c: c.ms or 0.0)


def measure(
    definition: Definition,
    form: Form,
    kept: list[Candidate],
    arch: str,
    toolkit: Toolkit | str | None,
    cache: KernelCache | None,
    note: Callable[[str], None],
) -> Candidate:
    """The fastest of the compiled candidates; a plain shifted kernel is what their values are compared with."""
    require_cupy()
    plain = Partition(definition, form, plain_schedule(definition.ndim), arch)
    plans = [plan_entry(plain, plain.compile(arch, toolkit, cache))]
    plans += [plan_entry(c.partition, c.entries) for c in kept if c.partition is not None]
    times = race(plans, plain, TOLERANCE[definition.dtype], note)
    for candidate, (ms, why) in zip(kept, times[1:], strict=True):
        candidate.ms, candidate.out = ms, why
        note(f"{candidate.schedule}: {why or f'{ms:.4f} ms'}")
    timed = [c for c in kept if c.ms is not None]
    if not timed:
        raise StencilError(f"no candidate could be measured; the first said: {kept[0].out}")
    return min(timed, key=lambda c: c.ms or 0.0)


def _remember(
    store: TuningStore, definition: Definition, form: Form, gpu: str, kit: str, best: Candidate, raced: int
) -> None:
    assert form.shape is not None
    facts = {"ms": best.ms, "shape": list(form.shape), "candidates": raced}
    store.put(definition.name, definition.graph, definition.dtype, form.shape, gpu, kit, best.schedule, facts)


def _legal(definition: Definition, form: Form, schedule: Schedule, arch: str) -> bool:
    assert form.shape is not None
    if any(definition.periodic) and not suits_rings(schedule, form.shape[-1]):
        return False
    try:
        Partition(definition, form, schedule, arch)
    except ScheduleError:
        return False
    return True


def _names(target: Target, toolkit: Toolkit | str | None, mode: Mode) -> tuple[str, str]:
    """Names of GPU and toolkit as the store knows them; on a machine without a GPU those of the target."""
    kit = toolkit.name if isinstance(toolkit, Toolkit) else toolkit or "default"
    if mode == "measure" or gpu_available():
        cupy = require_cupy()
        return cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode(), kit
    return target.name, kit


def _silent(text: str) -> None:
    pass


def _printer() -> Callable[[str], None]:
    def note(text: str) -> None:
        print(f"stencil_dsl: {text}", file=sys.stderr, flush=True)

    return note
