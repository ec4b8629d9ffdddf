"""Ranks the schedules of a problem: sweeps in one pass, and what whole blocks cover with strips beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stencil_dsl.errors import ScheduleError
from stencil_dsl.schedule.candidates import candidates, thin_candidates
from stencil_dsl.schedule.layout import Box
from stencil_dsl.schedule.model import Prediction, predict
from stencil_dsl.schedule.neighbours import fitted_chunks
from stencil_dsl.schedule.problem import Problem
from stencil_dsl.schedule.rings import suits_rings
from stencil_dsl.schedule.schedule import Schedule
from stencil_dsl.schedule.strips import cut, cuts, main_part, part
from stencil_dsl.schedule.target import Target

Ranked = list[tuple[Schedule, Prediction]]

FITTED, FEW_WAVES = 4, 3.0
"""So many of the best get chunks that fill the GPU, where their blocks fill it fewer times than that."""

STRIP_SECONDS = 2e-6
"""Of a strip's launch, during which the part before it has left most of the GPU idle."""


def one_pass(problem: Problem, order: str, target: Target) -> Ranked:
    """The legal candidates that sweep the interior in one launch, the one predicted fastest first.

    Raises:
        ScheduleError: where none is legal.
    """
    assert problem.shape is not None
    found = []
    listed = [
        *candidates(problem.graph, problem.dtype, problem.shape, order),
        *thin_candidates(problem.shape, order),
    ]
    for schedule in dict.fromkeys(listed):
        if any(problem.periodic) and not suits_rings(schedule, problem.shape[-1]):
            continue
        try:
            found.append((schedule, predict(problem, schedule, target)))
        except ScheduleError:
            continue
    if not found:
        raise ScheduleError(f"no schedule is legal for {problem.name} on {problem.shape}")
    found.sort(key=_seconds)
    known = {schedule for schedule, _ in found}
    for best, prediction in found[:FITTED]:
        # Where blocks are few, it matters whether the last ones fill the GPU.
        if best.kind == "streaming" and prediction.waves < FEW_WAVES:
            for schedule in (best.with_(chunk=n) for n in fitted_chunks(problem, best, target)):
                if schedule not in known:
                    known.add(schedule)
                    found.append((schedule, predict(problem, schedule, target)))
    return sorted(found, key=_seconds)


def strip_schedule(problem: Problem, order: str, target: Target) -> tuple[Schedule, Prediction]:
    """The schedule of a strip, and its time; many schedules of an interior leave the same strips."""
    key = (problem.dtype, problem.shape, problem.inputs, problem.inplace, problem.periodic, order, target)
    if key not in problem.graph.strips:
        problem.graph.strips[key] = one_pass(problem, order, target)[0]
    return problem.graph.strips[key]


def parts(problem: Problem, schedule: Schedule, target: Target) -> list[tuple[Box, Schedule]]:
    """The boxes that one sweep launches a kernel on, each with the schedule of its kernel; the main part first.

    The strips' schedules keep the order of operations that the schedule has. They depend on the target's data sheet
    only, so a machine that has the kernels in a cache finds them.
    """
    assert problem.shape is not None
    main, *strips = cut(problem.shape, schedule)
    chosen = [(box, strip_schedule(part(problem, box), schedule.order, target)[0]) for box in strips]
    return [(main, schedule.with_(strips="")), *chosen]


def estimate(problem: Problem, schedule: Schedule, target: Target) -> Prediction:
    """Predict a sweep with its strips: what `predict` says of the main part, and the time of all.

    Raises:
        ScheduleError: where the schedule is not legal for what whole blocks cover.
    """
    assert problem.shape is not None
    found = predict(*main_part(problem, schedule), target)
    return _with_strips(problem, schedule, found, target)


def _with_strips(problem: Problem, schedule: Schedule, main: Prediction, target: Target) -> Prediction:
    assert problem.shape is not None
    _, *strips = cut(problem.shape, schedule)
    seconds = sum(
        strip_schedule(part(problem, box), schedule.order, target)[1].seconds + STRIP_SECONDS for box in strips
    )
    return replace(main, seconds=main.seconds + seconds, strips=seconds)


def rank(problem: Problem, order: str, target: Target) -> Ranked:
    """All legal candidates, with strips or without, the one predicted fastest first; raises like `one_pass`."""
    found = one_pass(problem, order, target)
    return sorted([*found, *_cut_ones(problem, found, target)], key=_seconds)


def _cut_ones(problem: Problem, ranked: Ranked, target: Target) -> Iterator[tuple[Schedule, Prediction]]:
    """Those of the candidates that gain by strips, and beat the best without."""
    shape, best = problem.shape, ranked[0][1].seconds
    assert shape is not None
    for schedule, whole in ranked:
        # No strip is cheaper than its launch, and nothing makes cells cheaper than the ones that are wanted.
        if whole.waste == 1.0 or whole.seconds / whole.waste + STRIP_SECONDS > best:
            continue
        for axes in cuts(shape, schedule):
            trial = schedule.with_(strips=axes)
            try:
                main = predict(*main_part(problem, trial), target)
            except ScheduleError:
                continue
            if main.seconds + len(axes) * STRIP_SECONDS < best:
                found = _with_strips(problem, trial, main, target)
                if found.seconds < best:
                    yield trial, found


def _seconds(item: tuple[Schedule, Prediction]) -> float:
    return item[1].seconds
