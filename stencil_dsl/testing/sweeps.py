"""Questions about one sweep of a stencil: inputs, reference and traffic follow from its definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stencil_dsl.testing.question import Question, Reference, Source, Target, Variant
from stencil_dsl.testing.sources import RandomField
from stencil_dsl.testing.variants import CopyVariant, KernelVariant

if TYPE_CHECKING:
    import numpy as np

    from stencil_dsl.frontend.stencil import Stencil
    from stencil_dsl.runtime.definition import Definition
    from stencil_dsl.runtime.kernel import Kernel
    from stencil_dsl.schedule.schedule import Schedule

#: Relative to the largest expected magnitude: what reassociation and contracted multiply-adds may cost.
TOLERANCE = {"float64": 1e-12, "float32": 1e-5}


def sweep_question(
    name: str,
    stencil: Stencil,
    shape: Sequence[int],
    schedules: Mapping[str, Schedule | None],
    *,
    dtype: str = "float64",
    scalars: Mapping[str, float] | None = None,
    others: Sequence[Variant] = (),
    copy: bool = True,
    baseline: str | None = "copy",
    store: Path | None = None,
    steps: int = 1,
    profiled: tuple[str, ...] | None = None,
) -> Question:
    """A question with one DSL variant per schedule, a copy of the compulsory bytes, and other variants.

    Args:
        name: the question's id.
        stencil: what is computed.
        shape: extents of the interior.
        schedules: variant id to schedule; None lets the compiler choose.
        scalars: values of run-time scalars.
        others: baselines on the same inputs, named as the stencil's fields are.
        copy: adds a variant ``copy`` that moves as many bytes as one sweep must.
        baseline: what ratios are against.
        store: file of the tuning store that choices come from; None takes the user's.
        steps: applications of the stencil that one sweep makes; the reference makes them one after the other.
        profiled: ids of the variants whose counters `--ncu` reads; None: all.
    """
    from stencil_dsl.transforms.analysis import roofline

    definition = definition_of(stencil, dtype, 1)
    points = 1
    for extent in shape:
        points *= extent
    nbytes = roofline(definition.stencil)["bytes"] * points
    values = dict(scalars or {})
    inputs = {field: RandomField(seed, dtype) for seed, field in enumerate(definition.fields)}
    variants: list[Variant] = [
        KernelVariant(key, maker(stencil, dtype, steps, shape, schedule, store), definition.fields, values)
        for key, schedule in schedules.items()
    ]
    variants += others
    if copy:
        variants.append(CopyVariant("copy", nbytes))
    return Question(
        id=name,
        shape=tuple(shape),
        variants=tuple(variants),
        inputs=inputs,
        reference=reference(definition, inputs, values, steps),
        tolerance=TOLERANCE[dtype],
        dtype=dtype,
        bytes=nbytes,
        baseline=baseline,
        profiled=profiled,
    )


@cache
def definition_of(stencil: Stencil, dtype: str, steps: int) -> Definition:
    """The same for all extents and schedules: reading a wide stencil takes seconds, composing several steps longer.

    Several steps in one sweep read and write the fields of one, so only who compiles the sweep asks for them.
    """
    from stencil_dsl.runtime.definition import Definition

    return Definition.of(stencil, dtype, steps=steps)


def maker(
    stencil: Stencil,
    dtype: str,
    steps: int,
    shape: Sequence[int],
    schedule: Schedule | None,
    store: Path | None = None,
) -> Callable[[Target], Kernel]:
    """A function that compiles one or several steps of a stencil for a target, once each."""
    kernels: dict[Target, Kernel] = {}

    def make(target: Target) -> Kernel:
        made = next((k for t, k in kernels.items() if t.arch == target.arch), None)
        if target not in kernels and made is not None and schedule is not None:
            kernels[target] = made.with_toolkit(target.toolkit)
        if target not in kernels:
            from stencil_dsl.runtime.kernel import Kernel, Options
            from stencil_dsl.runtime.tuning_store import TuningStore

            options = Options(target.arch, target.toolkit, store=TuningStore(store) if store else None)
            kernels[target] = Kernel(definition_of(stencil, dtype, steps), shape, schedule, options)
        return kernels[target]

    return make


def reference(
    definition: Definition, inputs: Mapping[str, Source], scalars: Mapping[str, float], steps: int = 1
) -> Reference:
    """The NumPy meaning of the stencil on any box of the interior; of several steps, one application after the other.

    A box is computed once, however many variants are compared with it.

    Args:
        definition: of one application.
    """

    @cache
    def expected(lo: tuple[int, ...], shape: tuple[int, ...]) -> Sequence[np.ndarray]:
        import numpy

        from stencil_dsl.reference.numpy_eval import evaluate

        once = definition.halo
        before = tuple(steps * width for width, _ in once)
        start = tuple(at - width for at, width in zip(lo, before, strict=True))
        full = tuple(n + steps * (a + b) for n, (a, b) in zip(shape, once, strict=True))
        fields: list[Any] = [inputs[field](start, full, numpy) for field in definition.fields]
        values = [scalars[s] for s in definition.scalars]
        for _ in range(steps):
            left = tuple(n - a - b for n, (a, b) in zip(fields[0].shape, once, strict=True))
            fields = evaluate(definition.stencil, fields, [tuple(a for a, _ in once)] * len(fields), left, values)
        return fields

    return expected
