"""The kernel cache: finished kernels on disk, usable where nothing can be compiled.

Layout: `<root>/v1/<request[:2]>/<request>/<tool set>/` with kernel.cubin, kernel.py, kernel.bc,
remarks.yaml, kernel.sass and meta.json; beside it what tools refused (`refusals`). A request key
depends on what was asked for, never on a tool, so that a machine without tools finds what another one
compiled. An entry appears by one rename of a complete folder; readers never see half of one, and of two
writers the first wins.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stencil_dsl.toolchain import refusals
from stencil_dsl.toolchain.entry import (
    FORMAT,
    Entry,
    canonical_json,
    digest,
    discard,
    read_entry,
    write_entry,
)
from stencil_dsl.toolchain.export import Artifact
from stencil_dsl.toolchain.kit import Toolkit
from stencil_dsl.toolchain.paths import cache_root, remove_stale
from stencil_dsl.toolchain.resources import Resources
from stencil_dsl.toolchain.signature import Param, params_to_json
from stencil_dsl.toolchain.versions import parts, release

if TYPE_CHECKING:
    from stencil_dsl.errors import ToolchainError
    from stencil_dsl.tilelib import TileLibrary

_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)


def describe_request(
    source: str,
    function: str,
    params: Sequence[Param],
    symbol: str,
    arch: str,
    opt_level: int | None,
    libraries: Sequence[TileLibrary] = (),
) -> dict[str, Any]:
    """A request as JSON values; what `request_key` hashes."""
    request: dict[str, Any] = {
        "format": FORMAT,
        "source": source,
        "function": function,
        "params": params_to_json(params),
        "symbol": symbol,
        "arch": arch,
        "opt_level": opt_level,
    }
    if libraries:
        request["libraries"] = [library.to_json() for library in libraries]
    return request


def request_key(
    source: str,
    function: str,
    params: Sequence[Param],
    symbol: str,
    arch: str,
    opt_level: int | None = None,
    libraries: Sequence[TileLibrary] = (),
) -> str:
    """Key of a request, hexadecimal. Needs neither cuda.tile nor a tool."""
    request = describe_request(source, function, params, symbol, arch, opt_level, libraries)
    return digest(canonical_json(request).encode())[:40]


class KernelCache:
    """A folder of finished kernels; `root` defaults to `STENCIL_DSL_CACHE` or the user's cache folder.

    Any number of processes may use it at once. It may be read-only: looking up works, and storing gives
    an entry in memory.
    """

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        self.root = Path(root).absolute() if root is not None else cache_root()
        self.entries_root = self.root / f"v{FORMAT}"

    request_key = staticmethod(request_key)

    def lookup(self, request_key: str, toolkit: Toolkit | str | None = None) -> Entry | None:
        """Find a kernel.

        Args:
            request_key: from `request_key`.
            toolkit: a Toolkit or tool set key: made by exactly these tools. A name ("13.4", "13.4.92",
                "13.5+nvvm-13.4"): made by tools of these versions. None: made by the newest tools that
                have an entry, for machines without any.

        A damaged entry is removed and counts as absent.
        """
        folder = self.request_folder(request_key)
        if isinstance(toolkit, Toolkit):
            return read_entry(folder / toolkit.key, request_key)
        entries = [e for f in _subfolders(folder) if (e := read_entry(f, request_key)) is not None]
        entries = [e for e in entries if _wanted(e, toolkit)]
        return max(entries, key=_age_of_tools, default=None)

    def refuse(self, request_key: str, toolkit: Toolkit, error: ToolchainError) -> None:
        """Keep that tools refused a request, for machines without them."""
        if refusals.is_refusal(error):
            refusals.keep(self.request_folder(request_key), toolkit, error)

    def refusal(self, request_key: str, toolkit: str | None = None) -> ToolchainError | None:
        """The error with which tools of this name (None: the newest that were asked) refused a request, or None."""
        found = [r for r in refusals.read(self.request_folder(request_key)) if _wanted(r, toolkit)]
        newest = max(found, key=_age_of_tools, default=None)
        return None if newest is None else newest.error()

    def store(
        self,
        request_key: str,
        toolkit: Toolkit,
        artifact: Artifact,
        resources: Resources,
        meta: dict[str, Any] | None = None,
        *,
        source: str = "",
        sass: str | None = None,
    ) -> Entry:
        """Keep a kernel; returns the entry, which is another writer's where that one was first."""
        entry = Entry(
            path=None,
            request_key=request_key,
            toolset=toolkit.key,
            cubin=artifact.cubin,
            bytecode=artifact.bytecode,
            source=source,
            resources=resources,
            tool_versions=toolkit.versions.as_dict(),
            meta=dict(meta or {}),
            remarks=artifact.remarks,
            sass=sass,
        )
        target = self.request_folder(request_key) / toolkit.key
        refusals.forget(target.parent, toolkit.key)
        try:
            return self._publish(entry, target)
        except OSError as error:
            if error.errno in _UNWRITABLE:
                return entry
            raise

    def remove(self, entry: Entry) -> None:
        """Take an entry out of the cache."""
        if entry.path is not None:
            discard(entry.path)

    def entries(self) -> Iterator[Entry]:
        """All sound entries."""
        for request in self._requests():
            for folder in _subfolders(request):
                entry = read_entry(folder, request.name)
                if entry is not None:
                    yield entry

    def _requests(self) -> Iterator[Path]:
        for group in _subfolders(self.entries_root):
            yield from _subfolders(group)

    def copy_to(self, other: KernelCache) -> tuple[int, int]:
        """Copy every entry (and refusal) into another cache; returns (copied, already there)."""
        copied = present = 0
        for request in self._requests():
            for refusal in refusals.read(request):
                refusals.write(other.request_folder(request.name), refusal)
        for entry in self.entries():
            target = other.request_folder(entry.request_key) / entry.toolset
            if read_entry(target, entry.request_key) is not None:
                present += 1
            else:
                other._publish(entry, target)
                copied += 1
        return copied, present

    def clear(self) -> int:
        """Remove every entry; returns how many there were."""
        count = sum(1 for _ in self.entries())
        shutil.rmtree(self.entries_root, ignore_errors=True)
        return count

    def request_folder(self, request_key: str) -> Path:
        """Where the entries and refusals of a request lie."""
        return self.entries_root / request_key[:2] / request_key

    def _publish(self, entry: Entry, target: Path) -> Entry:
        """Write a complete folder beside the entries and move it to its place in one step."""
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = self.entries_root / ".tmp"
        scratch.mkdir(exist_ok=True)
        remove_stale(scratch, "*")  # what killed writers left
        draft = scratch / f"{os.getpid()}-{secrets.token_hex(8)}"
        try:
            write_entry(draft, entry)
            for _ in range(3):
                try:
                    os.rename(draft, target)
                except OSError as error:
                    if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                        raise
                    # Someone was faster. Reading removes the folder if it is damaged: then try again.
                    first = read_entry(target, entry.request_key)
                    if first is not None:
                        return first
                else:
                    break
            written = read_entry(target, entry.request_key)
            return written if written is not None else entry
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _subfolders(folder: Path) -> list[Path]:
    try:
        return sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    except OSError:
        return []


def _age_of_tools(entry: Entry | refusals.Refusal) -> tuple[tuple[int, ...], ...]:
    return tuple(parts(entry.tool_versions.get(t, "")) for t in ("tileiras", "nvvm", "ptxas", "cuda-tile"))


def _wanted(entry: Entry | refusals.Refusal, toolkit: str | None) -> bool:
    return toolkit is None or toolkit == entry.toolset or _made_by(entry, toolkit)


def _made_by(entry: Entry | refusals.Refusal, name: str) -> bool:
    """Whether tools named "13.4", "13.4.92" or "13.5+nvvm-13.4+ptxas-13.5" made an entry."""
    base, *others = name.split("+")
    wanted = {"tileiras": base, "nvvm": base, "ptxas": base}
    for other in others:
        tool, _, version = other.partition("-")
        wanted[tool] = version
    for tool, version in wanted.items():
        have = parts(entry.tool_versions.get(tool, ""))
        # tileiras and its companions may differ in the last number within one release
        asked = parts(version) if tool == "tileiras" else parts(release(version))
        if not asked or have[: len(asked)] != asked:
            return False
    return True
