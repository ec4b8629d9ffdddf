"""Several time steps in one sweep, and single steps beside it."""

from __future__ import annotations

import numpy as np
import pytest
from loop_cases import heat, laplacian, on_host, wave

from stencil_dsl import StencilError, stencil
from stencil_dsl.solve import (
    Antisymmetric,
    Dirichlet,
    Neumann,
    Outflow,
    Periodic,
    Symmetric,
    System,
)

RNG = np.random.default_rng(5)


@stencil
def star(u, i, j):
    return 0.5 * u[i, j] + 0.125 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


@pytest.mark.parametrize("steps", [2, 3])
@pytest.mark.parametrize("shape", [(6, 7), (2, 3)])
def test_composed_steps(steps: int, shape: tuple[int, int]) -> None:
    """Wide sweeps where they fit, single steps for the rest and up to events; the halo may exceed the interior."""
    loop = on_host(star, shape, {"u": Periodic()}, temporal_steps=steps)
    u = RNG.normal(size=shape)
    loop.set("u", u)
    loop.record(4, "u")
    loop.run(11)
    for n in range(11):
        u = u + 0.125 * laplacian(np.pad(u, 1, "wrap"))
        if n in (3, 7):
            assert np.allclose(dict(loop.snapshots)[n + 1]["u"], u, atol=1e-14)
    assert loop.step == 11 and np.allclose(loop.to_numpy("u"), u, atol=1e-14)
    beyond = 0 if steps == 2 else steps  # farther along a row than is read by index
    assert loop.composed is not None and f"lo [{steps}, {beyond}] hi [{steps}, {beyond}]" in str(
        loop.composed.program.module
    )


WALL = RNG.normal(size=16)


@stencil
def skew(u, i, j):
    return 0.5 * u[i, j] + 0.25 * u[i - 2, j + 1] - 0.125 * u[i + 1, j] + 0.0625 * u[i - 1, j - 1] + 0.01


@pytest.mark.parametrize("what", [star, skew])
@pytest.mark.parametrize(
    "rules",
    [
        {"x": Periodic(), "z-": Dirichlet(WALL), "z+": Neumann(0.5)},
        {"x-": Antisymmetric(), "x+": Outflow(), "z": Periodic()},
        {"x-": Dirichlet("edge", at="face"), "x+": Symmetric(), "z-": Neumann("slope"), "z+": Dirichlet(2.0)},
    ],
)
@pytest.mark.parametrize("steps", [2, 3])
def test_composed_steps_beside_strips_of_single_ones(what, rules, steps: int) -> None:
    """Any faces: near them boundaries hold in every step; single steps are the model."""
    single, wide = (on_host(what, (16, 17), {"u": rules}, temporal_steps=n, engine="reference") for n in (1, steps))
    u = RNG.normal(size=(16, 17))
    named = {name: 0.25 for name in single.program.scalars}
    for loop in (single, wide):
        loop.set("u", u)
        for count in (steps, 2 * steps + 1, 5, steps):
            loop.run(count, **named)
    assert wide.composed is not None and "partial" in str(wide.composed.program.module)
    assert np.allclose(wide.to_numpy("u"), single.to_numpy("u"), rtol=0, atol=1e-13)
    if named:
        varying = {name: lambda n: 0.1 * n for name in named}
        for loop in (single, wide):
            loop.run(3 * steps, **varying)
        assert np.allclose(wide.to_numpy("u"), single.to_numpy("u"), rtol=0, atol=1e-13)


def test_composed_steps_of_kernels_on_strips() -> None:
    """The emitted kernels rather than their meaning."""
    rules = {"u": {"x": Outflow(), "z": Dirichlet(1.0)}}
    single, wide = (on_host(star, (13, 12), rules, temporal_steps=n) for n in (1, 3))
    u = RNG.normal(size=(13, 12))
    for loop in (single, wide):
        loop.set("u", u)
        loop.run(4)
    assert np.allclose(wide.to_numpy("u"), single.to_numpy("u"), rtol=0, atol=1e-14)


def test_the_inner_box_of_long_rows_starts_on_a_cache_line() -> None:
    rules = {"u": {"x": Outflow(), "z-": Dirichlet(1.0), "z+": Neumann(0.5)}}
    single, wide = (on_host(skew, (16, 131), rules, temporal_steps=n, engine="reference") for n in (1, 3))
    assert wide.composed is not None and "box [6, 16] to [-3, -16]" in str(wide.composed.program.module)
    u = RNG.normal(size=(16, 131))
    for loop in (single, wide):
        loop.set("u", u)
        loop.run(7)
    assert np.allclose(wide.to_numpy("u"), single.to_numpy("u"), rtol=0, atol=1e-13)


def test_where_slabs_meet_single_steps_are_made() -> None:
    assert on_host(star, (6, 7), {"u": Dirichlet(0.0)}, temporal_steps=2).composed is None
    assert on_host(star, (7, 7), {"u": Dirichlet(0.0)}, temporal_steps=2).composed is not None


@pytest.mark.parametrize(
    ("what", "rules", "message"),
    [
        (heat, {"u": Periodic()}, "no run-time scalars.*temporal_fallback=True makes single steps"),
        (System([wave], {"u": "wave", "old": "u"}), {"u": Periodic()}, "one stencil that advances one field"),
    ],
)
def test_composed_steps_are_refused_where_they_are_not_legal(what, rules, message: str) -> None:
    with pytest.raises(StencilError, match=message):
        on_host(what, (6, 7), rules, temporal_steps=2)
    assert on_host(what, (6, 7), rules, temporal_steps=2, temporal_fallback=True).composed is None
