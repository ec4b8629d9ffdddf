"""Several ranks: the bits of one rank, ranks in threads and under MPI, silence and failures of peers."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stencil_dsl
from stencil_dsl import StencilError, stencil
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
    System,
    TimeLoop,
    run_ranks,
)
from stencil_dsl.solve.ranks import cut
from stencil_dsl.solve.transports.base import Transport

RNG = np.random.default_rng(21)


@stencil
def star(u, i, j, k):
    return 0.4 * u[i, j, k] + 0.1 * (
        u[i - 1, j, k] + u[i + 2, j, k] + u[i, j - 2, k] + u[i, j + 1, k] + u[i, j, k - 1] + u[i, j, k + 1]
    )


@stencil
def box(u, i, j, k):
    return 0.5 * u[i - 1, j + 1, k] + 0.25 * u[i + 1, j - 1, k + 1] - 0.125 * u[i + 1, j + 1, k - 2] + 0.1 * u[i, j, k]


@stencil
def wave(u, old, vp, i, j, k):
    around = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k] + u[i, j, k - 1] + u[i, j, k + 1]
    return 2.0 * u[i, j, k] - old[i, j, k] + vp[i, j, k] * (around - 6.0 * u[i, j, k])


def run(ranks: Transport | None, what, shape, rules, grid, values, steps: int, **more) -> dict[str, np.ndarray]:
    loop = TimeLoop(what, shape, rules, device="cpu", order="source", ranks=ranks, grid=grid, **more)
    for name, data in values.items():
        loop.set(name, data)
    loop.run(steps)
    return {name: loop.to_numpy(name) for name in loop.fields}


def same_on_all_ranks(size: int, what, shape, rules, grid, values, steps: int = 3, **more) -> None:
    alone = run(None, what, shape, rules, None, values, steps, **more)
    for each in run_ranks(size, lambda t: run(t, what, shape, rules, grid, values, steps, **more), timeout=30):
        for name, data in alone.items():
            assert np.array_equal(each[name], data), name


AXIS_RULES = [
    Periodic(),
    Outflow(),
    Dirichlet(0.5),
    {"-": Neumann(0.25), "+": Antisymmetric()},
    {"-": Dirichlet(-1.0, at="face"), "+": Outflow()},
    "values by cell",
]


@st.composite
def situations(draw: st.DrawFn):
    grid = draw(st.sampled_from([(2,), (3,), (1, 2), (2, 2), (1, 3), (3, 2)]))
    shape = tuple(draw(st.integers(3 * g, 3 * g + 4)) for g in (*grid, 1, 1)[:3])
    rules = {}
    for number, axis in enumerate("xyz"):
        rule = draw(st.sampled_from(AXIS_RULES))
        if rule == "values by cell":
            # A face across the cut: what one rank has beside its part is another's.
            rule = Dirichlet(np.random.default_rng(number).normal(size=shape[:number] + shape[number + 1 :]))
        rules |= {axis + side: r for side, r in rule.items()} if isinstance(rule, dict) else {axis: rule}
    return grid, shape, rules, draw(st.sampled_from([star, box]))


@settings(max_examples=25)
@given(situations())
def test_bits_of_one_rank(situation) -> None:
    grid, shape, rules, what = situation
    values = {"u": np.random.default_rng(1).normal(size=shape)}
    same_on_all_ranks(int(np.prod(grid)), what, shape, {"u": rules}, grid, values, engine="reference")


@pytest.mark.parametrize("what", [star, box])
def test_compiled_kernels_on_four_ranks(what) -> None:
    shape = (7, 8, 5)
    rules = {"u": {"x": Periodic(), "y": Outflow(), "z": Dirichlet(1.0)}}
    same_on_all_ranks(4, what, shape, rules, (2, 2), {"u": RNG.normal(size=shape)}, steps=2)


def test_in_place_updates_coefficients_and_face_arrays() -> None:
    shape = (8, 6, 5)
    wall = RNG.normal(size=(8, 6))
    system = System([wave], {"u": "wave", "old": "u"})
    rules = {"u": {"x": Outflow(), "y": Periodic(), "z-": Dirichlet(wall), "z+": Dirichlet(0.0)}}
    values = {"u": RNG.normal(size=shape), "old": RNG.normal(size=shape), "vp": RNG.uniform(0.1, 0.2, size=shape)}
    for grid in ((3,), (2, 2)):
        same_on_all_ranks(int(np.prod(grid)), system, shape, rules, grid, values)


def test_composed_steps_have_the_same_bits_on_ranks() -> None:
    """Wide halos between ranks, and strips along outer faces that are cut."""
    shape = (19, 20, 5)
    values = {"u": RNG.normal(size=shape)}

    @stencil
    def one(u, i, j, k):
        return 0.4 * u[i, j, k] + 0.1 * (u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k + 1] + u[i, j + 1, k])

    for rules in (Periodic(), {"x": Outflow(), "y": Dirichlet(0.5), "z": Periodic()}):
        for grid in ((2,), (2, 2)):
            more = {"temporal_steps": 2, "engine": "reference"}
            same_on_all_ranks(int(np.prod(grid)), one, shape, {"u": rules}, grid, values, 5, **more)


def test_constant_fields_are_exchanged_once() -> None:
    @stencil
    def spread(u, k, i, j):
        return u[i, j] + 0.5 * (k[i + 1, j] * (u[i + 1, j] - u[i, j]) - k[i, j] * (u[i, j] - u[i - 1, j]))

    rules = {"u": Periodic(), "k": {"x": Outflow(), "z": Keep()}}
    values = {"u": RNG.normal(size=(9, 4)), "k": RNG.uniform(size=(9, 4))}
    same_on_all_ranks(3, spread, (9, 4), rules, (3,), values)


def test_regions_and_profiles_and_integrators() -> None:
    @stencil
    def grow(u, p, i, j):
        return u[i, j] * p[i, j]

    @stencil
    def blur(u, i, j):
        return 0.5 * (u[i - 1, j] + u[i + 1, j])

    sweep = Sweep([Piece(grow, [(0, 5), (0, 0)], ["new"]), Piece(blur, [(5, 0), (0, 0)], ["new"])])
    values = {"u": RNG.normal(size=(11, 4))}
    profiles = {"p": ([0], RNG.normal(size=11))}
    same_on_all_ranks(3, System([sweep], {"u": "new"}), (11, 4), {"u": Outflow()}, (3,), values, profiles=profiles)

    @stencil
    def rate(u, i, j):
        return u[i - 1, j] + u[i + 1, j - 1] - 2.0 * u[i, j] * u[i, j]

    def program(ranks: Transport | None) -> np.ndarray:
        loop = TimeLoop(Integrate([rate], ["u"]), (11, 4), {"u": Periodic()}, device="cpu", order="source", ranks=ranks)
        loop.set("u", values["u"])
        loop.run(2, dt=0.05)
        return loop.to_numpy("u")

    assert all(np.array_equal(each, program(None)) for each in run_ranks(3, program))


def test_points_reductions_and_checkpoints(tmp_path: Path) -> None:
    """Sources and receivers across cuts, sums with the bits of one rank, a checkpoint that another number continues."""
    start = RNG.normal(size=(9, 4, 5)) * 1e6

    def program(ranks: Transport | None, path: Path, resume: bool):
        loop = TimeLoop(
            star, (9, 4, 5), {"u": Outflow()}, device="cpu", order="source", ranks=ranks, engine="reference"
        )
        loop.source("u", [(2.5, 1, 1), (5.75, 2.5, 3)], RNG_SERIES)
        receiver = loop.receiver("u", [(2.5, 1.5, 0), (8, 3, 4)])
        loop.set("u", start)
        loop.guard(1)
        if resume:
            loop.load(path)
        loop.run(until=6 if resume else 3, checkpoint_to=path)
        sums = [loop.total("u"), loop.norm("u"), loop.norm("u", 1), loop.norm("u", np.inf), loop.dot("u", "u")]
        return loop.to_numpy("u"), loop.traces(receiver), [*sums, loop.maximum("u"), loop.minimum("u")]

    results = []
    for first, second in ((1, 1), (3, 2), (2, 1)):
        path = tmp_path / f"{first}{second}.npz"
        for size, resume in ((first, False), (second, True)):
            if size == 1:
                results.append(program(None, path, resume))
            else:
                results.append(run_ranks(size, lambda t, p=path, r=resume: program(t, p, r))[-1])
    for again, once in zip(results[2::2] + results[3::2], [results[0]] * 2 + [results[1]] * 2, strict=True):
        assert np.array_equal(again[0], once[0]) and np.array_equal(again[1], once[1]) and again[2] == once[2]
    assert results[1][1].shape == (6, 2)


RNG_SERIES = RNG.normal(size=(6, 2)) * 1e6


def test_the_program_says_what_travels_and_what_overlaps() -> None:
    def program(ranks: Transport) -> tuple[str, str]:
        kinds = ({"u": Periodic()}, {"u": {"x": Outflow(), "y": Outflow(), "z": Periodic()}})
        return tuple(
            TimeLoop(f, (8, 6, 5), rules, device="cpu", ranks=ranks).ir()
            for f, rules in zip((star, box), kinds, strict=True)
        )  # type: ignore[return-value]

    plain, corners = run_ranks(2, program)[0]
    assert "comm.start %u lo [1, 2, 0] hi [2, 1, 0] outer [1, 2, 0] to [2, 1, 0] axes [0] :" in plain
    assert "after(" in plain and "margin [1, 0, 0] to [2, 0, 0]" in plain and "timestep.fill" not in plain
    assert "axes [0] corners :" in corners


@pytest.mark.parametrize(
    ("size", "grid", "shape", "message"),
    [
        (2, (3,), (8, 6, 5), r"a grid of \(3,\) has 3 places for 2 ranks"),
        (2, (1, 1, 2), (8, 6, 5), "cut along x, y .never along z."),
        (4, (4,), (3, 6, 5), "3 cells along axis 0 cannot be given to 4 ranks"),
        (4, (4,), (5, 6, 5), r"'u' needs 2 ghost cells along x, but rank [123] has 1 cells there; use fewer ranks"),
    ],
)
def test_impossible_cuts_are_refused(size: int, grid, shape, message: str) -> None:
    values = {"u": np.zeros(shape)}
    with pytest.raises(StencilError, match=message):
        run_ranks(size, lambda t: run(t, star, shape, {"u": Periodic()}, grid, values, 1, engine="reference"))


@pytest.mark.parametrize(("n", "parts"), [(7, 3), (6, 3), (5, 5), (9, 2)])
def test_parts_are_balanced(n: int, parts: int) -> None:
    found = [cut(n, parts, p) for p in range(parts)]
    assert [lo for lo, _ in found] + [n] == [0] + [hi for _, hi in found]
    sizes = [hi - lo for lo, hi in found]
    assert max(sizes) - min(sizes) <= 1


def test_a_silent_peer_is_an_error_within_the_time_limit() -> None:
    def program(ranks: Transport) -> None:
        loop = TimeLoop(star, (8, 4, 4), {"u": Periodic()}, device="cpu", engine="reference", ranks=ranks)
        loop.run(2 if ranks.rank == 0 else 1)

    begin = time.monotonic()
    with pytest.raises(StencilError, match=r"rank 0 waited 0.3 s for ghost cells of 'u' along x of rank 1"):
        run_ranks(2, program, timeout=0.3)
    assert time.monotonic() - begin < 30


def test_the_error_of_a_rank_reaches_the_caller_and_frees_the_others() -> None:
    def program(ranks: Transport) -> None:
        loop = TimeLoop(star, (8, 4, 4), {"u": Periodic()}, device="cpu", engine="reference", ranks=ranks)
        if ranks.rank == 1:
            raise ZeroDivisionError("of rank 1")
        with pytest.raises(StencilError, match="rank 0 gives up, because rank 1 failed: of rank 1"):
            loop.run(1)

    with pytest.raises(ZeroDivisionError, match="of rank 1"):
        run_ranks(2, program, timeout=60)


def test_the_guard_stops_all_ranks() -> None:
    def program(ranks: Transport) -> str:
        loop = TimeLoop(star, (8, 4, 4), {"u": Outflow()}, device="cpu", engine="reference", ranks=ranks)
        loop.set("u", lambda i, j, k: np.where((i == 7) & (j == 0) & (k == 0), np.inf, 0.0))
        loop.guard(1)
        with pytest.raises(StencilError) as caught:
            loop.run(3)
        return str(caught.value)

    first, second = run_ranks(2, program)
    assert first == second and "cell (5, 0, 0)" in first


@pytest.mark.parametrize("grid", [None, (2, 2), (1, 3), (5,)])
def test_a_kernel_on_several_devices_has_the_bits_of_one(grid: tuple[int, ...] | None) -> None:
    """One line changes; arrays of any kind, corners across cuts, several fields, boxes that stay where they are."""

    @stencil
    def mix(u, c, dt, i, j, k):
        return u[i, j, k] + dt * c[i + 1, j, k] * (u[i - 1, j + 1, k] - u[i + 2, j - 1, k + 1])

    many = 3 if grid is None else int(np.prod(grid))
    one = stencil_dsl.compile(mix, order="source")
    spread = stencil_dsl.compile(mix, order="source", num_gpus=many, grid=grid)
    shape, halo = (11, 7, 5), one.halo
    full = tuple(n + lo + hi for n, (lo, hi) in zip(shape, halo, strict=True))
    u, c = RNG.normal(size=(2, *full))
    want = stencil_dsl.zeros(shape, halo, device="cpu")
    again = stencil_dsl.asarray(u, halo, device="cpu", includes_halo=True)
    one(u, c, want, dt=0.5)
    for got in (np.zeros(shape), stencil_dsl.zeros(shape, halo, device="cpu")):
        spread(u, c, got, dt=0.5)
        assert np.array_equal(getattr(got, "interior", got), want.interior)
    assert spread.halo == one.halo and spread.name == "mix"
    now, coefficient, new = spread.scatter(again), spread.scatter(c), spread.zeros(shape, "cpu")
    spread(now, coefficient, new, dt=0.5)
    spread(new, coefficient, now, dt=0.25)
    one(want, c, again, dt=0.25)
    assert np.array_equal(now.to_numpy(), again.interior)
    with pytest.raises(StencilError, match="takes arrays of one kind"):
        spread(u, coefficient, new, dt=0.5)
    with pytest.raises(StencilError, match=r"takes 3 arrays and the scalars \['dt'\], got 3 and none"):
        spread(now, coefficient, new)
    spread(now, coefficient, new, dt=0.5)  # an error leaves it usable


def test_impossible_numbers_of_devices_are_refused() -> None:
    with pytest.raises(StencilError, match="num_gpus is at least 1, got 0"):
        stencil_dsl.compile(star, num_gpus=0)
    with pytest.raises(StencilError, match=r"a grid of \(3,\) has 3 places for 2 ranks"):
        stencil_dsl.compile(star, num_gpus=2, grid=(3,)).zeros((9, 9, 9), "cpu")


PROGRAM = """
import sys
import numpy as np
from stencil_dsl import asarray, compile, stencil, zeros
from stencil_dsl.solve import Periodic, Dirichlet, TimeLoop, world

@stencil
def heat(u, i, j):
    return u[i, j] + 0.1 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j])

ranks = world(timeout=float(sys.argv[2]))
loop = TimeLoop(heat, (9, 6), {"u": {"x": Periodic(), "z": Dirichlet(0.0)}}, device="cpu", order="source", ranks=ranks)
loop.set("u", np.random.default_rng(0).normal(size=(9, 6)))
silent = sys.argv[3:] == ["silent"] and ranks.rank == 1
try:
    loop.run(1 if silent else 4)
    if not silent:
        u, total = loop.to_numpy("u"), loop.total("u")
        kernel = compile(heat, num_gpus=2, order="source")
        swept = zeros((9, 6), kernel.halo, device="cpu")
        kernel(asarray(u, kernel.halo, device="cpu"), swept)
        if ranks.rank == 0:
            np.savez(sys.argv[1], u=u, total=total, size=ranks.size, swept=swept.interior)
    else:
        import time
        time.sleep(1000)
except Exception as error:
    print(error, file=sys.stderr, flush=True)
    if ranks.size > 1:
        ranks.communicator.Abort(3)
    raise
"""

needs_mpi = pytest.mark.skipif(
    shutil.which("mpirun") is None or importlib.util.find_spec("mpi4py") is None, reason="no mpirun or no mpi4py here"
)
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n"]


@needs_mpi
def test_the_same_program_under_mpi(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    outputs = []
    for launcher in ([], [*MPIRUN, "3"]):
        outputs.append(tmp_path / f"{len(launcher)}.npz")
        done = subprocess.run(
            [*launcher, sys.executable, str(program), str(outputs[-1]), "60"],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
    one, three = (np.load(path) for path in outputs)
    assert (int(one["size"]), int(three["size"])) == (1, 3)
    assert all(np.array_equal(one[name], three[name]) for name in ("u", "total", "swept"))
    assert one["swept"].any()


@needs_mpi
def test_a_silent_mpi_rank_is_an_error_within_the_time_limit(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [*MPIRUN, "2", sys.executable, str(program), str(tmp_path / "x.npz"), "2", "silent"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0
    assert "rank 0 waited 2 s for ghost cells of 'u' along x (peer: rank 1)" in done.stderr
