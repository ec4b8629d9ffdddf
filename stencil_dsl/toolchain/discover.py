"""Finds a toolkit: by name, by path, or the default one of this machine.

Default order: `STENCIL_DSL_TOOLKIT`, the installed wheels, `PATH`, `CUDA_HOME`.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import re
import shutil
from pathlib import Path

from stencil_dsl.errors import ToolchainError
from stencil_dsl.toolchain.kit import Toolkit, open_toolkit
from stencil_dsl.toolchain.paths import toolkits_root
from stencil_dsl.toolchain.versions import package_version, parts, release

# Wheels of one release that must be installed together; tileiras loads the libnvvm and runs the ptxas
# that lie beside it.
WHEELS = ("nvidia-cuda-tileiras", "nvidia-cuda-nvcc", "nvidia-nvvm")

# Exact versions that belong together. 13.3's tileiras was built before its companions' last update.
RELEASES: dict[str, tuple[str, str, str]] = {
    "13.2": ("13.2.51", "13.2.51", "13.2.51"),
    "13.3": ("13.3.36", "13.3.73", "13.3.73"),
    "13.4": ("13.4.92", "13.4.92", "13.4.92"),
    "13.5": ("13.5.37", "13.5.37", "13.5.37"),
}


def find(name: str | os.PathLike[str] | None = None) -> Toolkit:
    """Find a toolkit.

    Args:
        name: None for the default; a release or exact version ("13.4", "13.4.92") of the installed
            wheels or of a side-by-side toolkit; a folder; or a composition "13.5+nvvm-13.4+ptxas-13.5"
            (tileiras of the first, the others as said).

    Raises:
        ToolchainError: nothing found, with the commands that would install it; or the installed wheels
            are of different releases, with the command that repairs them.
    """
    wanted = os.fspath(name) if name is not None else os.environ.get("STENCIL_DSL_TOOLKIT") or None
    search = (os.environ.get("PATH", ""), os.environ.get("CUDA_HOME", ""), str(toolkits_root()))
    return _find(wanted, search)


@functools.lru_cache(maxsize=64)
def _find(wanted: str | None, search: tuple[str, ...]) -> Toolkit:
    """`search` is what else the answer depends on: a changed environment is a new question."""
    if wanted is None:
        return _default()
    if os.sep in wanted or Path(wanted).is_dir():
        return _open(Path(wanted).expanduser(), None)
    if "+" in wanted:
        from stencil_dsl.toolchain.composition import compose, parse_composition

        return compose(**parse_composition(wanted))
    return _named(wanted)


def clear_found() -> None:
    """Forget what `find` returned before, for example after an installation."""
    _find.cache_clear()


def wheel_versions() -> dict[str, str]:
    """Installed toolkit wheels with their versions."""
    found = {name: package_version(name) for name in WHEELS}
    return {name: version for name, version in found.items() if version is not None}


def wheel_root() -> Path | None:
    """Folder of the installed wheels' tools, None where tileiras is not installed as a wheel.

    Raises ToolchainError where the wheels are not of one release.
    """
    installed = wheel_versions()
    if WHEELS[0] not in installed:
        return None
    check_wheels(installed)
    place = importlib.metadata.distribution(WHEELS[0]).locate_file("nvidia/cu13")
    root = Path(str(place))
    return root if (root / "bin").is_dir() else None


def check_wheels(installed: dict[str, str]) -> None:
    """Raise ToolchainError unless the three wheels are there with one major.minor version."""
    ours = release(installed[WHEELS[0]])
    if len(installed) == len(WHEELS) and {release(v) for v in installed.values()} == {ours}:
        return
    have = ", ".join(f"{name} {installed.get(name, 'missing')}" for name in WHEELS)
    raise ToolchainError(
        f"the installed CUDA tile wheels are not one set ({have}); tileiras needs the libnvvm and ptxas of "
        f"its own release. Repair with: {repair_command(installed[WHEELS[0]])}",
        versions={name: installed.get(name, "missing") for name in WHEELS},
    )


def repair_command(tileiras_version: str) -> str:
    """The pip command that pins the companions of a tileiras wheel to its release."""
    known = RELEASES.get(release(tileiras_version))
    pins = known if known and known[0] == tileiras_version else (tileiras_version,) * 3
    return "pip install " + " ".join(f"{name}=={v}" for name, v in zip(WHEELS, pins, strict=True))


def find_tool(name: str) -> Path | None:
    """A tool that only reads results ("nvdisasm", "tileirdisasm"): the newest place that has it.

    Looked for in the installed wheels, side-by-side toolkits (newest first), PATH and CUDA_HOME; any
    release will do, because newer ones read what older ones wrote.
    """
    places: list[Path] = []
    for package in ("nvidia-cuda-nvdisasm", "nvidia-cuda-tileiras"):
        if package_version(package):
            place = importlib.metadata.distribution(package).locate_file("nvidia/cu13/bin")
            places.append(Path(str(place)))
    places += [folder / "bin" for folder in reversed(side_by_side())]
    on_path = shutil.which(name)
    places += [Path(on_path).parent] if on_path else []
    places += [Path(home) / "bin" for home in [os.environ.get("CUDA_HOME")] if home]
    return next((p / name for p in places if os.access(p / name, os.X_OK)), None)


def side_by_side() -> list[Path]:
    """Folders of the toolkits that `python -m stencil_dsl.toolchain install` unpacked, oldest first."""
    root = toolkits_root()
    folders = [p for p in root.iterdir() if (p / "bin/tileiras").exists()] if root.is_dir() else []
    return sorted(folders, key=lambda p: parts(p.name))


def _open(root: Path, name: str | None) -> Toolkit:
    return open_toolkit(root, name, nvdisasm=find_tool("nvdisasm"), tileirdisasm=find_tool("tileirdisasm"))


def _default() -> Toolkit:
    root = wheel_root()
    if root is not None:
        return _open(root, None)
    on_path = shutil.which("tileiras")
    if on_path:
        return _open(Path(on_path).resolve().parent.parent, None)
    home = os.environ.get("CUDA_HOME")
    if home and (Path(home) / "bin/tileiras").exists():
        return _open(Path(home), None)
    raise ToolchainError(
        "no CUDA tile toolkit on this machine (looked at STENCIL_DSL_TOOLKIT, installed wheels, PATH, "
        "CUDA_HOME). Install one with: pip install 'stencil-dsl[toolchain]', or side by side with: "
        "python -m stencil_dsl.toolchain install 13.5"
    )


def _matches(version: str, wanted: str) -> bool:
    return parts(version)[: len(parts(wanted))] == parts(wanted)


def _named(wanted: str) -> Toolkit:
    if not re.fullmatch(r"\d+(\.\d+)+", wanted):
        raise ToolchainError(
            f"{wanted!r} names no toolkit; allowed are a release like 13.4, an exact version like 13.4.92, "
            "a folder, or a composition like 13.5+nvvm-13.4"
        )
    installed = wheel_versions().get(WHEELS[0])
    if installed and _matches(installed, wanted):
        root = wheel_root()
        if root is not None:
            return _open(root, wanted)
    for folder in reversed(side_by_side()):
        if _matches(folder.name, wanted) or folder.name == wanted:
            return _open(folder, wanted)
    # An exact version may lie in a folder that is named by its release only.
    for folder in reversed(side_by_side()):
        if release(wanted) == release(folder.name) and _open(folder, wanted).versions.tileiras == wanted:
            return _open(folder, wanted)
    have = [f"{installed} (wheels)"] if installed else []
    have += [folder.name for folder in side_by_side()]
    raise ToolchainError(
        f"toolkit {wanted} is not installed (available: {', '.join(have) or 'none'}). Install it side by "
        f"side with: python -m stencil_dsl.toolchain install {wanted}"
    )
