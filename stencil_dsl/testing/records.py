"""Record files: provenance first, then one measurement a line, all samples kept.

Only the controller writes: with xdist the records arrive as user properties of the workers' reports.
While a run is under way its file ends in ``.part``; a killed run leaves it, and the next run of the same
code, tools and device goes on from it.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stencil_dsl.testing import provenance
from stencil_dsl.testing.options import settings
from stencil_dsl.toolchain.paths import anonymous

Key = tuple[str, str, str, "str | None"]

_RECORDER: pytest.StashKey[Recorder] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return
    recorder = Recorder(config)
    config.stash[_RECORDER] = recorder
    config.pluginmanager.register(recorder, "stencil-dsl-recorder")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells an xdist worker which unfinished file it may take results from."""
    recorder = node.config.stash[_RECORDER]
    node.workerinput["stencil_resume"] = str(recorder.resumed_from or "")


def recorder_of(config: pytest.Config) -> Recorder | None:
    """The controller's recorder; None in an xdist worker."""
    return config.stash.get(_RECORDER, None)


def resumable(config: pytest.Config) -> dict[Key, dict[str, Any]]:
    """Records of an unfinished run that this one continues, by (group, variant, arch, toolkit)."""
    recorder = recorder_of(config)
    file = recorder.resumed_from if recorder else getattr(config, "workerinput", {}).get("stencil_resume")
    if not file:
        return {}
    rows = [row for row in read(Path(file)) if row["kind"] == "variant"]
    return {(row["group"], row["variant"], row["arch"], row["toolkit"]): row for row in rows}


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Lines of a record file; a last line that was cut off by a kill is left out."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            with contextlib.suppress(json.JSONDecodeError):
                yield json.loads(line)


class Recorder:
    """Collects records on the controller and writes them as they come."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.rows: list[dict[str, Any]] = []
        self.path: Path | None = None
        self._part: Path | None = None
        self._lock: Any = None
        self._provenance: dict[str, Any] | None = None
        self.resumed_from = self._find_unfinished()

    @property
    def folder(self) -> Path:
        """``<results>/<device or "compile">/records``."""
        device = self._device()
        from stencil_dsl.testing.device import DeviceInfo

        slug = DeviceInfo(device["name"], "").slug if device else "compile"
        return settings(self._config).results / slug / "records"

    def _device(self) -> dict[str, Any] | None:
        chosen = settings(self._config)
        if not chosen.gpu:
            return None
        from stencil_dsl.testing.device import describe

        info = describe(chosen.device_class, chosen.device_number)
        return {"name": info.name, "arch": info.arch, "driver": info.driver, **info.facts} if info else None

    def provenance(self) -> dict[str, Any]:
        """This run's first line."""
        if self._provenance is None:
            config = self._config
            self._provenance = provenance.provenance(
                config.rootpath,
                tuple(map(str, config.invocation_params.args)),
                config.option.rounds,
                self._device(),
            )
        return self._provenance

    def _find_unfinished(self) -> Path | None:
        """An unfinished file of the same code, tools and device that no living run holds."""
        if not settings(self._config).results.is_dir():
            return None
        for part in sorted(self.folder.glob("*.jsonl.part"), reverse=True):
            first = next(read(part), None)
            mine = self.provenance()
            if first is None or mine["commit"] == "unknown":
                continue
            if provenance.resume_key(first) == provenance.resume_key(mine) and self._hold(part):
                self._part = part
                self.path = part.with_suffix("")
                return part
        return None

    def _hold(self, part: Path) -> bool:
        """Marks a file as this run's; False when another run has it."""
        file = part.open("a", encoding="utf-8")
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            pass
        except OSError:
            file.close()
            return False
        self._lock = file
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call":
            return
        from stencil_dsl.testing.fixtures import PROPERTY

        for name, row in report.user_properties:
            if name == PROPERTY and isinstance(row, dict):
                self._append(row | {"outcome": report.outcome})

    def _append(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        if self._part is None:
            self._create()
        assert self._lock is not None
        if self._ends_torn():
            self._lock.write("\n")
        self._lock.write(anonymous(json.dumps(row, sort_keys=True)) + "\n")
        self._lock.flush()
        os.fsync(self._lock.fileno())

    def _ends_torn(self) -> bool:
        """A kill can leave a line without its end; the next record must not continue it."""
        assert self._part is not None
        self._lock.flush()
        size = self._part.stat().st_size
        if size == 0:
            return False
        with self._part.open("rb") as file:
            file.seek(size - 1)
            return file.read(1) != b"\n"

    def _create(self) -> None:
        now = time.gmtime()
        self.folder.mkdir(parents=True, exist_ok=True)
        stem = f"{time.strftime('%Y%m%dT%H%M%SZ', now)}-{self.provenance()['commit']}"
        for attempt in range(100):
            path = self.folder / f"{stem}{f'-{attempt}' if attempt else ''}.jsonl"
            part = path.with_name(path.name + ".part")
            if path.exists() or part.exists():
                continue
            first = {"utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", now), **self.provenance()}
            part.write_text(json.dumps(first, sort_keys=True) + "\n", encoding="utf-8")
            if self._hold(part):
                self.path, self._part = path, part
                return
        raise FileExistsError(f"no free name for {stem}.jsonl in {self.folder}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """A run that came to its end gets its final name; an interrupted one stays to be continued."""
        if self._part is None or self._lock is None:
            return
        self._lock.close()
        if int(exitstatus) in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and self.rows:
            assert self.path is not None
            os.replace(self._part, self.path)
        else:
            self.path = self._part
