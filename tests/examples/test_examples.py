"""The examples at small size: against exact solutions, orders of convergence, what they must conserve."""

from __future__ import annotations

import importlib.util
import math
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from stencil_dsl.solve import TimeLoop, run_ranks

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(p.stem for p in (ROOT / "examples").glob("*.py"))


@cache
def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def order(coarse: float, fine: float) -> float:
    """Of convergence, when the spacing is halved."""
    return math.log2(coarse / fine)


def test_heat_1d() -> None:
    errors = []
    for cells in (16, 32):
        _, u, exact = example("heat_1d").solve(cells, device="cpu")
        errors.append(abs(u - exact).max())
    assert errors[1] < 2e-4 and 1.9 < order(*errors) < 2.1


def test_wave_2d() -> None:
    wave = example("wave_2d")
    errors = [abs(np.subtract(*wave.solve(cells, device="cpu"))).max() for cells in (8, 16)]
    assert errors[1] < 2e-4 and 3.8 < order(*errors) < 4.5


def test_wave_2d_keeps_its_energy() -> None:
    wave, dt = example("wave_2d"), 0.02
    loop = wave.start(16, dt, device="cpu")
    before = wave.energy(loop, dt)
    for _ in range(5):
        loop.run(20, c2=(16 * dt) ** 2)
        assert wave.energy(loop, dt) == pytest.approx(before, rel=1e-11)
    assert before > 1


def test_laplacian_3d() -> None:
    laplacian = example("laplacian_3d")
    for wanted, least in ((2, 1.8), (4, 3.7), (8, 7.3)):
        errors = [laplacian.solve(wanted, cells, device="cpu") for cells in (10, 20)]
        assert least < order(*errors) < wanted + 0.2, (wanted, errors)


def test_gray_scott() -> None:
    model = example("gray_scott")
    u, v = model.seed(12)

    def lap(f: np.ndarray) -> np.ndarray:
        return sum(np.roll(f, s, a) for a in (0, 1) for s in (-1, 1)) - 4 * f

    got = model.solve(12, 10, device="cpu")
    for _ in range(10):
        uvv = u * v * v
        u, v = (
            u + model.DU * lap(u) - uvv + model.FEED * (1 - u),
            v + model.DV * lap(v) + uvv - (model.FEED + model.KILL) * v,
        )
    assert np.allclose(got[0], u, atol=1e-13) and np.allclose(got[1], v, atol=1e-13)


def test_fdtd_maxwell_1d() -> None:
    """Exact, through reflections at both walls."""
    model = example("fdtd_maxwell_1d")
    loop = model.cavity(48, device="cpu")
    assert loop.program.storage.inplace == {"e_next": "e", "h_next": "h"}
    for steps in (1, 30, 48, 75, 96, 120):
        loop.run(until=steps, c=1.0)
        assert np.allclose(loop.to_numpy("e"), model.exact(48, steps), atol=1e-14), steps
    assert abs(loop.to_numpy("e")).max() > 0.9


def test_fdtd_maxwell_2d() -> None:
    model = example("fdtd_maxwell_2d")
    loop, shape = model.standing_wave(12, device="cpu")
    assert len(loop.program.kernels) == 2, "hx and hy are one kernel"
    for steps in (1, 7, 25):
        loop.run(until=steps, c=model.COURANT)
        assert np.allclose(loop.to_numpy("e"), np.cos(model.phase(12) * steps) * shape, atol=1e-13)


def test_shallow_water() -> None:
    model = example("shallow_water")
    loop = model.basin(12, device="cpu")
    before = {name: loop.total(name) for name in "hmn"}
    start = loop.to_numpy("h")
    model.run(loop, 6)
    for name, total in before.items():
        assert abs(loop.total(name) - total) < 1e-12, f"the sum of {name} changes"
    h, m, n = (loop.to_numpy(name) for name in "hmn")
    assert abs(h - start).max() > 0.05, "nothing moves"
    assert np.allclose(h, h.T, atol=1e-13) and np.allclose(m, n.T, atol=1e-13), "the square's symmetry"
    assert np.allclose(h, h[::-1], atol=1e-13) and np.allclose(m, -m[::-1], atol=1e-13)


def test_shallow_water_at_rest() -> None:
    model = example("shallow_water")
    loop = model.basin(6, device="cpu")
    loop.set("h", 1.25)
    model.run(loop, 3)
    assert (loop.to_numpy("h") == 1.25).all() and not loop.to_numpy("m").any() and not loop.to_numpy("n").any()


def test_advection_upwind() -> None:
    model = example("advection_upwind")
    loop, exact = model.solve(32, 40, 1.0, device="cpu")
    assert np.allclose(loop.to_numpy("u"), exact, atol=1e-13), "one cell a step is exact"
    errors = []
    for cells in (128, 256):
        loop, exact = model.solve(cells, cells // 4, 0.5, device="cpu")
        errors.append(abs(loop.to_numpy("u") - exact).mean())
        assert abs(loop.total("u") - model.averages(cells).sum()) < 1e-12
    assert 0.85 < order(*errors) < 1.1


def test_burgers() -> None:
    model = example("burgers")
    loop, place = model.shock(40, device="cpu")
    u = loop.to_numpy("u")
    assert abs(u.sum() / 40 - place) < 1e-12, "where the shock is"
    assert np.all((u > -1e-15) & (u < 1 + 1e-15)) and np.all(np.diff(u) < 1e-15), "no new extrema"
    assert np.count_nonzero((u > 0.02) & (u < 0.98)) <= 4, "a sharp shock"


def test_burgers_before_the_wave_breaks() -> None:
    model = example("burgers")
    errors = [abs(np.subtract(*model.wave(cells, 0.5, device="cpu"))).mean() for cells in (32, 64)]
    assert 1.6 < order(*errors) < 2.4, errors


def test_heat_2d_bricked() -> None:
    model = example("heat_2d_bricked")
    assert np.allclose(model.solve(16, 5, device="cpu"), model.decay(16) ** 5 * model.start(16), atol=1e-14)


# -- the acoustic wave


def acoustic_model(model, n: int, layer: int, velocity, steps: int) -> np.ndarray:
    """The same equations in float64, cell by cell over the whole cube."""
    vp = np.broadcast_to((np.asarray(velocity) * model.DT) ** 2, (n, n, n))
    axis = model.damping(n, layer, halo=1)
    eta = axis[:, None, None] + axis[:, None] + axis
    inside = np.zeros((n, n, n), bool)
    inside[layer:-layer, layer:-layer, layer:-layer] = True
    e = np.where(inside, 0.0, eta[1:-1, 1:-1, 1:-1])
    u, v, phi = (np.zeros((n, n, n)) for _ in range(3))

    def moved(f: np.ndarray, a: int, by: int, halo: int) -> np.ndarray:
        box = [slice(halo, halo + n)] * 3
        box[a] = slice(halo + by, halo + by + n)
        return f[tuple(box)]

    for step in range(steps):
        p = np.pad(u, 4)
        lap = 3 * model.C[0] * u
        change = np.zeros_like(u)
        for a in range(3):
            for r in range(1, 5):
                lap = lap + model.C[r] * (moved(p, a, r, 4) + moved(p, a, -r, 4))
            change += (moved(eta, a, 1, 1) - moved(eta, a, -1, 1)) * (moved(p, a, 1, 4) - moved(p, a, -1, 4))
        new = ((2 - e * e + 2 * e) * u + vp * (lap + phi) - v) / (1 + 2 * e)
        phi = np.where(inside, 0.0, (phi - change / (4 * model.DX**2)) / (1 + e))
        new[n // 2, n // 2, n // 2] += model.wavelet(step)
        u, v = new, u
    return u


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_acoustic_3d(engine: str) -> None:
    """Through the layer and to the faces, with a velocity that changes from cell to cell."""
    acoustic = example("acoustic_3d")
    n, layer, steps = (12, 3, 2) if engine == "kernel" else (16, 4, 80)
    velocity = np.random.default_rng(2).uniform(3500, 4500, (n, n, n))
    loop = acoustic.simulation(acoustic.Model(n, layer, velocity), device="cpu", engine=engine)
    assert loop.program.storage.inplace == {"u_new": "older", "phi_new": "phi"}
    loop.run(steps)
    want = acoustic_model(acoustic, n, layer, velocity, steps)
    assert abs(loop.to_numpy("u") - want).max() < 2e-5 * abs(want).max()
    if engine == "reference":
        assert abs(want[:, :, 0]).max() > 1e-4 * abs(want).max(), "the wave has come to the faces"


def test_acoustic_3d_waves_leave() -> None:
    """The layer takes the energy out."""
    acoustic = example("acoustic_3d")
    loop = acoustic.simulation(acoustic.Model(20, 7, 4500.0), device="cpu", engine="reference")
    loop.run(60)
    peak = loop.norm("u")
    loop.run(120)
    assert loop.norm("u") < 0.02 * peak


def test_acoustic_3d_on_two_ranks() -> None:
    """The same bits, with the source, slabs and profiles cut."""
    acoustic = example("acoustic_3d")

    def run(ranks) -> np.ndarray:
        model = acoustic.Model(12, 4)
        loop: TimeLoop = acoustic.simulation(model, "cpu", engine="reference", ranks=ranks, order="source")
        loop.run(6)
        return loop.to_numpy("u")

    alone = run(None)
    assert all(np.array_equal(each, alone) for each in run_ranks(2, run))


# -- pages and pictures


@pytest.mark.parametrize("name", NAMES)
def test_every_example_has_a_page_with_its_picture(name: str) -> None:
    module = example(name)
    assert callable(module.picture) and module.__doc__
    page = (ROOT / "docs" / "examples" / f"{name}.md").read_text()
    assert f"```{{literalinclude}} ../../examples/{name}.py" in page
    assert f"({name}.png)" in page and (ROOT / "docs" / "examples" / f"{name}.png").stat().st_size > 2000
    assert f"\n{name}\n" in (ROOT / "docs" / "examples" / "index.md").read_text()
