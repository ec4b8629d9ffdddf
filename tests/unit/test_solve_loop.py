"""Time loops: rotation of fields, run-time scalars, profiles, events, checkpoints."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from loop_cases import e_next, h_next, heat, laplacian, on_host, spread_old, wave

from stencil_dsl import StencilError, stencil
from stencil_dsl.solve import (
    Dirichlet,
    Keep,
    Neumann,
    Outflow,
    Periodic,
    Piece,
    System,
)

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_two_levels(dtype: str, steps: int) -> None:
    loop = on_host(heat, (6, 7), {"u": {"x": Periodic(), "z-": Dirichlet(1.0), "z+": Neumann()}}, dtype=dtype)
    assert loop.program.cycle == 2 and len(loop.program.buffers) == 2
    u = RNG.normal(size=(6, 7)).astype(dtype)
    loop.set("u", u)
    loop.run(steps, dt=0.125)
    for _ in range(steps):
        p = np.pad(np.pad(u, ((1, 1), (0, 0)), "wrap"), ((0, 0), (1, 0)), constant_values=1)
        p = np.pad(p, ((0, 0), (0, 1)), "edge")
        u = u + np.dtype(dtype).type(0.125) * laplacian(p)
    assert loop.step == steps and loop.to_numpy("u").dtype == dtype
    assert np.allclose(loop.to_numpy("u"), u, rtol=0, atol=1e-5 if dtype == "float32" else 1e-14)


def test_leapfrog_is_in_place_and_agrees_with_the_reference_bit_by_bit() -> None:
    loops = [
        on_host(System([wave], {"u": "wave", "old": "u"}), (6, 7), {"u": Periodic()}, order="source", engine=engine)
        for engine in ("kernel", "reference")
    ]
    assert loops[0].program.storage.inplace == {"wave": "old"} and len(loops[0].program.buffers) == 2
    u, old = RNG.normal(size=(2, 6, 7))
    for loop in loops:
        loop.set("u", u)
        loop.set("old", old)
        loop.run(4, c=0.25)
    for name in ("u", "old"):
        assert np.array_equal(loops[0].to_numpy(name), loops[1].to_numpy(name))
    for _ in range(4):
        u, old = 2 * u - old + 0.25 * laplacian(np.pad(u, 1, "wrap")), u
    assert np.allclose(loops[0].to_numpy("u"), u, atol=1e-13)
    assert np.allclose(loops[0].to_numpy("old"), old, atol=1e-13)


def test_three_buffers_where_the_older_level_is_read_at_neighbours() -> None:
    loop = on_host(System([spread_old], {"u": "spread_old", "old": "u"}), (5, 4), {"old": Periodic()})
    assert loop.program.cycle == 3 and not loop.program.storage.inplace
    u, old = RNG.normal(size=(2, 5, 4))
    loop.set("u", u)
    loop.set("old", old)
    loop.run(7)
    for _ in range(7):
        u, old = u + 0.1 * (np.roll(old, 1, 0) + np.roll(old, -1, 0) - 2 * old), u
    assert np.allclose(loop.to_numpy("u"), u) and np.allclose(loop.to_numpy("old"), old)


@pytest.mark.parametrize("order", [[e_next, h_next], [h_next, e_next]])
def test_sweeps_are_ordered_by_what_they_read(order: list) -> None:
    """Both fields of a staggered pair are updated in place: nothing needs their old values any more."""
    loop = on_host(System(order, {"e": "e_next", "h": "h_next"}), (16,), {"e": Periodic(), "h": Periodic()})
    assert loop.program.storage.inplace == {"e_next": "e", "h_next": "h"} and loop.program.cycle == 1
    e, h = RNG.normal(size=(2, 16))
    loop.set("e", e)
    loop.set("h", h)
    loop.run(3, c=0.5)
    for _ in range(3):
        e = e + 0.5 * (h - np.roll(h, 1))
        h = h + 0.5 * (np.roll(e, -1) - e)
    assert np.allclose(loop.to_numpy("e"), e) and np.allclose(loop.to_numpy("h"), h)


def test_old_values_keep_an_update_from_being_in_place() -> None:
    @stencil
    def later(h, e, c, i):
        return h[i] + c * e[i + 1]

    loop = on_host(System([e_next, later], {"e": "e_next", "h": "later"}), (8,), {"e": Periodic(), "h": Periodic()})
    assert "e_next" not in loop.program.storage.inplace
    e, h = RNG.normal(size=(2, 8))
    loop.set("e", e)
    loop.set("h", h)
    loop.run(2, c=0.5)
    for _ in range(2):
        e, h = e + 0.5 * (h - np.roll(h, 1)), h + 0.5 * np.roll(e, -1)
    assert np.allclose(loop.to_numpy("e"), e) and np.allclose(loop.to_numpy("h"), h)


def test_intermediate_fields_have_boundaries_of_their_own() -> None:
    @stencil
    def flux(u, i):
        return u[i] - u[i - 1]

    @stencil
    def update(u, flux, i):
        return u[i] + 0.25 * (flux[i + 1] - flux[i])

    rules = {"u": Outflow(), "flux": {"z+": Dirichlet(0.0)}}
    loop = on_host(System([update, flux], {"u": "update"}), (9,), rules)
    u = RNG.normal(size=9)
    loop.set("u", u)
    loop.run(3)
    for _ in range(3):
        f = np.append(np.diff(u, prepend=u[0]), 0.0)
        u = u + 0.25 * np.diff(f)
    assert np.allclose(loop.to_numpy("u"), u)
    assert abs(u.sum() - loop.to_numpy("u").sum()) < 1e-13


def test_scalars_may_change_from_step_to_step_also_in_boundaries() -> None:
    loop = on_host(heat, (4, 5), {"u": Dirichlet("edge")})
    u = RNG.normal(size=(4, 5))
    loop.set("u", u)
    loop.run(2, dt=lambda n: 0.1 / (n + 1), edge=lambda n: float(n))
    loop.run(1, dt=0.05, edge=-1.0)
    for dt, edge in ((0.1, 0.0), (0.05, 1.0), (0.05, -1.0)):
        u = u + dt * laplacian(np.pad(u, 1, constant_values=edge))
    assert np.allclose(loop.to_numpy("u"), u)


@pytest.mark.parametrize(
    ("scalars", "message"),
    [({}, r"take the scalars \['dt', 'edge'\], got none"), ({"dt": 1, "edge": 0, "x": 1}, "got .*'x'")],
)
def test_scalars_are_checked(scalars: dict[str, float], message: str) -> None:
    loop = on_host(heat, (4, 5), {"u": Dirichlet("edge")})
    with pytest.raises(StencilError, match=message):
        loop.run(1, **scalars)


def test_constant_fields_are_filled_once_and_may_keep_their_ghost_cells() -> None:
    @stencil
    def diffuse(u, k, i):
        return u[i] + 0.5 * (k[i + 1] * (u[i + 1] - u[i]) - k[i] * (u[i] - u[i - 1]))

    u, k = RNG.normal(size=8), RNG.uniform(0.1, 0.5, size=10)
    results = []
    for rules in ({"u": Periodic(), "k": Keep()}, {"u": Periodic(), "k": {"z+": Dirichlet(k[-1])}}):
        loop = on_host(diffuse, (8,), rules)
        assert "once" in loop.ir()
        loop.set("u", u)
        if isinstance(rules["k"], Keep):
            loop.set("k", k, includes_halo=True)
        else:
            loop.set("k", k[1:-1])
        loop.run(3)
        results.append(loop.to_numpy("u"))
    assert np.array_equal(*results)
    with pytest.raises(StencilError, match="'u' changes; use Dirichlet"):
        on_host(diffuse, (8,), {"u": Keep(), "k": Keep()})


def test_profiles_vary_along_one_axis() -> None:
    @stencil
    def damp(u, px, pz, i, j):
        return u[i, j] * px[i, j] + 0.5 * (pz[i, j + 1] - pz[i, j])

    px, pz = RNG.normal(size=4), RNG.normal(size=6)
    loop = on_host(damp, (4, 6), profiles={"px": ([0], px), "pz": ([1], pz)})
    u = RNG.normal(size=(4, 6))
    loop.set("u", u)
    loop.run(2)
    for _ in range(2):
        u = u * px[:, None] + 0.5 * np.diff(pz, append=pz[-1])
    assert np.allclose(loop.to_numpy("u"), u)
    assert loop["pz"].stored.size < loop["u"].full.size == loop["px"].stored.size
    with pytest.raises(StencilError, match="'u' changes from step to step, so it cannot be a profile"):
        on_host(damp, (4, 6), profiles={"u": ([0], px)})


def test_a_field_read_with_some_indices_varies_along_these_only() -> None:
    """p[i] and q[j, k] in three dimensions, read at neighbours too, also where another stencil has other names."""

    @stencil
    def damp(u, p, q, i, j, k):
        return u[i, j, k] * p[i + 1] + q[j, k - 1] * u[i, j - 1, k]

    p, q = RNG.normal(size=4), RNG.normal(size=(3, 5))
    what = System([Piece(damp, names={"p": "px"})], {"u": "damp"})
    loop = on_host(what, (4, 3, 5), {"u": Periodic()}, profiles={"px": p[:4], "q": ([1, 2], q)})
    u = RNG.normal(size=(4, 3, 5))
    loop.set("u", u)
    loop.run(2)
    px, qs = np.append(p[1:], p[-1])[:, None, None], np.concatenate([q[:, :1], q[:, :-1]], 1)
    for _ in range(2):
        u = u * px + qs * np.roll(u, 1, 1)
    assert np.allclose(loop.to_numpy("u"), u, atol=1e-14)
    for wrong, message in (
        ({"px": p}, "'q' is read with some indices only: give profiles="),
        ({"px": ([1], p[:3]), "q": q}, r"'px' is read along the axes \(0,\), its values are along \(1,\)"),
        ({"px": p, "q": q, "u": q}, "say along which axes 'u' varies"),
    ):
        with pytest.raises(StencilError, match=message):
            on_host(what, (4, 3, 5), {"u": Periodic()}, profiles=wrong)


def test_ghost_cells_that_never_change_are_filled_once() -> None:
    """Sweeps write the interior only, so that constant values stay in every buffer that a field rotates through."""
    for rule, repeated in ((Dirichlet(0.5), 0), (Dirichlet("edge"), 1), (Dirichlet(0.5, at="face"), 1)):
        loop = on_host(heat, (4, 5), {"u": rule})
        fills = [len(loop.program.phase(n).actions) - len(loop.program.phase(n).sweeps) for n in range(2)]
        assert fills == [repeated] * 2
    loop = on_host(heat, (4, 5), {"u": Dirichlet(0.5)})
    u = RNG.normal(size=(4, 5))
    for _ in range(2):
        loop.set("u", u)
        loop.run(2, dt=0.1)
        loop["u"].full[...] = np.nan  # also after someone has written there
    loop.set("u", u)
    loop.run(3, dt=0.1)
    for _ in range(3):
        u = u + 0.1 * laplacian(np.pad(u, 1, constant_values=0.5))
    assert np.allclose(loop.to_numpy("u"), u)


# -- events


def test_callbacks_and_snapshots() -> None:
    loop = on_host(heat, (4, 5), {"u": Periodic()})
    loop.set("u", lambda i, j: i + 10.0 * j)
    seen: list[int] = []
    loop.every(3, lambda each: seen.append(each.step))
    loop.record(2, "u")
    loop.run(4, dt=0.1)
    loop.run(until=7, dt=0.1)
    assert seen == [3, 6] and [step for step, _ in loop.snapshots] == [2, 4, 6]
    assert loop.snapshots[0][1]["u"].shape == (4, 5)
    assert not np.array_equal(loop.snapshots[0][1]["u"], loop.snapshots[1][1]["u"])
    with pytest.raises(StencilError, match="at step 7 already"):
        loop.run(until=6, dt=0.1)


def test_the_guard_names_field_step_and_cell() -> None:
    loop = on_host(heat, (4, 5), {"u": Outflow()})
    u = np.zeros((4, 5))
    u[2, 3] = 1e100
    loop.set("u", u)
    loop.guard(2)
    with pytest.raises(StencilError, match=r"'u' is -?(nan|inf) in cell \(\d, \d\) after step (4|6)"):
        loop.run(20, dt=1e60)


def test_progress_is_shown_on_long_runs_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from stencil_dsl.solve import events

    loop = on_host(heat, (4, 5), {"u": Periodic()})
    loop.run(3, dt=0.1, progress=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(events, "PROGRESS_AFTER", -1.0)
    loop.run(3, dt=0.1, progress=True)
    assert "heat: step 3 of 3" in capsys.readouterr().err


# -- checkpoints

PROGRAM = """
import sys
from test_solve_loop import wave
from stencil_dsl.solve import Periodic, System, TimeLoop
import numpy as np, os, time

loop = TimeLoop(System([wave], {"u": "wave", "old": "u"}), (6, 7), {"u": Periodic()}, device="cpu")
rng = np.random.default_rng(1)
loop.set("u", rng.normal(size=(6, 7)))
loop.set("old", rng.normal(size=(6, 7)))
path, pause = sys.argv[1], float(sys.argv[2])
if os.path.exists(path):
    loop.load(path)
if pause:
    loop.every(1, lambda each: time.sleep(pause))
loop.run(until=41, c=lambda n: 0.2 + 0.001 * n, checkpoint_to=path, checkpoint_every=1 if pause else 10)
np.save(path + ".u.npy", loop.to_numpy("u"))
"""


def test_a_killed_run_continues_with_the_same_bits(tmp_path: Path) -> None:
    def start(path: Path, pause: float) -> subprocess.Popen:
        return subprocess.Popen([sys.executable, "-c", PROGRAM, str(path), str(pause)], cwd=Path(__file__).parent)

    whole, broken = tmp_path / "whole.npz", tmp_path / "broken.npz"
    first, second = start(whole, 0.0), start(broken, 0.02)
    deadline = time.monotonic() + 60
    while not broken.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.1)
    second.send_signal(signal.SIGKILL)
    assert second.wait(60) == -signal.SIGKILL, "the run was over before it could be killed"
    assert not Path(f"{broken}.u.npy").exists() and broken.exists()
    assert start(broken, 0.0).wait(60) == 0 and first.wait(60) == 0
    assert np.array_equal(np.load(f"{whole}.u.npy"), np.load(f"{broken}.u.npy"))
    assert not list(tmp_path.glob(".*")), "temporary files are left"


def test_checkpoints_of_other_programs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    loop = on_host(heat, (4, 5), {"u": Periodic()})
    loop.run(2, dt=0.1, checkpoint_to=path)
    for other in (on_host(heat, (5, 4), {"u": Periodic()}), on_host(heat, (4, 5), {"u": Outflow()})):
        with pytest.raises(StencilError, match="another program"):
            other.load(path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StencilError, match="is no checkpoint of this package"):
        loop.load(path)
    with pytest.raises(StencilError, match="there is no checkpoint"):
        loop.load(tmp_path / "none")
