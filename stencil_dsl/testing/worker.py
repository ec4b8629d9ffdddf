"""Measures groups in a process of its own, which is replaced when a variant breaks it.

A launch that faults leaves its CUDA context unusable, and one that hangs never returns; neither may cost the
other variants their numbers. The parent knows from the last announcement which variant was at work.
"""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from stencil_dsl.testing.question import Prepared, Target
from stencil_dsl.testing.reference import QuestionRef

#: Starting covers the interpreter, CuPy, the context and the modules of the question.
START_LIMIT_S = 180.0
#: Compiling a variant, a choice among many schedules included.
COMPILE_LIMIT_S = 1800.0


@dataclass(frozen=True)
class Task:
    """A group to measure: (variant id, toolkit) pairs of one question."""

    question: QuestionRef
    members: tuple[tuple[str, str | None], ...]
    arch: str
    rounds: int


class Fault(Exception):
    """The worker died or hung; `member` is the variant at work, None when it happened outside any."""

    def __init__(self, member: str | None, reason: str) -> None:
        super().__init__(reason)
        self.member = member
        self.reason = reason


def member_name(variant: str, toolkit: str | None) -> str:
    """How a member is called in messages and samples."""
    return variant if toolkit is None else f"{variant}@{toolkit}"


class Worker:
    """A process with a device; started when first needed."""

    def __init__(self, device_spec: str, number: int) -> None:
        self._spec, self._number = device_spec, number
        self._process: Any = None
        self._pipe: Connection | None = None

    def measure(
        self, task: Task, progress: Callable[[str, str], None] = lambda m, s: None
    ) -> dict[str, dict[str, Any]]:
        """Outcome of every member: ``{"facts", "values", "samples", ...}`` or ``{"failure": reason}``.

        A member that breaks the process is recorded as failed and the others are measured again without it.
        """
        outcomes: dict[str, dict[str, Any]] = {}
        left = list(task.members)
        while left:
            try:
                outcomes.update(self._attempt(Task(task.question, tuple(left), task.arch, task.rounds), progress))
                break
            except Fault as fault:
                self.stop()
                names = [member_name(*member) for member in left]
                if fault.member not in names:
                    outcomes.update({name: {"failure": fault.reason} for name in names})
                    break
                outcomes[fault.member] = {"failure": fault.reason}
                left = [member for member in left if member_name(*member) != fault.member]
        return outcomes

    def _attempt(self, task: Task, progress: Callable[[str, str], None]) -> dict[str, dict[str, Any]]:
        pipe = self._start()
        pipe.send(task)
        at_work: str | None = None
        stage, limit = "start", START_LIMIT_S
        while True:
            try:
                if not pipe.poll(limit):
                    raise Fault(at_work, f"no answer within {limit:g} s ({stage})")
                message = pipe.recv()
            except (EOFError, ConnectionError):
                raise Fault(at_work, f"the process ended ({stage}), exit code {self._exit_code()}") from None
            kind = message[0]
            if kind == "at":
                _, at_work, stage, limit = message
                progress(at_work, stage)
            elif kind == "fault":
                raise Fault(at_work, message[1])
            elif kind == "done":
                return message[1]

    def _start(self) -> Connection:
        if self._pipe is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs, self._spec, self._number), daemon=True)
            self._process.start()
            theirs.close()
        return self._pipe

    def _exit_code(self) -> int | None:
        self._process.join(5)
        return self._process.exitcode

    def stop(self) -> None:
        """Ends the process, by force where it hangs."""
        if self._process is None:
            return
        assert self._pipe is not None
        self._pipe.close()
        self._process.join(0.5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(10)
        self._process, self._pipe = None, None


def _serve(pipe: Connection, device_spec: str, number: int) -> None:
    """The worker's loop: a task in, announcements and outcomes out, until the pipe closes."""
    from stencil_dsl.testing.device import device_class

    device: Any = None
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        try:
            if device is None:
                device = device_class(device_spec)(number)  # type: ignore[call-arg]
            outcome = measure_group(device, task, lambda *message: pipe.send(("at", *message)))
            device.release()
            pipe.send(("done", outcome))
        except BaseException as error:
            # The context may be unusable; a fresh process is the only state known to be good.
            pipe.send(("fault", _reason(error)))
            return


def measure_group(device: Any, task: Task, announce: Callable[[str, str, float], None]) -> dict[str, dict[str, Any]]:
    """Compiles every member and checks its values, then times those that are right, interleaved.

    Facts are read here and not by the parent: lowering a wide stencil takes seconds, and the kernel is made once.
    """
    from stencil_dsl.testing.bench import Bench, check_values
    from stencil_dsl.testing.sampling import sample

    question = task.question.resolve()
    limit = question.limit_s
    outcomes: dict[str, dict[str, Any]] = {}
    ready: dict[str, Prepared] = {}
    shared: dict[Any, Any] = {}
    for variant, toolkit in task.members:
        name = member_name(variant, toolkit)
        asked, target = question.variant(variant), Target(task.arch, toolkit)
        outcomes[name] = {}
        try:
            announce(name, "compile", COMPILE_LIMIT_S)
            outcomes[name]["facts"] = asked.compile_facts(target)
            announce(name, "check", question.prepare_limit_s)
            prepared = asked.prepare(Bench(device, question, target, shared))
            values = check_values(device, question, prepared)
        except Exception as error:
            device.synchronize()  # raises when the context is gone: then the whole process is replaced
            outcomes[name]["failure"] = _reason(error)
            continue
        outcomes[name] |= {"values": values, "device_facts": prepared.facts}
        if values is None or values["ok"]:
            ready[name] = prepared
    if ready:
        started = time.time()
        taken = sample(
            device,
            ready,
            task.rounds,
            nbytes=question.bytes,
            announce=lambda name, stage: announce(name, stage, limit),
        )
        common = {key: taken[key] for key in ("l2", "dropped", "throttled")}
        for name, samples in taken["samples"].items():
            outcomes[name] |= {"samples": samples, "run": f"{question.id}@{started:.3f}", **common}
    return outcomes


def _reason(error: BaseException) -> str:
    """The error in a few lines: what it says and where it came from."""
    frames: Sequence[traceback.FrameSummary] = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].name}, line {frames[-1].lineno})" if frames else ""
    text = str(error).strip() or "no message"
    return f"{type(error).__name__}: {text[:2000]}{place}"
