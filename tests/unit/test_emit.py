"""The emitted files: what they look like, and that their host functions call kernels as the runtime does.

Files are compared with tests/golden/*.py; `pytest tests/unit/test_emit.py --update-golden` writes those anew. Read the
difference before committing it.
"""

from __future__ import annotations

import ast
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from stencil_dsl import Schedule, compile, stencil
from stencil_dsl.schedule.layout import ITEMSIZE, Layout
from stencil_dsl.toolchain import ArrayParam

GOLDEN = Path(__file__).parents[1] / "golden"


@stencil
def star(u, i, j, k):
    return 0.4 * u[i, j, k] + 0.1 * (
        u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k] + u[i, j, k - 1] + u[i, j, k + 1]
    )


@stencil
def wave(p, p_prev, vel, dt, i, j):
    lap = p[i - 1, j] + p[i + 1, j] + p[i, j - 1] + p[i, j + 1] - 4 * p[i, j]
    return 2 * p[i, j] - p_prev[i, j] + dt * dt * vel[i, j] * lap


@stencil
def upwind(u, v, dt, i):
    left, right = u[i] - u[i - 1], u[i + 1] - u[i]
    slope = where(v[i] > 0 and not left == 0.0, left, right)  # noqa: F821, SIM201 - what the reader must see
    return u[i] - dt * v[i] * slope, max(abs(left), 0.3)


@stencil
def flux(rho, q, i, j, k):
    mass = rho[i + 1, j, k] * q[i + 1, j, k] - rho[i - 1, j, k] * q[i - 1, j, k]
    return -0.5 * mass, sqrt(1.5 + abs(rho[i, j + 1, k]))  # noqa: F821


CASES = {
    "star_shifted": (star, "float64", (8, 9, 300), Schedule(tile=(1, 2, 64), occupancy=4)),
    "star_streaming_pairs": (
        star,
        "float64",
        (64, 64, 256),
        Schedule("streaming", tile=(1, 1, 128), pair=2, rows=2, chunk=32, occupancy=4, order="fast"),
    ),
    "wave_dynamic": (wave, "float32", None, Schedule(tile=(1, 128), static_shape=False, latency=2)),
    "wave_streaming_queue": (
        wave,
        "float32",
        (37, 515),
        Schedule("streaming", tile=(1, 128), chunk=8, carry="queue", block_order="y"),
    ),
    "upwind_checked": (upwind, "float64", (1000,), Schedule(tile=(256,), loads="checked", warps=8)),
    "flux_streaming_rows": (
        flux,
        "float64",
        (16, 12, 128),
        Schedule("streaming", tile=(1, 4, 32), chunk=8, unroll=2, order="fast", opt_level=2),
    ),
}


def kernel_of(name):
    f, dtype, shape, schedule = CASES[name]
    return compile(f, dtype=dtype, shape=shape, schedule=schedule)


@pytest.mark.parametrize("name", CASES)
def test_files_are_those_that_were_read(name, request) -> None:
    text, path = kernel_of(name).source, GOLDEN / f"{name}.py"
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    assert text == path.read_text(), "pytest tests/unit/test_emit.py --update-golden writes the files anew"


@pytest.mark.parametrize("name", CASES)
def test_kernels_of_the_files_are_right(name) -> None:
    outcome = kernel_of(name).validate(device="cpu")
    assert outcome, outcome.message


def test_no_file_is_left_over() -> None:
    assert {p.stem for p in GOLDEN.glob("*.py")} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_files_need_nothing_of_this_package(name) -> None:
    modules = set()
    for node in ast.walk(ast.parse(kernel_of(name).source)):
        if isinstance(node, ast.Import):
            modules |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module)
    assert modules <= {"cuda.tile", "typing", "cupy", "numpy"}


def test_constants_that_float32_cannot_hold_travel_as_bits() -> None:
    """cuTile rounds Python floats to float32; 0.5 survives that, 0.1 would not."""
    source = kernel_of("star_shifted").source
    bits = int(np.float64(0.1).view(np.int64))
    assert f"ct.full((1, 1, 1), {bits}, dtype=ct.int64)" in source
    assert " 0.1 *" not in source
    assert " 0.5 *" in kernel_of("flux_streaming_rows").source or "-0.5 *" in kernel_of("flux_streaming_rows").source


@stencil
def flat(u, i, j):
    return 0.1 + 0 * u[i, j], 2.5, u[i, j]


@pytest.mark.parametrize("schedule", [Schedule(tile=(1, 16)), Schedule("streaming", tile=(1, 8), pair=2, chunk=4)])
def test_an_output_of_one_value_is_stretched_to_its_tile(schedule) -> None:
    kernel = compile(flat, shape=(5, 33), schedule=schedule)
    assert "ct.broadcast_to(" in kernel.source
    assert kernel.validate(device="cpu").exact


# -- the host function


class FakeArray:
    """What `launch_NAME` makes of arrays: a view at an address."""

    def __init__(self, shape, dtype, data=0, strides=()) -> None:
        self.shape, self.dtype, self.data, self.strides = tuple(shape), np.dtype(dtype), data, tuple(strides)


def host_call(kernel, shape, scalar, monkeypatch):
    """Run the host function of an emitted file on fake arrays; grid and arguments of the launch it makes."""
    calls = []
    tile = types.ModuleType("cuda.tile")
    tile.__getattr__ = lambda name: types.SimpleNamespace  # annotations
    tile.kernel = lambda f=None, **hints: f if f is not None else (lambda g: g)
    tile.cdiv = lambda a, b: -(-a // b)
    tile.ArrayAnnotation = lambda **k: None
    tile.launch = lambda stream, grid, function, args: calls.append((stream, grid, function.__name__, args))
    cuda = types.ModuleType("cuda")
    cuda.tile = tile
    cupy = types.ModuleType("cupy")
    cupy.ndarray = FakeArray
    for name, module in {"cuda": cuda, "cuda.tile": tile, "cupy": cupy}.items():
        monkeypatch.setitem(sys.modules, name, module)
    layout = Layout.padded(shape, kernel.halo, kernel.dtype)
    size = ITEMSIZE[kernel.dtype]
    strides = tuple(s * size for s in layout.strides)
    d = kernel.definition
    arrays = [FakeArray(layout.extents, d.dtype, (n + 1) << 32, strides) for n in range(len(d.fields))]
    start = layout.offset * size
    arrays += [FakeArray(shape, d.dtype, ((n + 1) << 40) + start, strides) for n in range(len(d.outputs))]
    names: dict = {}
    exec(kernel.source, names)
    names[f"launch_{kernel.name}"]("stream", *arrays, *[scalar for _ in d.scalars])
    assert len(calls) == 1 and calls[0][0] == "stream" and calls[0][2] == kernel.name
    return calls[0][1], calls[0][3]


@pytest.mark.parametrize("name", CASES)
def test_host_function_calls_as_the_runtime_does(name, monkeypatch) -> None:
    """Grid, and shape, strides and alignment of every argument, are those that the cubin was compiled for."""
    kernel = kernel_of(name)
    shape = kernel.shape or (9, 300)
    grid, args = host_call(kernel, shape, 0.1, monkeypatch)
    spec = kernel._specialization()
    assert grid == spec.grid(shape)
    assert len(args) == len(spec.params)
    for arg, param in zip(args, spec.params, strict=True):
        if not isinstance(param, ArrayParam):
            bits = np.int64 if kernel.dtype == "float64" else np.int32
            assert arg == int(np.dtype(kernel.dtype).type(0.1).view(bits))
            continue
        steps = tuple(s // arg.dtype.itemsize for s in arg.strides)
        assert len(arg.shape) == param.ndim
        assert all(want in (None, have) for want, have in zip(param.shape, arg.shape, strict=True))
        assert all(want in (None, have) for want, have in zip(param.strides, steps, strict=True))
        assert arg.data % param.base_divisible_by == 0
