"""Kernels and stand-in toolkits for the toolchain's tests."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import pytest

from stencil_dsl.toolchain import ArrayParam, ScalarParam

needs_cutile = pytest.mark.skipif(
    importlib.util.find_spec("cuda") is None or importlib.util.find_spec("cuda.tile") is None,
    reason="compiling needs cuda.tile: pip install 'stencil-dsl[toolchain]'",
)

# Adds a row to its left neighbour in y; rows of 256 at 128 threads, so two elements a thread.
SHIFT = """
import cuda.tile as ct


@ct.kernel(occupancy=4)
def shift(u, out):
    bz, by, bx = ct.bid(0), ct.bid(1), ct.bid(2)
    below = u.slice(axis=1, start=0, stop=64)
    above = u.slice(axis=1, start=1, stop=65)
    a = ct.load(below, index=(bx, by, bz), shape=(1, 1, 256), check_bounds=False, allow_tma=False)
    b = ct.load(above, index=(bx, by, bz), shape=(1, 1, 256), check_bounds=False, allow_tma=False)
    ct.store(out, index=(bx, by, bz), tile=a + b, check_bounds=False)
"""
SHIFT_PARAMS = (
    ArrayParam("float64", (64, 65, 256), (65 * 256, 256, 1)),
    ArrayParam("float64", (64, 64, 256), (64 * 256, 256, 1)),
)

# A recurrence over x with run-time extents: acc = acc * s + u[x].
SWEEP = """
import cuda.tile as ct


@ct.kernel(occupancy=2)
def sweep(u, out, n: int, s: float):
    bz, by = ct.bid(0), ct.bid(1)
    acc = ct.zeros((1, 1, 128), dtype=ct.float64)
    for x in range(n):
        a = ct.load(u, index=(x, by, bz), shape=(1, 1, 128), allow_tma=False)
        acc = acc * s + a
        ct.store(out, index=(x, by, bz), tile=acc)
"""
SWEEP_PARAMS = (
    ArrayParam("float64", (None,) * 3, (None, None, 1)),
    ArrayParam("float64", (None,) * 3, (None, None, 1)),
    ScalarParam("int32"),
    ScalarParam("float64"),
)

# Keeps 64 float64 values a thread alive across a loop, more than occupancy 16 has registers for.
SPILL = """
import cuda.tile as ct


@ct.kernel(occupancy=16)
def spill(u, out, n: int):
    acc = ct.zeros((1, 128 * 64), dtype=ct.float64)
    for x in range(n):
        a = ct.load(u, index=(x, 0), shape=(1, 128 * 64), allow_tma=False)
        acc = acc * a + a
    ct.store(out, index=(0, 0), tile=acc)
"""
SPILL_PARAMS = (
    ArrayParam("float64", (512, 8192), (8192, 1)),
    ArrayParam("float64", (1, 8192), (8192, 1)),
    ScalarParam("int32"),
)

_SCRIPT = """#!/bin/sh
if [ "$1" = --list-versions ]; then printf '{bytecode}'; exit 0; fi
if [ "$1" = --version ]; then echo 'Cuda compilation tools, release {release}, V{version}'; exit 0; fi
{body}
"""


def fake_tool(path: Path, version: str, body: str = "exit 9", bytecode: str = "13.1 13.2 13.3 13.9") -> Path:
    """A shell script that answers `--version` and `--list-versions` like a tool, else runs `body`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    release = ".".join(version.split(".")[:2])
    listed = bytecode.replace(" ", "\\n") + "\\n"
    path.write_text(_SCRIPT.format(release=release, version=version, body=body, bytecode=listed))
    path.chmod(0o755)
    return path


def fake_toolkit(root: Path, version: str = "13.4.92", body: str = "exit 9") -> Path:
    """A folder that looks like a toolkit of one version."""
    fake_tool(root / "bin/tileiras", version, body)
    fake_tool(root / "bin/ptxas", version)
    library = root / "lib/libnvvm.so.4"
    library.parent.mkdir(parents=True, exist_ok=True)
    release = ".".join(version.split(".")[:2])
    library.write_bytes(f"\x7fELF junk\0Cuda compilation tools, release {release}, V{version}\0".encode())
    return root


def fake_wheel(folder: Path, name: str, version: str, files: dict[str, bytes]) -> Path:
    """A wheel that pip accepts."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = name.replace("-", "_")
    path = folder / f"{stem}-{version}-py3-none-any.whl"
    info = f"{stem}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for place, data in files.items():
            archive.writestr(place, data)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path
