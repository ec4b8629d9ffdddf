"""Time loops on GPUs against the reference on the host; skipped where there is none.

Kernels come from the cache, so a machine without a toolkit can be served by another one:

    STENCIL_DSL_CACHE=kernels python tests/unit/test_solve_gpu.py fill     compile what the tests and `time` run
    STENCIL_DSL_CACHE=kernels python -m pytest tests/unit/test_solve_gpu.py
    STENCIL_DSL_CACHE=kernels python tests/unit/test_solve_gpu.py time     steps a second at full size
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest

from stencil_dsl import stencil
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
    return 2.0 * u[i, j, k] - older[i, j, k] + vp[i, j, k] * p[i, j, k] * (ends - 6.0 * u[i, j, k])


@stencil
def rate(u, t, i, j, k):
    return t * (u[i - 1, j, k] - 2.0 * u[i, j, k] + u[i + 1, j, k]) - u[i, j, k] * u[i, j, k]


@stencil
def damp(u, older, i, j, k):
    return 0.9 * u[i, j, k] - 0.1 * older[i, j, k]


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
            profiles={"p": ([2], np.linspace(0.5, 1.0, 40))},
            **o,
        ),
        {},
    ),
    "integrator": (
        lambda **o: TimeLoop(Integrate([rate], ["u"], "rk4", time="t"), SHAPE, {"u": Periodic()}, **o),
        {"dt": 0.01, "t": lambda n: 0.01 * n},
    ),
    "composed steps": (lambda **o: TimeLoop(star, SHAPE, {"u": Periodic()}, temporal_steps=3, **o), {}),
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


@needs_gpu
def test_two_gpus_have_the_bits_of_one() -> None:
    import cupy

    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one GPU only")
    start = np.random.default_rng(5).normal(size=SHAPE)
    for make, scalars in ((star, {}), (box, {"dt": 0.05})):
        rules = {"u": Periodic() if make is star else MIXED}
        results = []
        for loop in (
            TimeLoop(make, SHAPE, rules, order="source", device="gpu", target=TARGET),
            spread(2, make, SHAPE, rules, order="source", device="gpu", target=TARGET),
        ):
            loop.set("u", start)
            loop.run(25, **scalars)
            results.append((loop.to_numpy("u"), loop.total("u")))
        assert np.array_equal(results[0][0], results[1][0]) and results[0][1] == results[1][1]


# -- compiling ahead, and timing

LARGE = (512, 512, 512)


def timed_loops(device: str):
    yield "star-7, single steps", TimeLoop(star, LARGE, {"u": Periodic()}, device=device, target=TARGET)
    yield (
        "star-7, three steps a sweep",
        TimeLoop(star, LARGE, {"u": Periodic()}, device=device, target=TARGET, temporal_steps=3),
    )


def fill() -> None:
    """Compile every kernel that the tests and `measure` launch."""
    for name, (make, _) in CASES.items():
        for order in ("source", "fast"):
            make(device="cpu", target=TARGET, order=order).compile()
        print(name, flush=True)
    for make in (star, box):
        spread(
            2, make, SHAPE, {"u": Periodic() if make is star else MIXED}, order="source", device="cpu", target=TARGET
        ).compile()
    for name, loop in timed_loops("cpu"):
        loop.compile()
        print(name, flush=True)


def measure() -> None:
    """Milliseconds a step of whole loops, beside the bare sweep and a copy."""
    import cupy

    def milliseconds(work: Callable[[], None], count: int) -> float:
        work()
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        work()
        end.record()
        end.synchronize()
        return cupy.cuda.get_elapsed_time(begin, end) / count

    for name, loop in timed_loops("gpu"):
        loop.set("u", 1.0)
        loop.run(96)
        program = (loop.composed or loop.stepper).program
        sweeps = [program.phase(n).sweeps[0] for n in range(2)]
        a, b = (buffer.full for buffer in program.buffers[:2])
        rows = {
            "a step of the loop": milliseconds(lambda loop=loop: loop.run(960), 960),
            "the sweep alone": milliseconds(lambda s=sweeps: [s[n % 2].launch() for n in range(96)], 96),
            "a copy": milliseconds(lambda a=a, b=b: [cupy.copyto(b, a) for _ in range(96)], 96),
        }
        print(name, ", ".join(f"{what} {ms:.4f} ms" for what, ms in rows.items()), flush=True)


if __name__ == "__main__":
    {"fill": fill, "time": measure}[sys.argv[1]]()
