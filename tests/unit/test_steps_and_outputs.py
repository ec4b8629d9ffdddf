"""Several steps composed into one sweep, and parts of a stencil's outputs."""

from __future__ import annotations

import numpy as np
import pytest

from repro import stencils
from stencil_dsl import Schedule, StencilError, asarray, compile, stencil, zeros
from stencil_dsl.reference.numpy_eval import evaluate
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.schedule.plan import make_plan
from stencil_dsl.transforms.analysis import accesses, field_names, output_names, the_apply
from stencil_dsl.transforms.pipeline import pipeline
from stencil_dsl.transforms.select_outputs import SelectOutputsPass


@stencil
def drift(u, i, j):
    return 0.5 * u[i - 1, j] + 0.25 * u[i, j + 2] - u[i, j] / 8 + 0.125


def reachable(offsets: set[tuple[int, ...]], steps: int) -> set[tuple[int, ...]]:
    """Offsets that so many steps in a row read."""
    reached = {(0,) * len(next(iter(offsets)))}
    for _ in range(steps):
        reached = {tuple(a + b for a, b in zip(r, o, strict=True)) for r in reached for o in offsets}
    return reached


@pytest.mark.parametrize(("f", "steps"), [(stencils.star_7, 3), (stencils.star_13, 2), (drift, 4)])
def test_composed_steps_equal_single_ones(f, steps: int) -> None:
    single = {offset for _, offset in accesses(the_apply(Definition.of(f, "float64").stencil))}
    tile = (1,) * (f.ndim - 1) + (64,)
    kernel = compile(f, temporal_steps=steps, schedule=Schedule(tile=tile, order="fast"))
    composed = {offset for _, offset in accesses(the_apply(kernel.definition.stencil))}
    assert composed == reachable(single, steps)
    outcome = kernel.validate(device="cpu")
    assert outcome.ok, outcome.message
    assert outcome.max_rel_err < 1e-14


def test_symmetric_neighbours_keep_equal_coefficients() -> None:
    kernel = compile(
        stencils.star_7,
        shape=(32, 32, 256),
        temporal_steps=3,
        schedule=Schedule("streaming", tile=(1, 1, 128), pair=2, order="fast"),
    )
    (total,) = make_plan(kernel.definition.graph, fast=True).sums
    # The 63-point diamond has 10 classes of offsets; more groups would mean coefficients that differ by rounding.
    assert len(total.groups) <= 10


@stencil
def squares(u, i):
    return u[i - 1] * u[i + 1]


@stencil
def scaled(u, dt, i):
    return u[i] + dt * u[i + 1]


@stencil
def clipped(u, i):
    return max(u[i], 0.0)


@pytest.mark.parametrize(
    ("f", "reason"), [(squares, "not linear"), (scaled, "run-time scalars"), (clipped, "maximumf")]
)
def test_what_cannot_be_composed_is_refused(f, reason: str) -> None:
    with pytest.raises(StencilError, match=reason):
        compile(f, temporal_steps=2)


@stencil
def react(u, c, dt, i, j):
    return u[i, j] + dt * c[i + 1, j] * u[i - 1, j + 1] * u[i, j - 2]


@pytest.mark.parametrize("padded", [True, False])
def test_several_launches_stand_for_what_cannot_be_composed(padded: bool) -> None:
    """Three applications of a non-linear stencil with a coefficient, against NumPy; the halo grows with them."""
    kernel = compile(react, temporal_steps=3, temporal_fallback=True, order="source")
    assert kernel.halo == ((3, 3), (6, 3)) and kernel.validate(device="cpu").ok
    shape, rng = (4, 5), np.random.default_rng(8)
    u, c = rng.normal(size=(2, 4 + 6, 5 + 9))
    want = u
    for left in (2, 1, 0):
        rows, columns = 4 + 2 * left, 5 + 3 * left
        box = c[3 - left :, 6 - 2 * left :][1 : rows + 1, :columns]
        old = want[:rows, 3 : columns + 3], want[1 : rows + 1, :columns]
        want = want[1 : rows + 1, 2 : columns + 2] + 0.5 * box * old[0] * old[1]
    out = zeros(shape, kernel.halo, device="cpu")
    fields = [asarray(f, kernel.halo, device="cpu", includes_halo=True) for f in (u, c)] if padded else [u, c]
    launch = kernel.bind(*fields, out, dt=0.25)
    launch.set_scalars([0.5])
    launch.launch()
    np.testing.assert_allclose(out.interior, want, rtol=1e-14)
    with pytest.raises(StencilError, match="overlaps field 'u'"):
        kernel.bind(fields[0], fields[1], fields[0], dt=0.5)
    with pytest.raises(StencilError, match="temporal_fallback=True makes 3 launches instead"):
        compile(react, temporal_steps=3)
    assert not hasattr(compile(drift, temporal_steps=2, temporal_fallback=True), "once")


def test_selected_outputs_keep_their_values() -> None:
    whole = Definition.of(stencils.cns, "float64")
    part = pipeline([SelectOutputsPass((4, 0))]).run(whole.stencil.clone())
    assert output_names(part) == (whole.outputs[4], whole.outputs[0])
    assert field_names(part) == tuple(n for n in whole.fields)
    rng = np.random.default_rng(3)
    shape, origin = (3, 4, 5), (4, 4, 4)
    data = {n: rng.uniform(-1, 1, tuple(s + 8 for s in shape)) for n in whole.fields}
    expected = evaluate(whole.stencil, [data[n] for n in whole.fields], [origin] * 8, shape, [])
    names = field_names(part)
    got = evaluate(part, [data[n] for n in names], [origin] * len(names), shape, [])
    np.testing.assert_array_equal(got[0], expected[4])
    np.testing.assert_array_equal(got[1], expected[0])


def test_selecting_narrows_the_fields() -> None:
    whole = Definition.of(stencils.cns, "float64")
    part = pipeline([SelectOutputsPass((4,))]).run(whole.stencil.clone())
    assert field_names(part) == ("c4", "q1", "q2", "q3", "q4")
    with pytest.raises(StencilError, match="distinct positions"):
        pipeline([SelectOutputsPass((5,))]).run(whole.stencil.clone())
