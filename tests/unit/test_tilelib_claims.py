"""What calls, shuffles and fragmaps cost, seen in the machine code; values on NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from tilelib_cases import (
    line_kernel,
    line_library,
    needs_libraries,
    shifted_line_kernel,
    twice_kernel,
    twice_library,
)

from stencil_dsl import toolchain
from stencil_dsl.reference.tile_interpreter import ArrayArg, run
from stencil_dsl.tilelib import Layout
from stencil_dsl.tilelib.layouts import elementwise, warpwise
from stencil_dsl.toolchain import ArrayParam, Resources

WEIGHTS = {-1: 0.25, 0: 0.5, 1: 0.25}
ORIGIN = 16


def machine_code(source, function, elements, dtype="float64", libraries=()) -> Resources:
    kit = toolchain.find()
    params = [ArrayParam(dtype, (n,), (1,)) for n in elements]
    artifact = toolchain.compile_source(
        source, function, params, symbol=function, arch="sm_90", toolkit=kit, libraries=libraries
    )
    return toolchain.inspect(artifact.cubin, kit)


def twice(library, warps, dtype="float64", **options) -> Resources:
    size = library.exports[0].parameters[0].shape[0]
    return machine_code(twice_kernel(library, warps, **options), "calls_twice", (64 * size,) * 2, dtype, (library,))


@needs_libraries
@pytest.mark.parametrize("warps", [1, 4])
def test_a_call_is_inlined(warps):
    """No CALL and no local memory; with several warps one barrier a call that is ordered, none without."""
    library = twice_library(32 * warps, warpwise(32 * warps), "float64")
    barriers = []
    for calls in (1, 2, 3):
        use = twice(library, warps, calls=calls, pure=False)
        assert use.count("CALL") == 0 and use.stack_bytes == 0 and use.shared_bytes == 0
        barriers.append(use.barriers)
    assert np.diff(barriers).tolist() == ([1, 1] if warps > 1 else [0, 0])
    assert twice(library, warps, calls=3, pure=True).barriers == 0


FRAGMAPS = [
    # (dtype, extent, fragmap, sync, goes through shared memory)
    ("float64", 256, warpwise(256, 2), "warp", False),
    ("float64", 256, warpwise(256, 1), "warp", True),
    ("float64", 256, warpwise(256, 4), "warp", True),
    ("float64", 256, Layout((4, 32, 2), (64, 1, 32)), "warp", True),
    ("float64", 128, warpwise(128, 1), "warp", False),
    ("float64", 128, warpwise(128, 2), "warp", True),
    ("float32", 512, warpwise(512, 4), "warp", False),
    ("float32", 512, warpwise(512, 2), "warp", True),
    ("float64", 256, elementwise(256, 1), "none", False),
    ("float64", 256, elementwise(256, 2), "none", False),
]


@needs_libraries
@pytest.mark.parametrize(("dtype", "size", "fragmap", "sync", "converted"), FRAGMAPS, ids=str)
def test_fragmaps_that_do_not_match_go_through_shared_memory(dtype, size, fragmap, sync, converted):
    use = twice(twice_library(size, fragmap, dtype, sync), 4, dtype)
    assert (use.count("LDS") + use.count("STS") > 0) == converted == (use.shared_bytes > 0)


def test_lines_by_shuffle_are_right():
    library = line_library(WEIGHTS, 1024, 2)
    u = np.random.default_rng(3).standard_normal(2048 + 2 * ORIGIN)
    out = np.zeros(2048)
    run(line_kernel(library, ORIGIN, 1), "line_sum", (2,), [ArrayArg.of(u), ArrayArg.of(out)])
    want = sum(w * u[ORIGIN + d : ORIGIN + d + 2048] for d, w in WEIGHTS.items())
    assert np.allclose(out, want, rtol=1e-15, atol=1e-15)


@needs_libraries
def test_shuffles_replace_shifted_loads():
    """3 points, 1024 elements a block: one wide load a lane instead of three, fewer instructions, no shared memory."""
    elements = (64 * 1024 + 2 * ORIGIN, 64 * 1024)
    library = line_library(WEIGHTS, 1024, 2)
    shuffled = machine_code(line_kernel(library, ORIGIN, 1), "line_sum", elements, libraries=(library,))
    shifted = machine_code(shifted_line_kernel(WEIGHTS, 1024, ORIGIN), "line_sum", elements)
    assert shifted.shared_bytes > 0 and shuffled.shared_bytes == 0
    assert shuffled.count("SHFL") and not shifted.count("SHFL")
    assert shuffled.instructions < shifted.instructions
    assert shuffled.count("LDG.E.128") == 1024 // 128 // 2
    assert shuffled.barriers == 0 < shifted.barriers
