"""Time loops: rotation of fields, run-time scalars, events, checkpoints, integrators, several steps a sweep."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from stencil_dsl import StencilError, stencil
from stencil_dsl.opt import OptMain
from stencil_dsl.solve import (
    Antisymmetric,
    Dirichlet,
    Integrate,
    Keep,
    Neumann,
    Outflow,
    Periodic,
    Piece,
    Sweep,
    Symmetric,
    System,
    TimeLoop,
)

RNG = np.random.default_rng(5)


@stencil
def heat(u, dt, i, j):
    return u[i, j] + dt * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j])


@stencil
def wave(u, old, c, i, j):
    return 2.0 * u[i, j] - old[i, j] + c * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j])


@stencil
def spread_old(u, old, i, j):
    return u[i, j] + 0.1 * (old[i - 1, j] + old[i + 1, j] - 2.0 * old[i, j])


@stencil
def e_next(e, h, c, i):
    return e[i] + c * (h[i] - h[i - 1])


@stencil
def h_next(h, e_next, c, i):
    return h[i] + c * (e_next[i + 1] - e_next[i])


def laplacian(p: np.ndarray) -> np.ndarray:
    return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4.0 * p[1:-1, 1:-1]


def on_host(*args, **more) -> TimeLoop:
    return TimeLoop(*args, device="cpu", **more)


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


# -- regions


@stencil
def double(u, i, j):
    return 2.0 * u[i, j]


@stencil
def blur(u, i, j):
    return 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


def test_pieces_compute_parts_of_one_field() -> None:
    inner, left, right = [(0, 0), (2, -3)], [(0, 0), (0, 2)], [(0, 0), (-3, 0)]
    pieces = [Piece(blur, box, ["new"]) for box in (inner,)] + [Piece(double, box, ["new"]) for box in (left, right)]
    loop = on_host(System([Sweep(pieces)], {"u": "new"}), (4, 9), {"u": Periodic()})
    u = RNG.normal(size=(4, 9))
    loop.set("u", u)
    loop.run(2)
    for _ in range(2):
        new = 2 * u
        p = np.pad(u, 1, "wrap")
        new[:, 2:-3] = 0.25 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:])[:, 2:-3]
        u = new
    assert np.allclose(loop.to_numpy("u"), u)


def test_cells_outside_the_pieces_keep_their_values() -> None:
    sweep = Sweep([Piece(double, [(1, 3), (0, 4)], ["new"])], onto={"new": "u"})
    loop = on_host(System([sweep], {"u": "new"}), (4, 9))
    u = RNG.normal(size=(4, 9))
    loop.set("u", u)
    loop.run(3)
    u[1:3, 0:4] *= 8
    assert np.array_equal(loop.to_numpy("u"), u)


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        (Sweep([Piece(double, [(0, 3), (0, 0)], ["new"])]), "leave 9 of 36 cells without a value"),
        (Sweep([Piece(double, [(0, 3), (0, 0)], ["new"]), Piece(blur, [(2, 0), (0, 0)], ["new"])]), "overlap"),
        (Sweep([Piece(double, [(0, 5), (0, 0)], ["new"])]), "has no cells or leaves an interior"),
        (Sweep([Piece(blur, [(1, 3), (1, 3)], ["new"])], onto={"new": "u"}), "'u' is read at neighbouring cells"),
    ],
)
def test_pieces_that_cannot_be_are_refused(sweep: Sweep, message: str) -> None:
    with pytest.raises(StencilError, match=message):
        on_host(System([sweep], {"u": "new"}), (4, 9), {"u": Periodic()})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: System([heat, wave]), "say which fields continue as which"),
        (lambda: System([heat], {"u": "nothing"}), "'u' advances to 'nothing'; fields are"),
        (lambda: System([heat, heat], {"u": "heat"}), "two sweeps make 'heat'"),
        (lambda: System([heat, e_next], {"u": "heat"}), "one number of dimensions"),
        (lambda: System([Piece(heat, names={"u": "heat"})], {"u": "heat"}), "computed from each other"),
        (lambda: System([], {}), "at least one stencil"),
        (lambda: on_host(heat, (4, 5)), r"reads 'u' across the face x-, which has no rule"),
        (lambda: on_host(heat, (4,), {"u": Periodic()}), "2 dimensions, the shape is"),
        (lambda: on_host(heat, (4, 5), {"v": Periodic()}), "boundary of an unknown field 'v'"),
        (lambda: on_host(heat, (4, 5), {"u": {"y": Periodic()}}), "unknown face 'y' of a 2-D field; faces are x-, x"),
        (lambda: on_host(heat, (4, 5), {"u": {"x-": Periodic()}}), "periodic on one face along x and open"),
        (
            lambda: on_host(System([wave], {"u": "wave", "old": "wave"}), (4, 5), {"u": Periodic()}),
            "u and old would be",
        ),
        (lambda: Integrate([heat], ["u"], "leapfrog") and System(Integrate([heat], ["u"], "leapfrog")), "needs older="),
        (lambda: System(Integrate([heat], ["u"], "magic")), "unknown method 'magic'; known are euler"),
    ],
)
def test_what_does_not_fit_is_refused(make, message: str) -> None:
    with pytest.raises(StencilError, match=message):
        loop = make()
        loop.run(1)


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


# -- integrators


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


# -- several steps a sweep


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


def test_the_largest_piece_starts_on_a_cache_line() -> None:
    """Its loads are wide then; where rows start in memory changes no value."""

    @stencil
    def inner(u, i, j):
        return u[i, j] + 0.25 * (u[i, j - 1] - u[i, j + 1])

    @stencil
    def edge(u, i, j):
        return 0.5 * u[i, j]

    boxes = ([(0, 0), (5, -3)], [(0, 0), (0, 5)], [(0, 0), (-3, 0)])
    pieces = [Piece(f, box, ["w"]) for f, box in zip((inner, edge, edge), boxes, strict=True)]
    u, found = RNG.normal(size=(4, 40)), []
    for engine in ("kernel", "reference"):
        loop = on_host(System([Sweep(pieces)], {"u": "w"}), u.shape, engine=engine)
        assert {(b.layout.origin[-1] + 5) * 8 % 128 for b in loop.program.buffers} == {0}
        loop.set("u", u)
        loop.run(3)
        found.append(loop.to_numpy("u"))
    assert np.array_equal(*found)
