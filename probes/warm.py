"""`python -m probes warm`: compiles every probe with every toolkit asked for, for machines that only run kernels."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from probes import catalogue
from stencil_dsl.errors import ToolchainError
from stencil_dsl.testing import Target

#: Module, architecture, toolkit, folder that gets copies.
Task = tuple[str, str, "str | None", "Path | None"]


def warm(arch: str, toolkits: Sequence[str | None], jobs: int, pack: Path | None = None) -> int:
    """Fills the kernel cache and prints a line a kernel that took time or was refused.

    Args:
        pack: a cache folder that gets a copy of these kernels and refusals, and of no others.

    Returns:
        1 where something failed otherwise than by a tool's refusal, which is a result.
    """
    tasks = [(module, arch, toolkit, pack) for toolkit in toolkits for module in catalogue.modules()]
    failed = 0
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for lines in pool.map(_module, tasks):
            for line in lines:
                failed += line.startswith("failed")
                print(line, flush=True)
    return 1 if failed else 0


def _module(task: Task) -> list[str]:
    """The variants of one probe with one toolkit, as lines of a log. Those of another architecture are left out."""
    module, arch, toolkit, pack = task
    lines = []
    with asked() as requests:
        for item in catalogue.items():
            if item.module != module or item.arch not in (None, arch):
                continue
            name, started = f"{item.name}, {toolkit or 'default toolkit'}", time.monotonic()
            try:
                item.resolve().compile_facts(Target(arch, toolkit))
            except ToolchainError as error:
                lines.append(f"refused: {name}: {str(error).splitlines()[0][:160]}")
            except Exception as error:  # noqa: BLE001 - one variant must not cost the others
                lines.append(f"failed: {name}: {type(error).__name__}: {error}")
            seconds = time.monotonic() - started
            if seconds > 5:
                lines.append(f"{name}: {seconds:.0f} s")
    if pack is not None:
        for folder, toolset in requests:
            copy(folder, toolset, pack)
    return lines


@contextlib.contextmanager
def asked() -> Iterator[dict[tuple[Path, str], None]]:
    """Notes what the kernel cache is asked for within: folders of requests, with the tool set wanted."""
    from stencil_dsl.toolchain import KernelCache, Toolkit

    seen: dict[tuple[Path, str], None] = {}
    lookup = KernelCache.lookup

    def noting(self: KernelCache, request_key: str, toolkit: Toolkit | str | None = None) -> Any:
        if isinstance(toolkit, Toolkit):
            seen[self.request_folder(request_key), toolkit.key] = None
        return lookup(self, request_key, toolkit)

    KernelCache.lookup = noting  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        KernelCache.lookup = lookup  # type: ignore[method-assign]


def copy(request: Path, toolset: str, pack: Path) -> None:
    """What one tool set made of a request, or its refusal, into another cache folder."""
    # <root>/v1/<two digits>/<request>/<tool set>, or <tool set>.refused.json
    there = pack.joinpath(*request.parts[-3:])
    for source in (request / toolset, *request.glob(f"{toolset}.refused.json")):
        if source.is_dir():
            shutil.copytree(source, there / source.name, dirs_exist_ok=True)
        elif source.is_file():
            there.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, there / source.name)
