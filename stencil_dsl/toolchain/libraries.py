"""Builds tile libraries: description -> interface, implementation and LTOIR -> one `.tilelib`."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Sequence
from pathlib import Path

from stencil_dsl.errors import ToolchainError
from stencil_dsl.tilelib.bytecode import VERSION
from stencil_dsl.tilelib.library import TileLibrary
from stencil_dsl.toolchain.kit import Toolkit
from stencil_dsl.toolchain.libnvvm import compile_nvvm
from stencil_dsl.toolchain.nvrtc import compile_cuda
from stencil_dsl.toolchain.paths import work_folder
from stencil_dsl.toolchain.process import run_tool
from stencil_dsl.toolchain.versions import package_version, parts

BYTECODE = ".".join(map(str, VERSION))
"""Bytecode version of libraries, and of the kernels that call them."""

_LINKER = "libnvJitLink.so"
_LINKER_WHEEL = "nvidia-nvjitlink"
_LIBRARY_FOLDERS = ("lib", "lib64")


def check_toolkit(toolkit: Toolkit) -> None:
    """Raise ToolchainError unless a toolkit can make and link tile libraries."""
    if parts(toolkit.versions.tileiras)[:2] < VERSION:
        raise ToolchainError(
            f"tile libraries need tileiras {BYTECODE} or newer, toolkit {toolkit.name} has"
            f" {toolkit.versions.tileiras}; install it with: python -m stencil_dsl.toolchain install {BYTECODE}"
        )


def build_library(
    library: TileLibrary, arch: str, toolkit: Toolkit, timeout: float | None = 300, temporary: Path | None = None
) -> bytes:
    """The content of a `.tilelib` for one architecture, such as "sm_90".

    Raises:
        ToolchainError: the toolkit is older than 13.5, or a tool refuses (its words included).
    """
    check_toolkit(toolkit)
    if library.language == "nvvm":
        device = compile_nvvm(library.nvvm(arch), arch, toolkit, f"library {library.name!r}")
    else:
        device = compile_cuda(library.cuda(), arch, toolkit, f"library {library.name!r}")
    files = {"interface.bc": library.interface(), "implementation.bc": library.implementation(), "device.ltoir": device}
    with work_folder(temporary) as folder:
        for name, content in files.items():
            (folder / name).write_bytes(content)
        run_tool(
            [
                str(toolkit.tileiras),
                "--preview-create-tile-lib",
                "--preview-interface=interface.bc",
                "--preview-implementation=implementation.bc",
                "--preview-implementation=device.ltoir",
                "-o",
                "out.tilelib",
            ],
            tool="tileiras",
            env=toolkit.environment(folder),
            cwd=str(folder),
            timeout=timeout,
            versions=toolkit.versions.as_dict(),
        )
        return (folder / "out.tilelib").read_bytes()


def write_libraries(
    libraries: Sequence[TileLibrary], arch: str, toolkit: Toolkit, folder: Path, timeout: float | None = 300
) -> list[str]:
    """Build libraries into a folder; gives tileiras' options for a kernel that calls them."""
    options = ["--preview=simt"]
    for library in libraries:
        path = folder / f"{library.name}-{library.digest[:8]}.tilelib"
        path.write_bytes(build_library(library, arch, toolkit, timeout, folder))
        options += ["-l", path.name]
    return options


def linking_environment(toolkit: Toolkit, folder: Path) -> dict[str, str]:
    """Environment for tileiras where it links device code: it opens libnvJitLink by its unversioned name.

    Wheels have the versioned file only, so a folder of links below `folder` stands for the toolkit.
    """
    environment = toolkit.environment(folder)
    if any((toolkit.root / d / _LINKER).exists() for d in _LIBRARY_FOLDERS):
        return environment
    home = folder / "toolkit"
    home.mkdir(exist_ok=True)
    for entry in toolkit.root.iterdir():
        if entry.name not in _LIBRARY_FOLDERS:
            _link(home / entry.name, entry)
    for name in _LIBRARY_FOLDERS:
        (home / name).mkdir(exist_ok=True)
        if (toolkit.root / name).is_dir():
            for entry in (toolkit.root / name).iterdir():
                _link(home / name / entry.name, entry)
        _link(home / name / _LINKER, _find_linker(toolkit))
    return environment | {"CUDA_HOME": str(home)}


def _link(place: Path, target: Path) -> None:
    if not place.is_symlink():
        os.symlink(target, place)


def _find_linker(toolkit: Toolkit) -> Path:
    folders = [toolkit.root / d for d in _LIBRARY_FOLDERS]
    if package_version(_LINKER_WHEEL):
        place = importlib.metadata.distribution(_LINKER_WHEEL).locate_file("nvidia/cu13/lib")
        folders.append(Path(str(place)))
    for folder in folders:
        for found in sorted(folder.glob(f"{_LINKER}*"), reverse=True):
            return found
    raise ToolchainError(
        f"linking a tile library needs libnvJitLink, which toolkit {toolkit.name} does not have: pip install"
        f" {_LINKER_WHEEL}=={toolkit.versions.tileiras}"
    )
