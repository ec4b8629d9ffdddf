"""Runs a baseline's own CUDA text on the CPU, for values: `host_shim.h` and a C++ compiler stand in for a GPU."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from repro.baselines.base import Baseline, Shape

SHIM = Path(__file__).with_name("host_shim.h")


def compiler() -> str | None:
    """A C++ compiler of this machine, or None."""
    return shutil.which("g++") or shutil.which("clang++")


class Library:
    """Kernels of a source text, compiled for the CPU.

    Raises:
        RuntimeError: without a C++ compiler, or where it refuses the text.
    """

    def __init__(self, source: str, kernels: Sequence[str]) -> None:
        found = compiler()
        if found is None:
            raise RuntimeError("no C++ compiler: install g++ to run kernels on the CPU")
        communicates = "true" if "__shfl_sync" in source or "__syncthreads" in source else "false"
        entries = [f"HOST_RUN({kernel}, {communicates})" for kernel in kernels]
        with tempfile.TemporaryDirectory() as folder:
            text, library = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
            text.write_text("\n".join([f'#include "{SHIM}"', source, *entries, ""]))
            command = [found, "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-o", str(library), str(text)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[:4000]}")
            self._library = ctypes.CDLL(str(library))

    def launch(self, kernel: str, grid: Shape, block: Shape, arrays: Sequence[np.ndarray]) -> None:
        """Runs all blocks; the kernel is given the address of each array's first element."""
        if not all(array.flags.c_contiguous for array in arrays):
            raise ValueError(f"{kernel}: arguments must be contiguous")
        pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        extents = [(ctypes.c_int * 3)(*triple) for triple in (grid, block)]
        getattr(self._library, f"run_{kernel}")(extents[0], extents[1], pointers)


def run(baseline: Baseline, buffers: Mapping[str, np.ndarray]) -> None:
    """Launches everything once, with the buffer of each argument's name."""
    library = Library(baseline.source, [launch.kernel for launch in baseline.launches])
    for launch in baseline.launches:
        library.launch(launch.kernel, launch.grid, launch.block, [buffers[name] for name in launch.args])
