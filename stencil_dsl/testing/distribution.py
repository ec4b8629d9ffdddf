"""With xdist, the items of a group run in one worker, else each worker would measure the group for itself.

xdist's own ``loadgroup`` writes the group into an item's node id, which pytest 9.2 no longer lets it do
(seen with xdist 3.8.0). Here the workers leave a file that says which group an item belongs to, and the
scheduler reads it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from stencil_dsl.testing.grouping import UNIT

_FOLDER: pytest.StashKey[Path] = pytest.StashKey()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    stash = node.config.stash
    if _FOLDER not in stash:
        stash[_FOLDER] = Path(tempfile.mkdtemp(prefix="stencil-dsl-"))
    node.workerinput["stencil_units"] = str(stash[_FOLDER])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a worker: writes node id -> unit, before the controller is told that collection ended."""
    folder = getattr(config, "workerinput", {}).get("stencil_units")
    if folder is None or not Path(folder).is_dir():
        return
    units = {item.nodeid: item.stash[UNIT] for item in items if UNIT in item.stash}
    part = Path(folder) / f"{os.getpid()}.part"
    part.write_text(json.dumps(units), encoding="utf-8")
    part.replace(part.with_suffix(".json"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Replaces xdist's default mode only: another one was asked for by name."""
    if config.getoption("dist") != "load" or _FOLDER not in config.stash:
        return None
    from xdist.scheduler.loadscope import LoadScopeScheduling

    folder = config.stash[_FOLDER]

    class UnitScheduling(LoadScopeScheduling):
        """Hands out whole units; an item without one is its own."""

        _units: dict[str, str] | None = None

        def _split_scope(self, nodeid: str) -> str:
            if self._units is None:
                self._units = {}
                for file in folder.glob("*.json"):
                    self._units |= json.loads(file.read_text(encoding="utf-8"))
            return self._units.get(nodeid, nodeid)

    return UnitScheduling(config, log)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _FOLDER in config.stash:
        shutil.rmtree(config.stash[_FOLDER], ignore_errors=True)
