"""Device functions and kernels for the tests of tile libraries."""

from __future__ import annotations

import importlib.util

import pytest

from stencil_dsl import toolchain
from stencil_dsl.errors import ToolchainError
from stencil_dsl.tilelib import Code, Export, Layout, Parameter, TileLibrary, make_library, tile_export
from stencil_dsl.tilelib.exports import Access, Sync
from stencil_dsl.tilelib.layouts import warpwise
from stencil_dsl.tilelib.nvvm import FunctionBuilder


def _why_not() -> str:
    if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.tile") is None:
        return "tile libraries need cuda.tile: pip install 'stencil-dsl[toolchain]'"
    try:
        from stencil_dsl.toolchain.libraries import check_toolkit

        check_toolkit(toolchain.find())
    except ToolchainError as error:
        return str(error)
    return ""


needs_libraries = pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "available")

WARP_SUM = """
declare float @llvm.nvvm.shfl.sync.bfly.f32(i32, float, i32, i32)
define void @warp_sum_impl(float %x, ptr %out) {
  %s16 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %x, i32 16, i32 31)
  %t16 = fadd float %x, %s16
  %s8 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %t16, i32 8, i32 31)
  %t8 = fadd float %t16, %s8
  %s4 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %t8, i32 4, i32 31)
  %t4 = fadd float %t8, %s4
  %s2 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %t4, i32 2, i32 31)
  %t2 = fadd float %t4, %s2
  %s1 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %t2, i32 1, i32 31)
  %t1 = fadd float %t2, %s1
  store float %t1, ptr %out
  ret void
}
"""


@tile_export(tile_shape=128, dtype="float32")
def relu(x):
    return x if x > 0.0 else 0.0


@tile_export(tile_shape=128, dtype="float32", name="scale_in_place", inout="x")
def scale(x, factor):
    return x * factor


@tile_export(tile_shape=128, dtype="float32", sync="warp", nvvm=WARP_SUM)
def warp_sum(x): ...


def examples() -> TileLibrary:
    """The three kinds of functions: elementwise, in place, and shuffling between the lanes of a warp."""
    return make_library("examples", relu, scale, warp_sum)


def examples_kernel(library: TileLibrary, pure: bool) -> str:
    """A kernel that calls all three: sums over warps of relu(u) / 2."""
    return f'''
import cuda.tile as ct
from stencil_dsl.tilelib.preview import Tilelib, foreign_call

LIBRARY = Tilelib("examples.tilelib", "{library.digest}")


@ct.kernel
def examples(u, out):
    b = ct.bid(0)
    x = ct.load(u, (b,), (128,))
    slot = ct.zeros((128,), ct.float32)
    kind = ((ct.float32, (128,)),)
    (r,) = foreign_call((LIBRARY,), "relu", (), (x, slot), kind, pure={pure})
    half = ct.full((128,), 0.5, ct.float32)
    (s,) = foreign_call((LIBRARY,), "scale_in_place", (), (r, half), kind, pure={pure})
    (w,) = foreign_call((LIBRARY,), "warp_sum", (), (s, slot), kind, pure={pure})
    ct.store(out, (b,), w)
'''


EXAMPLES_PARAMS = (toolchain.ArrayParam("float32", (1024,), (1,)),) * 2


def twice_library(size: int, fragmap: Layout, dtype: str, sync: Sync = "warp") -> TileLibrary:
    """One export, `twice`, whose threads are handed a tile as `fragmap` says."""
    kinds: tuple[tuple[str, Access], ...] = (("x", "in"), ("out", "out"))
    parameters = tuple(Parameter(name, dtype, access, (size,), fragmap) for name, access in kinds)
    export = Export("twice", "twice_impl", parameters, sync).check()
    builder = FunctionBuilder(export)
    for element in range(parameters[0].footprint):
        value = builder.read(0, element)
        builder.write(1, element, builder.op("add", value, value))
    return TileLibrary("twice", (export,), (Code("nvvm", builder.text()),))


def twice_kernel(library: TileLibrary, warps: int, calls: int = 1, pure: bool = True) -> str:
    """A kernel that loads a tile, calls `twice` on it as often as asked, and stores it."""
    p = library.exports[0].parameters[0]
    return f'''
import cuda.tile as ct
from stencil_dsl.tilelib.preview import Tilelib, foreign_call

LIBRARY = Tilelib("twice.tilelib", "{library.digest}")


@ct.kernel(num_worker_warps={warps})
def calls_twice(u, out):
    b = ct.bid(0)
    x = ct.load(u, (b,), {p.shape}, check_bounds=False, allow_tma=False)
    slot = ct.zeros({p.shape}, ct.{p.dtype})
    for i in range({calls}):
        (x,) = foreign_call((LIBRARY,), "twice", (), (x, slot), ((ct.{p.dtype}, {p.shape}),), pure={pure})
    ct.store(out, (b,), x, check_bounds=False, allow_tma=False)
'''


def line_library(weights: dict[int, float], size: int, footprint: int) -> TileLibrary:
    """One export, `line`: sum of weights[d] * x[z + d] along a row, neighbours by shuffle.

    Parameters: the row, `footprint` tiles of one element a lane with what warps miss of their neighbours (the first
    lanes hold what follows the warp, the last ones what comes before it), and the result.
    """
    row, lane = warpwise(size, footprint), warpwise(size // footprint)
    near = [Parameter(f"near{e}", "float64", "in", (size // footprint,), lane) for e in range(footprint)]
    rows = [Parameter(n, "float64", a, (size,), row) for n, a in (("x", "in"), ("out", "out"))]  # type: ignore[arg-type]
    export = Export("line", "line_impl", (rows[0], *near, rows[1]), "warp").check()
    b = FunctionBuilder(export)
    x = [b.read(0, e) for e in range(footprint)]
    for e in range(footprint):
        total = None
        for distance, weight in weights.items():
            lanes, part = divmod(e + distance, footprint)
            value = x[part]
            if lanes:
                outside = b.lane_is("slt", lanes) if lanes > 0 else b.lane_is("sge", 32 + lanes)
                value = b.shuffle(b.op("select", outside, b.read(1 + part), value), b.lane_plus(lanes))
            term = b.op("mul", b.constant(weight, "double"), value)
            total = term if total is None else b.op("add", total, term)
        b.write(len(near) + 1, e, total)
    return TileLibrary("line", (export,), (Code("nvvm", b.text()),))


def line_kernel(library: TileLibrary, origin: int, reach: int) -> str:
    """A 1-D kernel that calls `line`; its input has `origin` cells before the interior."""
    row, *near, _ = library.exports[0].parameters
    size, lanes, footprint = row.shape[0], near[0].shape[0], row.footprint
    gathers = "".join(
        f"    near{e} = ct.gather(u, (first + ct.arange({lanes}, dtype=ct.int32) * {footprint} + side + {e},),"
        " check_bounds=False)\n"
        for e in range(footprint)
    )
    tiles = ", ".join(f"near{e}" for e in range(footprint))
    chunk = 32 * footprint
    return f'''
import cuda.tile as ct
from stencil_dsl.tilelib.preview import Tilelib, foreign_call

LIBRARY = Tilelib("line.tilelib", "{library.digest}")


@ct.kernel
def line_sum(u, out):
    b = ct.bid(0)
    x = ct.load(u.slice(0, {origin}, u.shape[0] - {origin}), (b,), ({size},), check_bounds=False, allow_tma=False)
    lane = ct.arange({lanes}, dtype=ct.int32) & 31
    side = ct.where(lane < {reach}, {chunk}, ct.where(lane >= {32 - reach}, -{chunk}, 0))
    first = b * {size} + {origin}
{gathers}    slot = ct.zeros(({size},), ct.float64)
    (y,) = foreign_call((LIBRARY,), "line", (), (x, {tiles}, slot), ((ct.float64, ({size},)),), pure=True)
    ct.store(out, (b,), y, check_bounds=False, allow_tma=False)
'''


def shifted_line_kernel(weights: dict[int, float], size: int, origin: int) -> str:
    """The same sum with one shifted load a neighbour."""
    loads = "".join(
        f"    x{n} = ct.load(u.slice(0, {origin + d}, u.shape[0] - {origin} + {d}), (b,), ({size},),"
        " check_bounds=False, allow_tma=False)\n"
        for n, d in enumerate(weights)
    )
    total = " + ".join(f"{w!r} * x{n}" for n, w in enumerate(weights.values()))
    return f"""
import cuda.tile as ct


@ct.kernel
def line_sum(u, out):
    b = ct.bid(0)
{loads}    ct.store(out, (b,), {total}, check_bounds=False, allow_tma=False)
"""
