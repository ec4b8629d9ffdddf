"""Integrators: orders, stages, two-level methods, and the program that they become."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from loop_cases import on_host

from stencil_dsl import stencil
from stencil_dsl.opt import OptMain
from stencil_dsl.solve import (
    Integrate,
    Periodic,
)

RNG = np.random.default_rng(5)


@stencil
def decay(u, t, i):
    return -2.0 * t * u[i] * u[i]


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("ssp-rk2", 2), ("ssp-rk3", 3), ("rk4", 4)])
def test_orders_of_one_step_methods(method: str, order: int) -> None:
    """u' = -2 t u^2 has the solution u0 / (1 + u0 t^2): non-linear and dependent on time."""
    errors = []
    for count in (8, 16):
        dt = 1.0 / count
        loop = on_host(Integrate([decay], ["u"], method, time="t"), (5,), engine="reference")
        u0 = np.linspace(0.5, 1.5, 5)
        loop.set("u", u0)
        loop.run(count, dt=dt, t=lambda n, dt=dt: n * dt)
        errors.append(np.abs(loop.to_numpy("u") - u0 / (1 + u0)).max())
    assert order - 0.3 < math.log2(errors[0] / errors[1]) < order + 0.7, errors


@pytest.mark.parametrize("method", ["euler", "ssp-rk2", "ssp-rk3", "rk4"])
def test_stages_are_those_of_the_method(method: str) -> None:
    """Kernels in place, on two coupled fields, against the method written out in NumPy."""

    @stencil
    def du(u, v, nu, i):
        return nu * (u[i - 1] - 2.0 * u[i] + u[i + 1]) + u[i] * v[i]

    @stencil
    def dv(u, v, i):
        return v[i + 1] - v[i] - u[i]

    def rates(s: np.ndarray) -> np.ndarray:
        u, v = s
        return np.array([0.3 * (np.roll(u, 1) - 2 * u + np.roll(u, -1)) + u * v, np.roll(v, -1) - v - u])

    def step(s: np.ndarray, dt: float) -> np.ndarray:
        if method == "euler":
            return s + dt * rates(s)
        if method == "ssp-rk2":
            one = s + dt * rates(s)
            return (s + one + dt * rates(one)) / 2
        if method == "ssp-rk3":
            one = s + dt * rates(s)
            two = (3 * s + one + dt * rates(one)) / 4
            return (s + 2 * two + 2 * dt * rates(two)) / 3
        k1 = rates(s)
        k2 = rates(s + dt / 2 * k1)
        k3 = rates(s + dt / 2 * k2)
        return s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + rates(s + dt * k3))

    loop = on_host(Integrate([du, dv], ["u", "v"], method), (12,), {"u": Periodic(), "v": Periodic()})
    assert "timestep.integrate" not in loop.ir() and loop.program.storage.count <= 8
    state = RNG.normal(size=(2, 12))
    for name, values in zip("uv", state, strict=True):
        loop.set(name, values)
    loop.run(3, dt=0.1, nu=0.3)
    for _ in range(3):
        state = step(state, 0.1)
    assert np.allclose([loop.to_numpy("u"), loop.to_numpy("v")], state, rtol=0, atol=1e-13)


@pytest.mark.parametrize("method", ["leapfrog", "verlet"])
def test_two_level_methods(method: str) -> None:
    @stencil
    def force(u, i):
        return u[i - 1] - 2.0 * u[i] + u[i + 1] - u[i]

    loop = on_host(Integrate([force], ["u"], method, older=["u_old"]), (10,), {"u": Periodic()})
    assert loop.program.storage.inplace == {"u_next": "u_old"} and loop.fields == ("u", "u_old")
    u, old = RNG.normal(size=(2, 10))
    loop.set("u", u)
    loop.set("u_old", old)
    loop.run(5, dt=0.1)
    for _ in range(5):
        k = np.roll(u, 1) - 3 * u + np.roll(u, -1)
        u, old = (old + 0.2 * k, u) if method == "leapfrog" else (2 * u - old + 0.01 * k, u)
    assert np.allclose(loop.to_numpy("u"), u, atol=1e-13) and np.allclose(loop.to_numpy("u_old"), old, atol=1e-13)


def test_the_program_parses_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loop = on_host(Integrate([decay], ["u"], "rk4", time="t"), (5,))
    path = tmp_path / "step.mlir"
    path.write_text(loop.ir())
    OptMain(args=[str(path)]).run()
    assert capsys.readouterr().out.strip() == loop.ir().strip()
    path.write_text(str(loop.system.module("float64")))
    OptMain(args=[str(path), "-p", "expand-integrator,boundary,insert-fills"]).run()
    assert capsys.readouterr().out.strip() == loop.ir().strip()
