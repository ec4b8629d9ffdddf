"""Runs CUDA C kernels of one-dimensional grids with the host's C compiler, thread after thread."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

COMPILER = shutil.which("cc")
_HEAD = """
#define __global__
static struct { int x, y, z; } blockIdx, threadIdx, blockDim;
"""
_KERNEL = re.compile(r'extern "C" __global__ void (\w+)\(([^)]*)\)')


def build(code: str, folder: Path) -> Any:
    """A library with a function `run_NAME(blocks, threads, arguments...)` for every kernel."""
    text = _HEAD + code.replace('extern "C" ', "")
    for name, parameters in _KERNEL.findall(code):
        names = ", ".join(p.split()[-1].lstrip("*") for p in parameters.split(","))
        text += f"""
void run_{name}(int blocks, int threads, {parameters}) {{
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) {name}({names});
}}
"""
    source, library = folder / "kernels.c", folder / "kernels.so"
    source.write_text(text)
    subprocess.run([str(COMPILER), "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-o", library, source], check=True)
    return ctypes.CDLL(str(library))


def run(library: Any, name: str, grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
    """Launch with the arguments that a CuPy kernel takes: NumPy arrays and scalars."""
    values: list[Any] = []
    for a in arguments:
        if isinstance(a, np.ndarray):
            values.append(ctypes.c_void_p(a.ctypes.data))
        else:
            values.append({4: ctypes.c_int32, 8: ctypes.c_int64}[a.itemsize](int(a)))
    getattr(library, f"run_{name}")(int(grid[0]), int(block[0]), *values)
