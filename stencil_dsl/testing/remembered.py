"""Compile-time outcomes of earlier runs: facts and checked values of variants whose code and tools did not change.

Kernels come from the kernel cache anyway; what takes time in a warm run is lowering definitions and interpreting
kernels to check their values. An outcome is kept under a hash of all that it depends on: this package, the files beside
the question's module and those it imported from the project, the tools, and the variant. Failures are not kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

import stencil_dsl
from stencil_dsl.errors import ToolchainError
from stencil_dsl.testing.question import Target, Variant
from stencil_dsl.testing.reference import QuestionRef
from stencil_dsl.toolchain.paths import cache_root

#: States of the code that are kept; older ones are removed.
_KEPT = 8


class Memory:
    """Outcomes on disk; `used` counts those that were taken from there.

    Args:
        root: folder of the project, whose imported files count as code.
        fresh: recall nothing (outcomes are still kept for the next run).
    """

    def __init__(self, root: Path, fresh: bool = False) -> None:
        self._root, self._fresh, self.used = root.resolve(), fresh, 0
        self._pruned = False

    def recall(self, reference: QuestionRef, variant: Variant, target: Target, what: str) -> Any | None:
        """What an earlier run found ("facts" or "values"), or None."""
        path = None if self._fresh else self._path(reference, variant, target, what)
        if path is None:
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        self.used += 1
        return found

    def keep(self, reference: QuestionRef, variant: Variant, target: Target, what: str, found: Any) -> None:
        """Remembers an outcome; does nothing where that is not possible."""
        path = self._path(reference, variant, target, what)
        if path is None or found is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{os.getpid()}.part")
            part.write_text(json.dumps(found, sort_keys=True), encoding="utf-8")
            os.replace(part, path)
            self._prune(path.parent.parent)
        except (OSError, TypeError):
            return

    def _path(self, reference: QuestionRef, variant: Variant, target: Target, what: str) -> Path | None:
        if not variant.remembered:
            return None
        tools = tools_key(getattr(variant, "toolkit", None) or target.toolkit)
        if tools is None:
            return None
        state = _code_hash(reference.module, reference.path, str(self._root))
        text = "\n".join((reference.key, variant.id, type(variant).__qualname__, target.arch, tools, what))
        return cache_root() / "outcomes" / state[:24] / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"

    def _prune(self, folder: Path) -> None:
        if self._pruned:
            return
        self._pruned = True
        states = sorted((f for f in folder.iterdir() if f.is_dir()), key=lambda f: f.stat().st_mtime, reverse=True)
        for old in states[_KEPT:]:
            shutil.rmtree(old, ignore_errors=True)


@cache
def tools_key(toolkit: str | None) -> str | None:
    """Names the exact tools of a toolkit, those that read results included; None where it is not on this machine."""
    from stencil_dsl import toolchain

    try:
        kit = toolchain.find(toolkit)
    except ToolchainError:
        return None
    return f"{kit.key} {kit.nvdisasm}"


@cache
def _code_hash(module: str, path: str, root: str) -> str:
    """Hash of the code that decides an outcome, once the question has been made: then its imports are known."""
    folder = Path(path).resolve().parent
    files = {*Path(stencil_dsl.__file__).parent.rglob("*.py"), *folder.rglob("*.py"), Path(path)}
    for loaded in list(sys.modules.values()):
        file = getattr(loaded, "__file__", None)
        if file and file.endswith(".py") and file.startswith(root) and "site-packages" not in file:
            files.add(Path(file))
    digest = hashlib.sha256(f"{sys.version_info[:2]} {_tuning_hash()}".encode())
    for file in sorted(files):
        try:
            digest.update(file.name.encode() + hashlib.sha256(file.read_bytes()).digest())
        except OSError:
            continue
    return digest.hexdigest()


def _tuning_hash() -> str:
    """Kernels without a schedule of their own take remembered ones."""
    from stencil_dsl.runtime.tuning_store import TuningStore

    path = TuningStore.default().path
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
