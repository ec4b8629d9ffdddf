"""Point sources, receivers and reductions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stencil_dsl
from stencil_dsl import StencilError, stencil
from stencil_dsl.solve import Periodic, TimeLoop, reductions
from stencil_dsl.solve.points import BLOCK_STEPS, interpolation

RNG = np.random.default_rng(11)


@stencil
def shift(u, i, j):
    return 0.5 * u[i, j] + 0.25 * u[i - 1, j] + 0.25 * u[i, j - 1]


def loop_of(shape: tuple[int, int] = (5, 6), engine: str = "reference", **more) -> TimeLoop:
    return TimeLoop(shift, shape, {"u": Periodic()}, device="cpu", engine=engine, **more)


def model_step(u: np.ndarray) -> np.ndarray:
    return 0.5 * u + 0.25 * np.roll(u, 1, 0) + 0.25 * np.roll(u, 1, 1)


@given(st.lists(st.floats(0, 6), min_size=1, max_size=3))
def test_weights_reproduce_linear_fields(position: list[float]) -> None:
    corners = interpolation(position, (7,) * len(position))
    assert abs(sum(w for _, w in corners) - 1) < 1e-15
    for axis, p in enumerate(position):
        assert abs(sum(w * cell[axis] for cell, w in corners) - p) < 1e-12
    assert all(0 <= i <= 6 for cell, _ in corners for i in cell)


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_sources_and_receivers(engine: str) -> None:
    """On and off the grid, two sources sharing cells; values by step, by point and from a function."""
    loop = loop_of(engine=engine)
    series = RNG.normal(size=(6, 2))
    loop.source("u", [(1, 2), (1.5, 2.25)], series)
    loop.source("u", (4, 5), lambda n: 0.5 * n)
    on, off = loop.receiver("u", (1, 2)), loop.receiver("u", [(2.5, 3), (0, 0)])
    u = RNG.normal(size=(5, 6))
    loop.set("u", u)
    loop.run(3)
    loop.run(5)
    want_on, want_off = [], []
    for n in range(8):
        u = model_step(u)
        a, b = series[n] if n < 6 else (0.0, 0.0)
        u[1, 2] += a + 0.5 * 0.75 * b
        u[2, 2] += 0.5 * 0.75 * b
        u[1, 3] += 0.5 * 0.25 * b
        u[2, 3] += 0.5 * 0.25 * b
        u[4, 5] += 0.5 * n
        want_on.append([u[1, 2]])
        want_off.append([0.5 * u[2, 3] + 0.5 * u[3, 3], u[0, 0]])
    assert np.allclose(loop.to_numpy("u"), u, atol=1e-14)
    assert np.allclose(loop.traces(on), want_on) and np.allclose(loop.traces(off), want_off)


def test_blocks_of_steps_are_seamless(monkeypatch: pytest.MonkeyPatch) -> None:
    from stencil_dsl.solve import stepper

    monkeypatch.setattr(stepper, "BLOCK_STEPS", 3)
    loops = [loop_of(), loop_of()]
    receivers = []
    for loop in loops:
        loop.source("u", (2, 2.5), lambda n: 1.0 + n)
        receivers.append(loop.receiver("u", (3, 3)))
    loops[0].run(8)
    monkeypatch.setattr(stepper, "BLOCK_STEPS", BLOCK_STEPS)
    loops[1].run(8)
    assert np.array_equal(loops[0].to_numpy("u"), loops[1].to_numpy("u"))
    traces = [loop.traces(r) for loop, r in zip(loops, receivers, strict=True)]
    assert traces[0].shape == (8, 1) and np.array_equal(*traces)


def test_receivers_go_on_after_a_checkpoint(tmp_path) -> None:
    def make() -> tuple[TimeLoop, object]:
        loop = loop_of()
        loop.source("u", (2, 2), lambda n: 1.0 + n)
        return loop, loop.receiver("u", (3, 3.5))

    (whole, seen), (first, _), (second, resumed) = make(), make(), make()
    whole.run(7)
    first.run(4, checkpoint_to=tmp_path / "state.npz")
    second.load(tmp_path / "state.npz")
    second.run(until=7)
    assert np.array_equal(whole.traces(seen), second.traces(resumed))  # type: ignore[arg-type]
    assert whole.traces(seen).shape == (7, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("position", [(-0.1, 0), (0, 5.5), (1,), (np.nan, 1)])
def test_points_outside_are_refused(position: tuple[float, ...]) -> None:
    with pytest.raises(StencilError, match=r"lies outside the centres of the cells, 0..4 x 0..5"):
        loop_of().source("u", [position], [1.0])


def test_points_need_a_field_and_every_step() -> None:
    with pytest.raises(StencilError, match="no field 'v' in the state"):
        loop_of().receiver("v", (0, 0))
    with pytest.raises(StencilError, match="use temporal_steps=1"):
        loop_of(temporal_steps=2).receiver("u", (0, 0))


# -- reductions


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(1,), (7,), (4, 5), (3, 1, 8), (2, 3, 13)])
def test_reductions(shape: tuple[int, ...], dtype: str) -> None:
    data, other = RNG.normal(size=(2, *shape)).astype(dtype)
    a = stencil_dsl.asarray(data, halo=1, device="cpu")
    b = stencil_dsl.asarray(other, halo=2, device="cpu")
    a.full[...][a.full == 0] = np.nan  # what is not interior must not count
    a.interior[...] = data
    exact = data.astype("float64")
    assert reductions.total(a) == pytest.approx(exact.sum(), abs=1e-12)
    assert reductions.mean(a) == pytest.approx(exact.mean(), abs=1e-13)
    assert reductions.dot(a, b) == pytest.approx((exact * other.astype("float64")).sum(), abs=1e-12)
    assert reductions.norm(a) == pytest.approx(np.sqrt((exact**2).sum()))
    assert reductions.norm(a, 1) == pytest.approx(abs(exact).sum())
    assert reductions.norm(a, np.inf) == abs(exact).max()
    assert (reductions.maximum(a), reductions.minimum(a)) == (data.max(), data.min())
    with pytest.raises(StencilError, match="order 1, 2 and inf"):
        reductions.norm(a, 3)


def test_sums_run_over_a_fixed_tree() -> None:
    """The tree written out for a row of seven; strides and memory order do not matter, the input is left alone."""
    x = RNG.normal(size=7) * 10.0 ** np.arange(7)
    a = [x[0] + x[4], x[1] + x[5], x[2] + x[6], x[3]]
    b = [a[0] + a[2], a[1] + a[3]]
    assert reductions.total(x) == b[0] + b[1]
    field = RNG.normal(size=(6, 5, 9)) * 1e8
    before = field.copy()
    want = reductions.total(field)
    assert reductions.total(np.asfortranarray(field)) == want == reductions.total(np.repeat(field, 2, 2)[..., ::2])
    assert np.array_equal(field, before)


def test_sums_of_parts_continue_to_the_same_bits() -> None:
    """Rows that other ranks hold are summed where they are; the tree over x and y then goes on."""
    field = RNG.normal(size=(6, 5, 9)) * 1e8
    parts = [reductions.rows(field[:2]), reductions.rows(field[2:])]
    assert reductions.finish(np.concatenate(parts)) == reductions.total(field)
