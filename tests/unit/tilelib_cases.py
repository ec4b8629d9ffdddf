"""Device functions and kernels for the tests of tile libraries."""

from __future__ import annotations

import importlib.util

import pytest

from stencil_dsl import toolchain
from stencil_dsl.errors import ToolchainError
from stencil_dsl.tilelib import TileLibrary, make_library, tile_export


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
