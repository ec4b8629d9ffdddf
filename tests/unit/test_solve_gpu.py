"""Time loops on GPUs against the reference on the host; skipped where there is none.

Kernels come from the cache, so a machine without a toolkit can be served by another one:

    STENCIL_DSL_CACHE=kernels python tests/unit/test_solve_gpu.py fill     compile what the tests run
    STENCIL_DSL_CACHE=kernels python -m pytest tests/unit/test_solve_gpu.py

Times are measured by repro/test_solvers.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest

from stencil_dsl import StencilError, asarray, compile, stencil, zeros
from stencil_dsl.frontend import Field
from stencil_dsl.runtime.devices import gpu_available
from stencil_dsl.solve import (
    Antisymmetric,
    Dirichlet,
    Integrate,
    Neumann,
    Outflow,
    Periodic,
    Piece,
    Sweep,
    System,
    TimeLoop,
    spread,
)
from stencil_dsl.solve.crew import Crew
from stencil_dsl.solve.spread import Spread

TARGET = "sm_90"
SHAPE = (20, 24, 40)


@stencil
def star(u, i, j, k):
    ends = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k] + u[i, j, k - 1] + u[i, j, k + 1]
    return 0.4 * u[i, j, k] + 0.1 * ends


@stencil
def box(u, dt, i, j, k):
    corners = u[i - 1, j - 1, k + 1] + u[i + 1, j + 1, k - 2] - 2.0 * u[i, j, k]
    return u[i, j, k] + dt * corners


@stencil
def wave(u, older, vp: Field, p, i, j, k):
    ends = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k] + u[i, j, k - 1] + u[i, j, k + 1]
    return 2.0 * u[i, j, k] - older[i, j, k] + vp[i, j, k] * p[k] * (ends - 6.0 * u[i, j, k])


@stencil
def rate(u, t, i, j, k):
    return t * (u[i - 1, j, k] - 2.0 * u[i, j, k] + u[i + 1, j, k]) - u[i, j, k] * u[i, j, k]


@stencil
def damp(u, older, i, j, k):
    return 0.9 * u[i, j, k] - 0.1 * older[i, j, k]


@stencil
def plane(u, dt, i, j):
    return u[i, j] + dt * (u[i - 1, j + 1] + u[i + 1, j - 2] - 2.0 * u[i, j])


@stencil
def line(u, i):
    return 0.5 * u[i] + 0.25 * (u[i - 1] + u[i + 1])


WALL = np.random.default_rng(1).normal(size=(20, 40))
MIXED = {"x": Periodic(), "y-": Dirichlet(WALL), "y+": Neumann(0.25), "z-": Antisymmetric(), "z+": Outflow()}
PIECES = Sweep(
    [
        Piece(wave, [(0, 0), (4, -4), (0, 0)], ["new"]),
        Piece(damp, [(0, 0), (0, 4), (0, 0)], ["new"]),
        Piece(damp, [(0, 0), (-4, 0), (0, 0)], ["new"]),
    ]
)

CASES: dict[str, tuple[Callable[..., TimeLoop], dict]] = {
    "periodic": (lambda **o: TimeLoop(star, SHAPE, {"u": Periodic()}, **o), {}),
    "mixed faces and corners": (lambda **o: TimeLoop(box, SHAPE, {"u": MIXED}, **o), {"dt": 0.05}),
    "run-time faces": (
        lambda **o: TimeLoop(box, SHAPE, {"u": Dirichlet("edge")}, **o),
        {"dt": 0.05, "edge": lambda n: 0.1 * n},
    ),
    "narrow": (lambda **o: TimeLoop(box, (1, 2, 3), {"u": Periodic()}, **o), {"dt": 0.05}),
    "pieces in place": (
        lambda **o: TimeLoop(
            System([PIECES], {"u": "new", "older": "u"}),
            SHAPE,
            {"u": {"x": Periodic(), "y": Outflow(), "z": Dirichlet(0.5)}},
            profiles={"p": np.linspace(0.5, 1.0, 40)},
            **o,
        ),
        {},
    ),
    "integrator": (
        lambda **o: TimeLoop(Integrate([rate], ["u"], "rk4", time="t"), SHAPE, {"u": Periodic()}, **o),
        {"dt": 0.01, "t": lambda n: 0.01 * n},
    ),
    "composed steps": (lambda **o: TimeLoop(star, SHAPE, {"u": Periodic()}, temporal_steps=3, **o), {}),
    "composed steps beside strips": (
        lambda **o: TimeLoop(star, SHAPE, {"u": MIXED}, temporal_steps=2, **o),
        {},
    ),
    "composed steps with faces of a run": (
        lambda **o: TimeLoop(star, SHAPE, {"u": Dirichlet("edge", at="face")}, temporal_steps=3, **o),
        {"edge": 0.25},
    ),
    "two dimensions": (lambda **o: TimeLoop(plane, (30, 70), {"u": Neumann(0.1)}, **o), {"dt": 0.1}),
    "one dimension": (lambda **o: TimeLoop(line, (300,), {"u": Antisymmetric()}, **o), {}),
    "float32": (lambda **o: TimeLoop(star, SHAPE, {"u": MIXED}, dtype="float32", **o), {}),
}


def simulate(name: str, device: str, steps: int = 41, **options):
    """A case with sources and receivers where it may have them; gives fields and traces."""
    make, scalars = CASES[name]
    loop = make(device=device, target=TARGET, **options)
    rng = np.random.default_rng(3)
    for field in loop.fields:
        if field != "p":
            loop.set(field, rng.uniform(0.05, 0.1, loop.shape))
    receiver = None
    if loop.composed is None and loop.shape == SHAPE:
        loop.source("u", [(3.5, 4, 5), (3, 4.25, 5)], lambda n: (0.01 * n, 0.02))
        receiver = loop.receiver("u", [(3.5, 4.5, 5), (19, 23, 39)])
    loop.record(20, "u")
    loop.run(steps, **scalars)
    fields = {field: loop.to_numpy(field) for field in loop.fields}
    return fields, None if receiver is None else loop.traces(receiver), loop


needs_gpu = pytest.mark.skipif(not gpu_available(), reason="no GPU here")


@needs_gpu
@pytest.mark.parametrize("name", CASES)
def test_the_gpu_agrees_with_the_reference(name: str) -> None:
    """Order of the source on both sides; multiply-add in the kernels is what may differ."""
    got, traces, loop = simulate(name, "gpu", order="source")
    want, wanted_traces, _ = simulate(name, "cpu", engine="reference", order="source")
    limit = 1e-4 if loop.dtype == "float32" else 1e-11
    for field, values in want.items():
        assert np.abs(got[field] - values).max() <= limit * np.abs(values).max(), field
    if traces is not None:
        assert np.allclose(traces, wanted_traces, rtol=limit, atol=limit)


@needs_gpu
@pytest.mark.parametrize("name", ["periodic", "pieces in place", "mixed faces and corners"])
def test_graphs_have_the_bits_of_single_steps(name: str) -> None:
    graphs, traces, loop = simulate(name, "gpu", steps=83)
    single, single_traces, _ = simulate(name, "gpu", steps=83, graphs=False)
    assert loop.stepper._captured, "no graph was captured"
    assert all(np.array_equal(graphs[field], single[field]) for field in graphs)
    assert np.array_equal(traces, single_traces)


LINES = [(cells, faces) for cells in (1 << 12, 1 << 22) for faces in ("mirror", "periodic")]


def long_line(cells: int, faces: str, **options) -> TimeLoop:
    rule = {"mirror": Dirichlet(0.0, at="face"), "periodic": Periodic()}[faces]
    return TimeLoop(line, (cells,), {"u": rule}, target=TARGET, **options)


@needs_gpu
@pytest.mark.parametrize("graphs", [True, False])
@pytest.mark.parametrize(("cells", "faces"), LINES)
def test_long_lines_keep_their_waves(cells: int, faces: str, graphs: bool) -> None:
    """Contiguous memory that takes longer to copy than a step: what reads too early, or late, sees other steps."""
    modes = cells // 32
    wave = np.sin(np.pi * modes * (np.arange(cells) + 0.5) / cells)
    loop = long_line(cells, faces, device="gpu", graphs=graphs)
    loop.set("u", wave)
    loop.run(256)
    left = np.cos(np.pi * modes / (2 * cells)) ** 2
    got = loop.to_numpy("u")
    found = float(got @ wave / (wave @ wave))
    assert abs(np.log(found) / np.log(left) - 256) < 1e-6, "the wave is that of another step"
    assert np.abs(got - left**256 * wave).max() < 1e-10


@needs_gpu
def test_events_checkpoints_and_reductions(tmp_path) -> None:
    """Resumed with the bits of an uninterrupted run; sums with those of the host; the guard names the cell."""
    make, scalars = CASES["mixed faces and corners"]
    start = np.random.default_rng(4).normal(size=SHAPE)
    loops = [make(device="gpu", target=TARGET, order="source") for _ in range(2)]
    whole, broken = loops
    for loop in loops:
        loop.set("u", start)
    whole.run(70, **scalars)
    broken.run(41, **scalars, checkpoint_to=tmp_path / "state.npz")
    again = make(device="gpu", target=TARGET, order="source")
    again.load(tmp_path / "state.npz")
    again.guard(10)
    again.run(until=70, **scalars)
    u = whole.to_numpy("u")
    assert np.array_equal(again.to_numpy("u"), u)
    host = make(device="cpu", engine="reference")
    host.set("u", u)
    for what in ("total", "maximum", "minimum", "norm"):
        assert getattr(whole, what)("u") == getattr(host, what)("u"), what
    assert whole.norm("u", 1) == host.norm("u", 1) and whole.dot("u", "u") == host.dot("u", "u")
    again.set("u", np.where(start == start[3, 4, 5], np.inf, start))
    with pytest.raises(StencilError, match="after step 80"):
        again.run(until=100, **scalars)


# -- several GPUs


def gpus() -> int:
    if not gpu_available():
        return 0
    import cupy

    return cupy.cuda.runtime.getDeviceCount()


needs_two = pytest.mark.skipif(gpus() < 2, reason="fewer than two GPUs here")
TOGETHER: dict[str, dict] = {
    "a graph of both": {},
    "single launches": {"graphs": False},
    "nccl": {"over": "nccl"},
    "nccl, single launches": {"over": "nccl", "graphs": False},
}


@needs_two
@pytest.mark.parametrize("how", TOGETHER)
@pytest.mark.parametrize(("what", "steps"), [(star, 1), (box, 1), (star, 2)])
def test_two_gpus_have_the_bits_of_one(how: str, what, steps: int) -> None:
    """Faces, corners, composed steps; graphs are captured and launched several times."""
    start = np.random.default_rng(5).normal(size=SHAPE)
    scalars = {"dt": 0.05} if what is box else {}
    rules = {"u": MIXED if what is box else Periodic()}
    more = {"order": "source", "device": "gpu", "target": TARGET, "temporal_steps": steps}
    results = []
    for loop in (TimeLoop(what, SHAPE, rules, **more), spread(2, what, SHAPE, rules, **more, **TOGETHER[how])):
        loop.set("u", start)
        for count in (83, 7, 40):
            loop.run(count, **scalars)
        results.append((loop.to_numpy("u"), loop.total("u")))
    assert np.array_equal(results[0][0], results[1][0]) and results[0][1] == results[1][1]
    if "graphs" not in TOGETHER[how]:
        assert all(loop.each(lambda part: bool((part.composed or part.stepper)._captured))), "no graph was captured"


@needs_two
def test_points_and_pieces_on_two_gpus() -> None:
    want, traces, _ = simulate("pieces in place", "gpu", order="source")
    make, scalars = CASES["pieces in place"]
    loop = Spread(Crew(2, "gpu"), lambda end: make(device="gpu", target=TARGET, order="source", ranks=end))
    rng = np.random.default_rng(3)
    for field in loop.fields:
        if field != "p":
            loop.set(field, rng.uniform(0.05, 0.1, loop.shape))
    loop.source("u", [(3.5, 4, 5), (3, 4.25, 5)], lambda n: (0.01 * n, 0.02))
    receiver = loop.receiver("u", [(3.5, 4.5, 5), (19, 23, 39)])
    loop.run(41, **scalars)
    assert all(np.array_equal(loop.to_numpy(name), values) for name, values in want.items() if name != "p")
    assert np.array_equal(loop.traces(receiver), traces)


@needs_two
def test_a_kernel_on_two_gpus() -> None:
    one, two = (compile(box, TARGET, order="source", num_gpus=n) for n in (1, 2))
    around = tuple(n + lo + hi for n, (lo, hi) in zip(SHAPE, one.halo, strict=True))
    u = asarray(np.random.default_rng(6).normal(size=around), one.halo, includes_halo=True)
    want, got = zeros(SHAPE, one.halo), zeros(SHAPE, one.halo)
    one(u, want, dt=0.1)
    two(u, got, dt=0.1)
    assert np.array_equal(got.to_numpy(), want.to_numpy())
    now, new = two.scatter(u), two.zeros(SHAPE)
    two(now, new, dt=0.1)
    two(new, now, dt=0.2)
    one(want, got, dt=0.2)
    assert np.array_equal(now.to_numpy(), got.to_numpy())


# -- compiling ahead


def fill() -> None:
    """Compile every kernel that the tests launch."""
    for name, (make, _) in CASES.items():
        for order in ("source", "fast"):
            make(device="cpu", target=TARGET, order=order).compile()
        print(name, flush=True)
    for cells, faces in LINES:
        long_line(cells, faces, device="cpu").compile()
    more = {"order": "source", "device": "cpu", "target": TARGET}
    for what, rules, steps in ((star, Periodic(), 1), (star, Periodic(), 2), (box, MIXED, 1)):
        TimeLoop(what, SHAPE, {"u": rules}, temporal_steps=steps, **more).compile()
        spread(2, what, SHAPE, {"u": rules}, temporal_steps=steps, **more).each(lambda part: part.compile())
    pieces = CASES["pieces in place"][0]
    Spread(Crew(2, "cpu"), lambda end: pieces(**more, ranks=end)).each(lambda part: part.compile())
    _ = compile(box, TARGET, order="source", shape=SHAPE).entry
    two = compile(box, TARGET, order="source", num_gpus=2)
    two(two.zeros(SHAPE, device="cpu"), two.zeros(SHAPE, device="cpu"), dt=0.1)
    for sweeps, _ in two._bound.values():
        for sweep in sweeps:
            sweep.compile()
    print("two GPUs", flush=True)


if __name__ == "__main__":
    {"fill": fill}[sys.argv[1]]()
