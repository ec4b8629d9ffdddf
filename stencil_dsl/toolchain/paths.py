"""Where the toolchain keeps things: the kernel cache, side-by-side toolkits, temporary folders.

`STENCIL_DSL_CACHE` names another cache folder, `STENCIL_DSL_DATA` another folder for toolkits.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

APP = "stencil-dsl"
TEMP_PREFIX = "stencil-dsl-work-"
_STALE_SECONDS = 24 * 3600.0
_swept: set[str] = set()


def cache_root() -> Path:
    """Folder of the kernel cache (`STENCIL_DSL_CACHE`, else the user's cache folder); may not exist yet."""
    named = os.environ.get("STENCIL_DSL_CACHE")
    if named:
        return Path(named).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir(APP, appauthor=False))


def data_root() -> Path:
    """Folder of the user's data (`STENCIL_DSL_DATA`, else the user's data folder); may not exist yet."""
    named = os.environ.get("STENCIL_DSL_DATA")
    if named:
        return Path(named).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_data_dir(APP, appauthor=False))


def anonymous(text: str) -> str:
    """The text without this machine's own folders: for what is kept where others may read it."""
    folders = {cache_root(): "<cache>", data_root(): "<data>", Path(sys.prefix): "<environment>", Path.home(): "~"}
    for folder, name in sorted(folders.items(), key=lambda item: len(str(item[0])), reverse=True):
        if folder != Path(folder.anchor):
            text = text.replace(f"{folder}/", f"{name}/")
    return text


def toolkits_root() -> Path:
    """Folder that holds one side-by-side toolkit per subfolder, named like its release."""
    return data_root() / "toolkits"


def remove_stale(folder: Path, pattern: str, seconds: float = _STALE_SECONDS) -> int:
    """Remove our own subfolders of `folder` matching `pattern` that nobody touched for `seconds`.

    They are what killed processes left. Returns how many were removed; errors are ignored, since
    another process may be cleaning at the same time.
    """
    removed = 0
    limit = time.time() - seconds
    for path in folder.glob(pattern):
        try:
            info = path.stat()
        except OSError:
            continue
        if info.st_mtime < limit and info.st_uid == os.getuid():
            shutil.rmtree(path, ignore_errors=True)
            removed += 1
    return removed


@contextmanager
def work_folder(parent: Path | None = None) -> Iterator[Path]:
    """A temporary folder, removed at the end whatever happens.

    A killed process cannot remove its folder; the first use in a later process removes such folders
    once they are a day old.
    """
    base = str(parent) if parent is not None else tempfile.gettempdir()
    if base not in _swept:
        _swept.add(base)
        remove_stale(Path(base), TEMP_PREFIX + "*")
    with tempfile.TemporaryDirectory(prefix=TEMP_PREFIX, dir=base, ignore_cleanup_errors=True) as name:
        yield Path(name)
