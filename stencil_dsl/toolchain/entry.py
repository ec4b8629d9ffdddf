"""Entries of the kernel cache as folders: written whole, checked when read, removed in one step."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stencil_dsl.toolchain.paths import work_folder
from stencil_dsl.toolchain.resources import Resources

FORMAT = 1  # of requests and entries; a change makes every older entry unreachable
_NEEDED = ("kernel.cubin", "kernel.py", "kernel.bc")


@dataclass(frozen=True)
class Entry:
    """One finished kernel.

    Attributes:
        path: its folder; None where the cache could not be written and the entry lives in memory only.
        request_key, toolset: its two keys.
        cubin, bytecode, source: the kernel in its three forms.
        resources: what it uses.
        tool_versions: tool name to version, of the tools that made it.
        meta: what the caller stored along with it.
        remarks: tileiras' remarks (YAML), may be empty.
        sass: machine code as text, None where no nvdisasm was at hand.
    """

    path: Path | None
    request_key: str
    toolset: str
    cubin: bytes
    bytecode: bytes
    source: str
    resources: Resources
    tool_versions: dict[str, str]
    meta: dict[str, Any] = field(default_factory=dict)
    remarks: str = ""
    sass: str | None = None


@contextlib.contextmanager
def cubin_file(entry: Entry) -> Iterator[Path]:
    """A file with the cubin: the cache's, or a temporary one where the entry lives in memory only."""
    if entry.path is not None:
        yield entry.path / "kernel.cubin"
        return
    with work_folder() as folder:
        file = folder / "kernel.cubin"
        file.write_bytes(entry.cubin)
        yield file


def digest(data: bytes) -> str:
    """SHA-256, hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def canonical_json(value: Any) -> str:
    """The one JSON text of a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def write_entry(folder: Path, entry: Entry) -> None:
    """Write an entry into a new folder."""
    files = {
        "kernel.cubin": entry.cubin,
        "kernel.py": entry.source.encode(),
        "kernel.bc": entry.bytecode,
        "remarks.yaml": entry.remarks.encode(),
    }
    if entry.sass is not None:
        files["kernel.sass"] = entry.sass.encode()
    content = {
        "format": FORMAT,
        "request_key": entry.request_key,
        "toolset": entry.toolset,
        "tool_versions": entry.tool_versions,
        "resources": entry.resources.to_json(),
        "meta": entry.meta,
        "stored": time.time(),
        "files": {name: digest(data) for name, data in files.items()},
    }
    content["checksum"] = digest(canonical_json(content).encode())
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    (folder / "meta.json").write_text(json.dumps(content, indent=1, sort_keys=True))


def read_entry(folder: Path, request_key: str) -> Entry | None:
    """The entry in a folder; None where there is none, or where it was damaged (and is now removed)."""
    for _ in range(2):  # a second look: the folder may just have been replaced
        if not folder.is_dir():
            return None
        try:
            return _checked(folder, request_key)
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            continue
        except OSError:
            return None  # not ours to read
    discard(folder)
    return None


def _checked(folder: Path, request_key: str) -> Entry:
    content = json.loads((folder / "meta.json").read_bytes())
    checksum = content.pop("checksum")
    if checksum != digest(canonical_json(content).encode()):
        raise ValueError("meta.json is damaged")
    if content["format"] != FORMAT or content["request_key"] != request_key:
        raise ValueError("entry in a wrong place")
    files = {name: (folder / name).read_bytes() for name in content["files"]}
    if any(digest(data) != content["files"][name] for name, data in files.items()):
        raise ValueError("a file is damaged")
    if any(name not in files for name in _NEEDED):
        raise ValueError("a file is missing")
    return Entry(
        path=folder,
        request_key=request_key,
        toolset=content["toolset"],
        cubin=files["kernel.cubin"],
        bytecode=files["kernel.bc"],
        source=files["kernel.py"].decode(),
        resources=Resources.from_json(content["resources"]),
        tool_versions=content["tool_versions"],
        meta=content["meta"],
        remarks=files.get("remarks.yaml", b"").decode(),
        sass=files["kernel.sass"].decode() if "kernel.sass" in files else None,
    )


def discard(folder: Path) -> None:
    """Remove a folder so that nobody sees half of it: first move it away, then delete."""
    scratch = folder.parents[2] / ".tmp"
    with contextlib.suppress(OSError):
        scratch.mkdir(exist_ok=True)
        away = scratch / f"{os.getpid()}-{secrets.token_hex(8)}"
        os.rename(folder, away)
        shutil.rmtree(away, ignore_errors=True)
