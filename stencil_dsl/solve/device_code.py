"""The few CUDA kernels beside the compiled stencils: ghost cells, point sources, receivers.

They are built by NVRTC, without fused multiply-add, so that they round as NumPy does.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from stencil_dsl.runtime.devices import require_cupy

CODE = """
// Any number of slabs in one launch; see slabs.py for the table. Places are 32 bits wide: a division of 64 is a
// hundred instructions, several times as many as all the rest. Slabs that come in twos take turns row by row: one that
// lies behind a row and the one before the next row share a line of memory, which a device opens once for both.
extern "C" __global__ void fill_slabs(const long long* table, unsigned total) {
    unsigned n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= total) return;
    const long long* t = table;
    while (n >= (unsigned)t[0]) t += 18 * t[17];
    if (t != table) n -= (unsigned)t[-18];
    unsigned wide = (unsigned)t[7], high = (unsigned)t[6], row = n / wide;
    long long k = n - row * wide;
    if (t[17] == 2) {
        t += 18 * (row & 1);
        row >>= 1;
    }
    long long i = row / high, j = row - (unsigned)i * high;
    REAL value = 0;
    if (t[1] != 0) {
        value = ((const REAL*)t[3])[i * t[11] + j * t[12] + k * t[13]];
        if (t[1] < 0) value = -value;
    }
    if (t[4] != 0) {
        REAL add = ((const REAL*)t[4])[i * t[14] + j * t[15] + k * t[16]];
        value = t[1] != 0 ? add + value : add;
    }
    ((REAL*)t[2])[i * t[8] + j * t[9] + k * t[10]] = value;
}

// One thread a cell, so that sources which share a cell are added in a fixed order.
extern "C" __global__ void inject(REAL* field, const long long* cell, const REAL* weight, const int* source,
                                  const REAL* series, const long long* clock, int cells, int most, int sources) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cells) return;
    REAL sum = 0;
    for (int k = 0; k < most; ++k)
        sum += weight[c * most + k] * series[*clock * sources + source[c * most + k]];
    field[cell[c]] += sum;
}

extern "C" __global__ void sample(const REAL* field, const long long* cell, REAL* out, const long long* clock,
                                  int cells) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < cells) out[*clock * cells + c] = field[cell[c]];
}

extern "C" __global__ void tick(long long* clock) { *clock += 1; }
"""


def source(dtype: str) -> str:
    """The kernels for one element type."""
    return CODE.replace("REAL", "double" if dtype == "float64" else "float")


@lru_cache(maxsize=16)
def _module(dtype: str, device: int) -> Any:
    cupy = require_cupy()
    with cupy.cuda.Device(device):
        return cupy.RawModule(code=source(dtype), options=("--fmad=false",))


@lru_cache(maxsize=64)
def compiled(name: str, dtype: str, device: int) -> Any:
    """A kernel, to be called with grid, block and arguments."""
    function = _module(dtype, device).get_function(name)
    with require_cupy().cuda.Device(device):
        function.num_regs  # noqa: B018 (loads it now, see `runtime.launch`)
    return function
