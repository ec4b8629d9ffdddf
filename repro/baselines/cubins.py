"""CUDA texts compiled by nvcc, kept in the kernel cache's folder.

What is measured is then what the compile tier describes, and a machine with a device does not spend its time on
compiling: ``python -m repro.baselines`` fills the cache elsewhere.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

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

    None where there is neither nvcc nor an entry. Without nvcc an entry of any version counts.

    Raises:
        RuntimeError: where nvcc refuses the text.
    """
    nvcc = find_nvcc()
    folder = _folder(source, arch)
    if nvcc is None:
        entries = sorted(folder.glob("*.cubin"))
        return (entries[-1].read_bytes(), entries[-1].stem) if entries else None
    entry = folder / f"{nvcc_version(nvcc)}.cubin"
    if not entry.exists():
        made = compile_cuda(source, arch)
        try:
            _keep(made, entry)
        except OSError:
            return made, entry.stem  # a folder that cannot be written costs time, nothing else
    return entry.read_bytes(), entry.stem


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
