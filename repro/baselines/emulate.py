"""Runs a baseline's own CUDA text on the CPU, for values: `host_shim.h` and a C++ compiler stand in for a GPU."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from repro.baselines.base import Baseline, Launch

SHIM = Path(__file__).with_name("host_shim.h")


def compiler() -> str | None:
    """A C++ compiler of this machine, or None."""
    return shutil.which("g++") or shutil.which("clang++")


def run(baseline: Baseline, buffers: Mapping[str, np.ndarray]) -> None:
    """Launches everything once.

    Args:
        buffers: for every argument name the array whose first element the kernel is given.

    Raises:
        RuntimeError: without a C++ compiler, or where it refuses the text.
    """
    with tempfile.TemporaryDirectory() as folder:
        for launch in baseline.launches:
            library = _library(baseline.source, launch.kernel, Path(folder))
            _call(library, launch, buffers)


def _library(source: str, kernel: str, folder: Path) -> ctypes.CDLL:
    found = compiler()
    if found is None:
        raise RuntimeError("no C++ compiler: install g++ to run kernels on the CPU")
    communicates = "true" if "__shfl_sync" in source or "__syncthreads" in source else "false"
    text = f'#include "{SHIM}"\n{source}\nHOST_RUN({kernel}, {communicates})\n'
    stem = folder / hashlib.sha256(text.encode()).hexdigest()[:16]
    stem.with_suffix(".cpp").write_text(text)
    library = stem.with_suffix(".so")
    command = [found, "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-o", str(library), f"{stem}.cpp"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[:4000]}")
    return ctypes.CDLL(str(library))


def _call(library: ctypes.CDLL, launch: Launch, buffers: Mapping[str, np.ndarray]) -> None:
    arrays = [buffers[name] for name in launch.args]
    for name, array in zip(launch.args, arrays, strict=True):
        if not array.flags.c_contiguous:
            raise ValueError(f"{name} is not contiguous")
    pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    extents = [(ctypes.c_int * 3)(*triple) for triple in (launch.grid, launch.block)]
    library.host_run(extents[0], extents[1], pointers)
