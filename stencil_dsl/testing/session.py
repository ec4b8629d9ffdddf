"""Measures what items ask for, each thing once: in this process without a device, else in a worker process."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stencil_dsl.testing import stats
from stencil_dsl.testing.device import describe, missing
from stencil_dsl.testing.grouping import SELECTED
from stencil_dsl.testing.older import lacking
from stencil_dsl.testing.options import Settings, settings
from stencil_dsl.testing.question import Question, Target
from stencil_dsl.testing.records import resumable
from stencil_dsl.testing.reference import QuestionRef
from stencil_dsl.testing.remembered import Memory
from stencil_dsl.testing.sampling import used_times
from stencil_dsl.testing.worker import Task, Worker, _reason, member_name


class Result:
    """What was found of one variant for one target.

    Attributes:
        question, variant, target: whose result it is.
        facts: compile-time facts; empty where nothing is compiled.
        values: ``{"ok", "max_rel_err", "how", "why"}``, or None where values were not checked.
        failure: why the variant could not be compiled or measured, or None.
        samples: one entry a round and None without a device.
        time: interval of milliseconds per launch, or None.
        profile: traffic and occupancy by Nsight Compute (`profiling.profile`), ``{"failure"}``, or None.
    """

    def __init__(self, question: Question, variant: str, target: Target, group: str, found: dict[str, Any]) -> None:
        self.question, self.variant, self.target, self.group = question, variant, target, group
        self._found = found
        self.facts: dict[str, Any] = (found.get("facts") or {}) | (found.get("device_facts") or {})
        self.values: dict[str, Any] | None = found.get("values")
        self.failure: str | None = found.get("failure")
        self.samples: list[dict[str, Any]] | None = found.get("samples")
        self.profile: dict[str, Any] | None = found.get("profile")
        self.gate: Callable[[], None] = lambda: None

    @property
    def time(self) -> stats.Interval | None:
        return stats.interval(used_times(self.samples)) if self.samples else None

    def ratio(self, other: Result) -> stats.Interval | None:
        """Interval of this variant's time over the other's, when one run measured both."""
        if not self.samples or not other.samples or self._found.get("run") != other._found.get("run"):
            return None
        return stats.ratio(used_times(self.samples), used_times(other.samples))

    def check(self) -> None:
        """Fails the test with the reason when the variant failed, is wrong, or left its golden facts.

        Skips where a toolkit that was asked for by name is too old for what the variant uses.
        """
        label = f"{self.question.id}, {self.variant}, {self.target.arch}"
        if self.failure is not None:
            too_new = lacking(self.failure)
            if too_new is not None and self.target.toolkit is not None:
                pytest.skip(f"{label}: {too_new}")
            pytest.fail(f"{label}: {self.failure}", pytrace=False)
        if self.values is not None and not self.values["ok"]:
            pytest.fail(f"{label}: wrong values ({self.values['how']}): {self.values['why']}", pytrace=False)
        if self.profile is not None and "failure" in self.profile:
            pytest.fail(f"{label}: {self.profile['failure']}", pytrace=False)
        self.gate()

    def record(self) -> dict[str, Any]:
        """The result as one JSON line; all samples are kept."""
        kept = {
            k: self._found.get(k)
            for k in ("failure", "values", "facts", "samples", "run", "l2", "dropped", "throttled", "profile")
        }
        kept["facts"] = self.facts or None
        return {
            "kind": "variant", "group": self.group, "question": self.question.id, "shape":
            list(self.question.shape), "dtype": self.question.dtype, "bytes": self.question.bytes,
            "variant": self.variant, "baseline": self.question.baseline, "arch": self.target.arch,
            "toolkit": self.target.toolkit, **{key: value for key, value in kept.items() if value is not
            None},
        }  # fmt: skip


class Measurements:
    """Results of a session, by group, variant and target."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._settings: Settings = settings(config)
        self._questions: dict[str, Question] = {}
        self._compiled: dict[tuple[str, str, Target], dict[str, Any]] = {}
        self._timed: dict[tuple[str, str], dict[str, Any]] = {}
        self._worker: Worker | None = None
        self._earlier = resumable(config)
        self.memory = Memory(config.rootpath, config.option.fresh)
        self._info = describe(self._settings.device_class, self._settings.device_number) if self._settings.gpu else None

    def question(self, reference: QuestionRef) -> Question:
        """The question of a reference, made once."""
        if reference.key not in self._questions:
            self._questions[reference.key] = reference.resolve()
        return self._questions[reference.key]

    def result(self, reference: QuestionRef, variant: str, target: Target) -> Result:
        """Compiles (or fetches) the variant; with --gpu also times its whole group when it was not yet."""
        selected = self._config.stash.get(SELECTED, {}).get(reference.key, [])
        members = [(v, t) for v, t, arch in selected if arch == target.arch]
        return self._result(reference, variant, target, members or [(variant, target.toolkit)])

    def all_results(self, reference: QuestionRef, target: Target) -> dict[str, Result]:
        """Results of every variant of the question."""
        names = [variant.id for variant in self.question(reference).variants]
        members = [(name, target.toolkit) for name in names]
        return {name: self._result(reference, name, target, members) for name in names}

    def _result(
        self, reference: QuestionRef, name: str, target: Target, members: list[tuple[str, str | None]]
    ) -> Result:
        try:
            question = self.question(reference)
            question.variant(name)
        except Exception as error:
            raise pytest.UsageError(f"{reference.key}: {_reason(error)}") from error
        if self._on_device(target):
            found = dict(self._times(reference, name, target, members))
            wanted = question.profiled is None or name in question.profiled
            if self._settings.ncu and wanted and "failure" not in found:
                found["profile"] = self._profile(reference, question, name, target)
        else:
            found = dict(self._facts(reference, question, name, target))
            if self._settings.gpu and self._info is None and "failure" not in found:
                why = missing(self._settings.device_class, self._settings.device_number)
                found["failure"] = f"--gpu was given and device {self._settings.device_number} cannot be used: {why}"
            if "failure" not in found:
                found |= self._values(reference, question, name, target, found)
        self._dump(question, name, target)
        return Result(question, name, target, reference.key, found)

    def _on_device(self, target: Target) -> bool:
        return self._settings.gpu and self._info is not None and self._info.arch == target.arch

    def _facts(self, reference: QuestionRef, question: Question, name: str, target: Target) -> dict[str, Any]:
        key = (reference.key, name, target)
        if key not in self._compiled:
            variant = question.variant(name)
            try:
                facts = self.memory.recall(reference, variant, target, "facts")
                if facts is None:
                    facts = variant.compile_facts(target)
                    self.memory.keep(reference, variant, target, "facts", facts)
                self._compiled[key] = {"facts": facts}
            except Exception as error:  # one variant that does not compile is a result, not the end of the run
                self._compiled[key] = {"failure": _reason(error)}
        return self._compiled[key]

    def _values(
        self, reference: QuestionRef, question: Question, name: str, target: Target, found: dict[str, Any]
    ) -> dict[str, Any]:
        if "checked" not in self._compiled[(reference.key, name, target)]:
            earlier = self._earlier.get((reference.key, name, target.arch, target.toolkit), {})
            if earlier.get("values") and earlier.get("facts") == found.get("facts") and not earlier.get("samples"):
                checked: dict[str, Any] = {"values": earlier["values"]}
            else:
                variant = question.variant(name)
                try:
                    values = self.memory.recall(reference, variant, target, "values")
                    if values is None:
                        values = variant.validate(target)
                        if values is not None and values["ok"]:
                            self.memory.keep(reference, variant, target, "values", values)
                    checked = {"values": values}
                except Exception as error:
                    checked = {"failure": _reason(error)}
            self._compiled[(reference.key, name, target)]["checked"] = checked
        return self._compiled[(reference.key, name, target)]["checked"]

    def _times(
        self, reference: QuestionRef, name: str, target: Target, members: list[tuple[str, str | None]]
    ) -> dict[str, Any]:
        own = member_name(name, target.toolkit)
        if (reference.key, own) not in self._timed:
            wanted = list(dict.fromkeys(members))
            outcomes = self._earlier_group(reference, wanted, target.arch)
            if outcomes is None:
                outcomes = self._measure(Task(reference, tuple(wanted), target.arch, self._settings.rounds))
            self._timed.update({(reference.key, member): outcome for member, outcome in outcomes.items()})
        return self._timed[(reference.key, own)]

    def _earlier_group(
        self, reference: QuestionRef, members: list[tuple[str, str | None]], arch: str
    ) -> dict[str, Any] | None:
        """What a killed run had measured of this group, if it had all members and measured them together."""
        rows = {member_name(*m): self._earlier.get((reference.key, m[0], arch, m[1])) for m in members}
        timed = [row for row in rows.values() if row is not None and (row.get("samples") or row.get("failure"))]
        if len(timed) < len(rows) or len({row["run"] for row in timed if row.get("samples")}) > 1:
            return None
        keep = ("failure", "values", "samples", "run", "l2", "dropped", "throttled", "profile")
        return {
            name: {k: row[k] for k in keep if k in row} | {"device_facts": row.get("facts")}
            for name, row in rows.items()
            if row
        }

    def _profile(self, reference: QuestionRef, question: Question, name: str, target: Target) -> dict[str, Any]:
        """Counters of one variant, once; those of a killed run are taken over."""
        from stencil_dsl.testing.profiling import Job, ProfileError, profile

        outcome = self._timed[(reference.key, member_name(name, target.toolkit))]
        if "metrics" not in (outcome.get("profile") or {}):
            chosen = self._settings
            job = Job(reference, name, target.arch, target.toolkit, chosen.device_class, chosen.device_number)
            if self._worker is not None:
                self._worker.stop()  # its memory and its context are needed
            try:
                with _one_at_a_time(chosen.device_number):
                    outcome["profile"] = profile(job, question.prepare_limit_s)
            except ProfileError as error:
                outcome["profile"] = {"failure": str(error)}
        return outcome["profile"]

    def _measure(self, task: Task) -> dict[str, dict[str, Any]]:
        if self._worker is None:
            self._worker = Worker(self._settings.device_class, self._settings.device_number)
        with _one_at_a_time(self._settings.device_number):
            return self._worker.measure(task)

    def _dump(self, question: Question, name: str, target: Target) -> None:
        if self._settings.dump is None:
            return
        folder = self._settings.dump / question.id / member_name(name, target.toolkit) / target.arch
        with contextlib.suppress(Exception):  # a variant that does not compile has nothing to show
            for file, text in question.variant(name).artefacts(target).items():
                folder.mkdir(parents=True, exist_ok=True)
                (folder / file).write_text(text)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.stop()


@contextlib.contextmanager
def _one_at_a_time(number: int) -> Iterator[None]:
    """Two xdist workers (or sessions) must not time on the same device together."""
    try:
        import fcntl
    except ImportError:  # no such lock outside POSIX; xdist with --gpu is then the user's risk
        yield
        return
    path = Path(tempfile.gettempdir()) / f"stencil-dsl-device-{_physical(number)}-{os.getuid()}.lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _physical(number: int) -> str:
    """Which device of the machine the process sees under a number."""
    visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return visible[number].strip() if number < len(visible) else str(number)
