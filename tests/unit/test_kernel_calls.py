"""Calling kernels: one specialisation a shape, scalars at run time, updates in place, fused kernels."""

from __future__ import annotations

import numpy as np
import pytest

from stencil_dsl import Schedule, StencilError, asarray, compile, compile_fused, empty, stencil, zeros
from stencil_dsl.errors import ScheduleError
from stencil_dsl.runtime import partition as partition_module
from stencil_dsl.runtime.specialize import Specialization

ROW = Schedule(tile=(1, 16))
MARCH = Schedule("streaming", tile=(1, 8), pair=2, chunk=4, order="fast")


@stencil
def heat(u, dt, i, j):
    return u[i, j] + dt * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])


@stencil
def decay(v, w, dt, i, j):
    return v[i, j] - dt * w[i, j + 1], w[i, j - 1] + v[i, j]


@stencil
def turn(u, v, i, j):
    """Both fields are replaced at once: the second output needs what the first one overwrites."""
    return v[i, j], 0.0 - u[i, j]


def field(shape, halo=1, seed=0):
    data = np.random.default_rng(seed).uniform(-1, 1, tuple(n + 2 * halo for n in shape))
    return asarray(data, halo, includes_halo=True, device="cpu"), data


def heat_by_hand(data, dt):
    c = data[1:-1, 1:-1]
    return c + dt * (data[:-2, 1:-1] + data[2:, 1:-1] + data[1:-1, :-2] + data[1:-1, 2:] - 4 * c)


@pytest.fixture
def specialised(monkeypatch):
    """Every specialisation made while a test runs."""
    made = []

    def counted(definition, form, schedule):
        made.append(form)
        return Specialization(definition, form, schedule)

    monkeypatch.setattr(partition_module, "Specialization", counted)
    return made


# -- one kernel, several shapes and scalars


@pytest.mark.parametrize("schedule", [ROW, MARCH])
def test_one_specialisation_a_shape(specialised, schedule) -> None:
    kernel = compile(heat, schedule=schedule)
    assert specialised == []
    for shape in ((5, 33), (6, 33), (5, 33), (6, 33)):
        u, data = field(shape)
        out = empty(shape, 1, device="cpu")
        kernel(u, out, dt=0.1)
        np.testing.assert_allclose(out.interior, heat_by_hand(data, 0.1), rtol=0, atol=1e-14)
    assert [f.shape for f in specialised] == [(5, 33), (6, 33)]


def test_a_dynamic_kernel_is_made_once(specialised) -> None:
    kernel = compile(heat, schedule=ROW.with_(static_shape=False))
    for shape in ((5, 33), (6, 70), (1, 1)):
        u, data = field(shape)
        out = empty(shape, 1, device="cpu")
        kernel(u, out, dt=0.1)
        assert np.array_equal(out.interior, heat_by_hand(data, 0.1))
    assert [f.shape for f in specialised] == [None]
    assert kernel.source.startswith('"""Stencil heat on any shape float64 cells.')


def test_layouts_are_part_of_a_specialisation(specialised) -> None:
    kernel = compile(heat, schedule=ROW)
    u, data = field((5, 33))
    out = empty((5, 33), 1, device="cpu")
    kernel(u, out, dt=0.1)
    plain = np.empty((5, 33))
    kernel(data, plain, dt=0.1)
    assert len(specialised) == 2
    assert np.array_equal(plain, out.interior)


def test_new_scalars_are_no_new_kernel(specialised) -> None:
    kernel = compile(heat, schedule=ROW)
    u, data = field((5, 33))
    out = empty((5, 33), 1, device="cpu")
    launch = kernel.bind(u, out, dt=0.25)
    for dt in (0.1, -1 / 3, 1e-300, 0.0, -0.0):
        launch.set_scalars([dt])
        launch.launch()
        assert np.array_equal(out.interior, heat_by_hand(data, dt))
    kernel(u, out, dt=7)
    assert np.array_equal(out.interior, heat_by_hand(data, 7.0))
    assert len(specialised) == 1


def test_float32_scalars_are_rounded_once() -> None:
    kernel = compile(heat, dtype="float32", schedule=ROW)
    u, data = field((5, 33))
    single = asarray(u.with_halo(((1, 1), (1, 1))), 1, "float32", includes_halo=True, device="cpu")
    out = empty((5, 33), 1, "float32", device="cpu")
    kernel(single, out, dt=0.1)
    assert np.array_equal(out.interior, heat_by_hand(data.astype("f4"), np.float32(0.1)))


def test_bound_launches_read_what_the_arrays_hold_then() -> None:
    kernel = compile(heat, schedule=ROW)
    u, data = field((5, 33))
    out = empty((5, 33), 1, device="cpu")
    launch = kernel.bind(u, out, dt=0.5)
    u.with_halo(((1, 1), (1, 1)))[...] *= 2
    launch.launch()
    assert np.array_equal(out.interior, heat_by_hand(2 * data, 0.5))


def test_two_steps_by_swapping() -> None:
    kernel = compile(heat, schedule=ROW)
    a, data = field((5, 33))
    b = zeros((5, 33), 1, device="cpu")
    kernel(a, b, dt=0.1)
    kernel(b, a, dt=0.1)
    once = np.zeros_like(data)
    once[1:-1, 1:-1] = heat_by_hand(data, 0.1)
    assert np.array_equal(a.interior, heat_by_hand(once, 0.1))


# -- in place


@pytest.mark.parametrize(
    "schedule",
    [
        ROW,
        ROW.with_(static_shape=False),
        ROW.with_(loads="checked"),
        Schedule(tile=(4, 8)),
        MARCH,
        MARCH.with_(order="source", carry="queue"),
        MARCH.with_(unroll=2, rows=1, chunk=7),
    ],
    ids=str,
)
def test_both_fields_are_replaced_by_each_other(schedule) -> None:
    u, du = field((9, 37), seed=1)
    v, dv = field((9, 37), seed=2)
    compile(turn, schedule=schedule)(u, v, u, v)
    assert np.array_equal(u.interior, dv[1:-1, 1:-1])
    assert np.array_equal(v.interior, 0.0 - du[1:-1, 1:-1])
    assert np.array_equal(u.with_halo(((1, 1), (1, 1)))[0], du[0])


def test_in_place_is_told_to_the_compiler() -> None:
    u, v = field((9, 37), seed=1)[0], field((9, 37), seed=2)[0]
    a, b = empty((9, 37), 1, device="cpu"), empty((9, 37), 1, device="cpu")
    kernel = compile(turn, schedule=ROW)
    groups = [p.alias_groups for p in kernel.bind(u, v, u, v).spec.params]
    assert len(set(groups)) == 1 and groups[0]
    assert all(p.alias_groups == () for p in kernel.bind(u, v, a, b).spec.params)


@stencil
def lift(u, v, i, j, k):
    return u[i, j, k] + v[i, j - 1, k] + v[i, j + 1, k]


def test_in_place_no_row_is_computed_twice() -> None:
    """A block of several rows moves back at the end and repeats some; in place that would add twice."""
    schedule = Schedule("streaming", tile=(1, 1, 8), rows=4, chunk=2, order="fast")
    rng = np.random.default_rng(3)
    shape = (3, 6, 10)
    u, v = (asarray(rng.uniform(-1, 1, (5, 8, 12)), 1, includes_halo=True, device="cpu") for _ in range(2))
    kernel = compile(lift, schedule=schedule)
    apart = empty(shape, 1, device="cpu")
    kernel(u, v, apart)
    kernel(u, v, u)
    assert np.array_equal(u.interior, apart.interior)


# -- fused


@pytest.mark.parametrize("schedule", [ROW, MARCH])
def test_fused_kernel_gives_what_separate_ones_give(schedule) -> None:
    @stencil
    def flux(w, u, i, j):
        return w[i, j + 1] * u[i - 1, j]

    fused = compile_fused([heat, decay, flux], schedule=schedule)
    d = fused.definition
    assert (d.fields, d.scalars) == (("u", "v", "w"), ("dt",))
    assert d.outputs == ("heat", "decay_0", "decay_1", "flux") and fused.name == "heat_decay_flux"
    arrays = {name: field((6, 33), seed=n)[0] for n, name in enumerate(d.fields)}
    outs = [empty((6, 33), 1, device="cpu") for _ in d.outputs]
    fused(*arrays.values(), *outs, dt=0.3)
    separate = []
    for f in (heat, decay, flux):
        kernel = compile(f, schedule=schedule)
        own = [empty((6, 33), 1, device="cpu") for _ in f.outputs]
        kernel(*(arrays[n] for n in f.fields), *own, **dict.fromkeys(f.scalars, 0.3))
        separate += own
    for a, b in zip(outs, separate, strict=True):
        assert np.array_equal(a.interior, b.interior)


def test_fused_kernel_loads_each_access_once() -> None:
    fused = compile_fused([heat, decay], shape=(4, 16), schedule=ROW, name="step")
    assert fused.name == "step"
    distinct = 5 + 3
    assert fused.source.count("ct.load(") == distinct
    with pytest.raises(StencilError, match="a fused kernel has no single source"):
        fused.ir("source")


# -- facts and refusals


def test_levels_need_a_shape_only_where_they_depend_on_it() -> None:
    kernel = compile(heat, schedule=ROW)
    assert "source.stencil" in kernel.ir("source") and "stencil.apply" in kernel.ir("stencil")
    with pytest.raises(StencilError, match="heat has no shape yet; pass shape=... to compile"):
        kernel.ir("tile")
    assert "tile.kernel" in kernel.for_shape((4, 32)).ir("tile")
    with pytest.raises(StencilError, match="levels are 'source', 'stencil' and 'tile', got 'llvm'"):
        kernel.ir("llvm")


@pytest.mark.parametrize("shape", [(4,), (4, 0), (4, 5, 6)])
def test_shapes_that_no_interior_has(shape) -> None:
    with pytest.raises(StencilError, match="heat needs 2 positive extents"):
        compile(heat, shape=shape, schedule=ROW)


def test_what_is_no_stencil() -> None:
    with pytest.raises(StencilError, match="expected a function under @stencil, got function"):
        compile(heat.fn)
    with pytest.raises(StencilError, match=r"dtype is one of \['float32', 'float64'\], got 'float16'"):
        compile(heat, dtype="float16")


def test_streaming_refuses_arrays_without_padding() -> None:
    kernel = compile(heat, schedule=MARCH)
    with pytest.raises(ScheduleError, match="field 'u'"):
        kernel(np.zeros((7, 35)), np.zeros((5, 33)), dt=0.1)


def test_unchecked_loads_are_refused_where_memory_ends() -> None:
    kernel = compile(heat, schedule=ROW.with_(loads="unchecked"))
    with pytest.raises(ScheduleError, match="field 'u' has 245 readable elements, tiles of .* read up to"):
        kernel(np.zeros((7, 35)), np.zeros((5, 33)), dt=0.1)


def test_validate_finds_a_wrong_kernel(monkeypatch) -> None:
    kernel = compile(heat, shape=(5, 33), schedule=ROW)
    assert kernel.validate(device="cpu").exact
    right = Specialization.source.func(kernel._specialization())
    wrong = right.replace("4.0", "4.5")
    assert wrong != right
    kernel._specialization().__dict__["source"] = wrong
    outcome = kernel.validate(device="cpu")
    assert not outcome and "largest relative error" in outcome.message


@stencil
def chain(u, i, j):
    """600 operations, each on the result of the one before."""
    s = u[i, j]
    near = (u[i - 1, j], u[i + 1, j], u[i, j - 1], u[i, j + 1])
    for n in range(300):
        s = s * 0.99 + near[n % 4]
    return s


@stencil
def ladder(u, i, j):
    """The same with operations that no algebra takes apart."""
    s = u[i, j]
    near = (u[i - 1, j], u[i + 1, j], u[i, j - 1], u[i, j + 1])
    for n in range(300):
        s = max(s * near[n % 4], near[(n + 1) % 4])
    return s


@pytest.mark.parametrize("f", [chain, ladder], ids=lambda f: f.name)
@pytest.mark.parametrize("schedule", [ROW, ROW.with_(order="fast"), MARCH, MARCH.with_(order="source")], ids=str)
def test_deep_expressions(f, schedule) -> None:
    kernel = compile(f, shape=(5, 33), schedule=schedule)
    outcome = kernel.validate(device="cpu")
    assert outcome, outcome.message


@stencil
def long_sum(u, i, j):
    return sum((0.1 + n / 1000) * u[i + n % 3 - 1, j + n % 7 - 3] for n in range(300))


def test_a_long_sum_is_merged_by_access() -> None:
    kernel = compile(long_sum, shape=(5, 33), schedule=MARCH)
    assert kernel.validate(device="cpu")
    assert len(kernel.source.splitlines()) < 300


@stencil
def doubling(u, i, j):
    """Sums of sums: written out, 2 to the 60 terms; merged, two."""
    s = u[i - 1, j] + u[i + 1, j]
    for _ in range(60):
        s = s - 0.5 * s
    return s


@stencil
def braid(u, i, j):
    """Every step is used twice by the next, and none is a sum."""
    a, b = u[i - 1, j], u[i + 1, j]
    for _ in range(60):
        a, b = max(a, b) * u[i, j], min(a, b)
    return a + b


@pytest.mark.parametrize("f", [doubling, braid], ids=lambda f: f.name)
def test_shared_parts_are_taken_apart_once(f) -> None:
    kernel = compile(f, shape=(5, 33), schedule=MARCH)
    assert kernel.validate(device="cpu")
    assert len(kernel.source.splitlines()) < 1000
