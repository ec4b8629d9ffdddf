"""CUDA texts compiled by nvcc, kept in the kernel cache's folder.

What is measured is then what the compile tier describes, and a machine with a device does not spend its time on
compiling: ``python -m repro.baselines`` fills the cache elsewhere.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

OPTIONS = ("-std=c++17",)


def find_nvcc() -> str | None:
    """CUDA's compiler driver: on the path, or in an installed toolkit."""
    from stencil_dsl.toolchain import find_tool

    found = shutil.which("nvcc") or find_tool("nvcc")
    return str(found) if found else None


@functools.cache
def nvcc_version(nvcc: str) -> str:
    """Such as "13.0.88"."""
    text = subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"\bV(\d+(?:\.\d+)+)", text)
    return found.group(1) if found else "unknown"


def cubin(source: str, arch: str) -> tuple[bytes, str] | None:
    """A cubin and the version of the nvcc it is from: from the cache, or compiled now.

    None where there is neither nvcc nor an entry. An entry of another nvcc than the one here counts too: what was
    compiled ahead is what is measured, and the version is part of the record.

    Raises:
        RuntimeError: where nvcc refuses the text.
    """
    nvcc = find_nvcc()
    folder = _folder(source, arch)
    entries = sorted(folder.glob("*.cubin"))
    if nvcc is None:
        return (entries[-1].read_bytes(), entries[-1].stem) if entries else None
    entry = folder / f"{nvcc_version(nvcc)}.cubin"
    if not entry.exists() and entries:
        entry = entries[-1]
    if not entry.exists():
        made = compile_cuda(source, arch)
        try:
            _keep(made, entry)
        except OSError:
            return made, entry.stem  # a folder that cannot be written costs time, nothing else
    return entry.read_bytes(), entry.stem


def resources(cubin: bytes, symbol: str) -> dict[str, Any]:
    """Registers, spills and instructions of a kernel as plain values, read once: disassembling takes long."""
    from stencil_dsl import toolchain
    from stencil_dsl.toolchain.paths import cache_root

    key = hashlib.sha256(symbol.encode() + b"\0" + cubin).hexdigest()[:32]
    entry = cache_root() / "cuda" / "facts" / f"{key}.json"
    if entry.exists():
        return json.loads(entry.read_text())
    found = toolchain.inspect(cubin, symbol=symbol).to_json()
    if found.get("instructions") is not None:  # without a disassembler here, another machine may know more
        with contextlib.suppress(OSError):
            _keep(json.dumps(found, sort_keys=True).encode(), entry)
    return found


def compile_cuda(source: str, arch: str) -> bytes:
    """Compiles without the cache.

    Raises:
        RuntimeError: without nvcc, or where it refuses the text.
    """
    nvcc = find_nvcc()
    if nvcc is None:
        raise RuntimeError("nvcc was not found: put CUDA's compiler on the path")
    with tempfile.TemporaryDirectory() as folder:
        text, result = Path(folder) / "kernel.cu", Path(folder) / "kernel.cubin"
        text.write_text(source)
        command = [nvcc, *OPTIONS, f"-arch={arch}", "-cubin", "-o", str(result), str(text)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[:4000]}")
        return result.read_bytes()


def _folder(source: str, arch: str) -> Path:
    from stencil_dsl.toolchain.paths import cache_root

    request = "\0".join((arch, *OPTIONS, source))
    return cache_root() / "cuda" / hashlib.sha256(request.encode()).hexdigest()[:32]


def _keep(made: bytes, entry: Path) -> None:
    """Readers see a whole file or none."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=entry.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(made)
    os.replace(name, entry)
