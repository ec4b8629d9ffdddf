"""Side-by-side toolkits: the three wheels of a release, unpacked in the user's data folder.

They come through pip from whatever index it is set up for, and only what compiling needs is kept.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import sys
import zipfile
from collections import deque
from collections.abc import Callable
from pathlib import Path

from stencil_dsl.errors import ToolchainError
from stencil_dsl.toolchain.discover import RELEASES, WHEELS, clear_found
from stencil_dsl.toolchain.kit import Toolkit, open_toolkit
from stencil_dsl.toolchain.paths import remove_stale, toolkits_root, work_folder

# Files of the wheels that are kept, below nvidia/cu13.
_KEPT = re.compile(
    r"(?:^|/)nvidia/[^/]+/(bin/(?:tileiras|ptxas|nvdisasm|tileirdisasm)|lib(?:64)?/libnvvm\.so[^/]*"
    r"|nvvm/lib64/libnvvm\.so[^/]*|nvvm/libdevice/libdevice[^/]*\.bc)$"
)


def install(name: str, report: Callable[[str], None] = print, *, force: bool = False) -> Toolkit:
    """Install a release ("13.4") or an exact version ("13.4.92") and return it.

    An installed one is left alone unless `force`. Downloads about 160 MB and keeps about 240 MB.

    Raises:
        ToolchainError: no such release, or pip could not get the wheels (its last words are included).
    """
    pins = _pins(name)
    folder = toolkits_root() / name
    if (folder / "bin/tileiras").exists() and not force:
        report(f"{name}: already installed in {folder}")
        return open_toolkit(folder, name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_stale(folder.parent, ".*-new")
    draft = folder.with_name(f".{name}-{secrets.token_hex(4)}-new")
    try:
        with work_folder() as downloads:
            for wheel, version in zip(WHEELS, pins, strict=True):
                report(f"{name}: downloading {wheel} {version}")
                unpack(_download(f"{wheel}=={version}", downloads / wheel, report), draft)
        kit = open_toolkit(draft, name)  # before it gets its place: every tool must be there and run
        if folder.exists():
            shutil.rmtree(folder)
        os.rename(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    clear_found()
    kit = open_toolkit(folder, name)
    tools = ", ".join(f"{tool} {version}" for tool, version in kit.versions.as_dict().items())
    report(f"{name}: installed in {folder} ({tools})")
    return kit


def _pins(name: str) -> tuple[str, str, str]:
    if name in RELEASES:
        return RELEASES[name]
    for pins in RELEASES.values():
        if pins[0] == name:
            return pins
    if re.fullmatch(r"13\.\d+\.\d+", name):
        return (name,) * 3
    raise ToolchainError(
        f"{name!r} is no release that can be installed; allowed are {', '.join(RELEASES)} and exact versions "
        "like 13.4.92"
    )


def _download(requirement: str, folder: Path, report: Callable[[str], None]) -> Path:
    """Get one wheel through pip; its progress goes to the terminal, or line by line to `report`."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check"]
    command += ["--only-binary=:all:", "-d", str(folder), requirement]
    bar = sys.stdout.isatty() and report is print
    command += ["--progress-bar", "on" if bar else "off"]
    last: deque[str] = deque(maxlen=20)
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=None if bar else subprocess.PIPE,
        stderr=subprocess.PIPE if bar else subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        for line in process.stderr if bar else process.stdout:  # type: ignore[union-attr]
            last.append(line.rstrip())
            if not bar and line.strip().startswith("Downloading"):
                report(f"  {line.strip()}")
    wheels = sorted(folder.glob("*.whl")) if folder.is_dir() else []
    if process.returncode != 0 or not wheels:
        raise ToolchainError(
            f"pip could not download {requirement} (return code {process.returncode}). Is this machine "
            "offline? Then run the installation where there is a network, with STENCIL_DSL_DATA naming a "
            "folder, and copy that folder here",
            command=" ".join(command),
            stderr="\n".join(last),
        )
    return wheels[0]


def unpack(wheel: Path, root: Path) -> list[str]:
    """Unpack what compiling needs from a wheel into `root`; returns the files, relative to it."""
    kept = []
    with zipfile.ZipFile(wheel) as archive:
        for item in archive.infolist():
            match = _KEPT.search(item.filename)
            if match is None:
                continue
            place = root / match.group(1)
            place.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(item) as source, place.open("wb") as target:
                shutil.copyfileobj(source, target)
            place.chmod(0o755)
            kept.append(match.group(1))
    if not kept:
        raise ToolchainError(f"{wheel.name} holds no compiler tool; is it a toolkit wheel?")
    return kept
