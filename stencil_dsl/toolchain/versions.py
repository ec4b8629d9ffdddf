"""Reads versions from the tools themselves, and fingerprints their files.

A wheel's metadata says what was downloaded, not what a link folder ends up running, so every version
here comes from the file that will run: `--version` of the programs, the build stamp inside libnvvm.
Both, and the SHA-256, are remembered per (path, size, modification time), in memory and in `tools.json`
of the cache folder, because hashing 200 MB and starting four programs costs half a second.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import mmap
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from stencil_dsl.toolchain.paths import cache_root
from stencil_dsl.toolchain.process import run_tool

UNKNOWN = "unknown"
_RELEASE = re.compile(rb"Cuda compilation tools, release [0-9.]+, V([0-9]+(?:\.[0-9]+)+)")
_memory: dict[str, FileFacts] = {}


@dataclass(frozen=True)
class FileFacts:
    """Version and content of one tool file.

    Attributes:
        version: dotted version, "unknown" where the file does not say.
        sha256: hexadecimal digest of the content.
        bytecode: Tile IR bytecode versions that the tool lists (tileiras from 13.3), else empty.
    """

    version: str
    sha256: str
    bytecode: tuple[str, ...] = ()


def parts(version: str) -> tuple[int, ...]:
    """ "13.5.37" -> (13, 5, 37); unknown versions sort first as ()."""
    numbers = re.findall(r"\d+", version)
    return tuple(int(n) for n in numbers) if version[:1].isdigit() else ()


def release(version: str) -> str:
    """ "13.5.37" -> "13.5"."""
    return ".".join(version.split(".")[:2])


def package_version(name: str) -> str | None:
    """Installed version of a Python package, None where it is not installed. Imports nothing."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def program_facts(path: Path) -> FileFacts:
    """Facts of a program (tileiras, ptxas, nvdisasm, tileirdisasm); it is started when not yet known."""
    return _cached(path, library=False)


def library_facts(path: Path) -> FileFacts:
    """Facts of libnvvm; the version is the build stamp in the file."""
    return _cached(path, library=True)


def _cached(path: Path, *, library: bool) -> FileFacts:
    real = path.resolve()
    info = real.stat()
    key = f"{real}|{info.st_size}|{info.st_mtime_ns}"
    if key in _memory:
        return _memory[key]
    known = _load().get(key)
    if known is None:
        facts = _read_library(real) if library else _read_program(real)
        _remember(key, facts)
    else:
        facts = FileFacts(known["version"], known["sha256"], tuple(known.get("bytecode", ())))
    _memory[key] = facts
    return facts


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_library(path: Path) -> FileFacts:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        found = set(_RELEASE.findall(data))
    # Two different stamps would mean that we cannot tell which one is the library's own.
    version = found.pop().decode() if len(found) == 1 else UNKNOWN
    return FileFacts(version, _digest(path))


def _read_program(path: Path) -> FileFacts:
    text = run_tool([str(path), "--version"], tool=path.name, timeout=60).stdout
    match = _RELEASE.search(text.encode())
    version = match.group(1).decode() if match else UNKNOWN
    bytecode: tuple[str, ...] = ()
    if path.name == "tileiras" and parts(version) >= (13, 3):
        listed = run_tool([str(path), "--list-versions"], tool=path.name, timeout=60).stdout
        bytecode = tuple(re.findall(r"^\s*(\d+\.\d+)\s*$", listed, re.MULTILINE))
    return FileFacts(version, _digest(path), bytecode)


def _store_path() -> Path:
    return cache_root() / "tools.json"


def _load() -> dict[str, dict]:
    try:
        content = json.loads(_store_path().read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _remember(key: str, facts: FileFacts) -> None:
    """Add to `tools.json`, replacing the file in one step; a lost update only costs reading again."""
    path = _store_path()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {k: v for k, v in _load().items() if Path(k.split("|")[0]).exists()}
        content[key] = {"version": facts.version, "sha256": facts.sha256, "bytecode": list(facts.bytecode)}
        handle, name = tempfile.mkstemp(prefix=".tools-", dir=path.parent)
        try:
            with os.fdopen(handle, "w") as file:
                json.dump(content, file, indent=1)
            os.replace(name, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)
