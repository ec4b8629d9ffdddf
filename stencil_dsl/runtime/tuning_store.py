"""Chosen schedules, kept as readable JSON that can be shipped with a program."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf, log2
from pathlib import Path
from typing import Any

from stencil_dsl.errors import StencilError
from stencil_dsl.schedule.expr import Graph, Node
from stencil_dsl.schedule.linear import Coefficient
from stencil_dsl.schedule.plan import Final, make_plan
from stencil_dsl.schedule.schedule import Schedule
from stencil_dsl.schedule.strips import left_over

FORMAT = 1

NEAR = 0.5
"""Octaves, over all axes, within which a shape takes the choice of another."""

EVEN = 0.1
"""How much longer or shorter chunks may become so that they divide the planes; a sixth cost more than it gained."""

SHIPPED = Path(__file__).with_name("tuned.json")
"""Choices that come with the package: the benchmark rows on an H200, written by `python -m repro tune`."""


def graph_hash(graph: Graph) -> str:
    """Identifies what a stencil computes, however it is written, whatever its fields are called and its constants are.

    Sums count as sets of terms, and constants by which of them are equal: that decides what can be shared, and so
    which schedule is best.
    """
    plan = make_plan(graph, fast=True)
    constants: dict[object, int] = {}

    def label(c: Coefficient) -> str:
        return f"{constants.setdefault(abs(c.number), len(constants))}{'' if c.scalar is None else 's'}"

    sums = []
    for total in plan.sums:
        groups = [(sorted(_text(atom) for _, atom in g.members), g.vector) for g in total.groups]
        groups.sort(key=lambda g: (g[0], [dx for dx, _ in g[1]]))
        sums.append([(members, [(dx, label(c)) for dx, c in vector]) for members, vector in groups])
    text = f"{graph.ndim} {sums} {[_final_text(f) for f in plan.finals]}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _final_text(final: Final) -> str:
    if final.kind == "sum":
        return f"sum{final.index}"
    if final.node is not None:
        return _text(final.node)
    return f"{final.kind}({', '.join(map(_final_text, final.args))})"


def _text(node: Node) -> str:
    """An expression with its shared parts numbered and its constants left out."""
    number: dict[int, int] = {}
    lines = []
    stack = [node]
    while stack:
        top = stack[-1]
        missing = [a for a in top.args if a.id not in number]
        if top.id not in number and missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        if top.id not in number:
            number[top.id] = len(number)
            lines.append(f"{top.op} {top.field} {top.offset} {[number[a.id] for a in top.args]}")
    return ";".join(lines)


def shape_class(shape: tuple[int, ...]) -> str:
    """Shapes that want the same schedule: extents to three binary digits, and how rows divide into tiles."""
    digits = [max(0, n.bit_length() - 3) for n in shape]
    sizes = "x".join(str(n >> d << d) for n, d in zip(shape, digits, strict=True))
    width = next((w for w in (256, 128, 64) if shape[-1] % w == 0), 1)
    return f"{sizes}/{width}"


def _apart(a: str, b: str) -> float:
    """Octaves between the extents of two classes, added up; infinite where their rows divide differently."""
    (one, width), (other, same) = a.split("/"), b.split("/")
    extents, others = one.split("x"), other.split("x")
    if width != same or len(extents) != len(others):
        return inf
    return sum(abs(log2(int(n) / int(m))) for n, m in zip(extents, others, strict=True))


def even(schedule: Schedule, planes: int) -> Schedule:
    """A schedule of another shape with chunks that all have one length, where one near its own divides the planes.

    Loops of one length are unrolled by the assembler: star-7 on 510 x 512 x 512 took 0.568 ms in chunks of 34 planes on
    an H200, and 0.599 ms in chunks of 31 and 32.
    """
    if schedule.kind == "shifted" or "x" in schedule.strips or planes % schedule.chunk == 0:
        return schedule
    lengths = [n for n in range(1, planes + 1) if planes % n == 0 and abs(n / schedule.chunk - 1) <= EVEN]
    return schedule.with_(chunk=min(lengths, key=lambda n: (abs(n - schedule.chunk), -n))) if lengths else schedule


def _same_strips(entry: dict[str, Any], shape: tuple[int, ...]) -> bool:
    """Whether what an entry's schedule cuts off is as wide here: a strip of 1 cell says nothing of one of 60."""
    schedule = Schedule.from_json(entry["schedule"])
    return not schedule.strips or left_over(entry.get("shape", shape), schedule) == left_over(shape, schedule)


@dataclass
class TuningStore:
    """Schedules by (stencil, element type, shape class, GPU, toolkit).

    Args:
        path: a JSON file; it need not exist.

    Raises:
        StencilError: where the file is not such a store.
    """

    path: Path
    entries: dict[tuple[str, ...], dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.path = Path(self.path)
        if not self.path.exists():
            return
        try:
            data = json.loads(self.path.read_text())
            if data["format"] != FORMAT:
                raise KeyError("format")
            for entry in data["schedules"]:
                self.entries[self._key(entry)] = entry
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise StencilError(
                f"{self.path} is no tuning store of format {FORMAT}: {error!r}; remove or rename it"
            ) from error

    @staticmethod
    def default() -> TuningStore:
        """The store named by STENCIL_DSL_TUNING, or the user's; behind it stands the one that is shipped."""
        named = os.environ.get("STENCIL_DSL_TUNING")
        if named:
            return TuningStore(Path(named))
        import platformdirs

        return TuningStore(Path(platformdirs.user_data_dir("stencil-dsl")) / "tuning.json")

    @staticmethod
    def _key(entry: dict[str, Any]) -> tuple[str, ...]:
        return tuple(str(entry[k]) for k in ("ir", "dtype", "order", "shape_class", "gpu", "toolkit"))

    def find(
        self, graph: Graph, dtype: str, order: str, shape: tuple[int, ...], gpu: str, toolkit: str
    ) -> Schedule | None:
        """The stored schedule, here or in the store that is shipped.

        One of another toolkit, or of a shape of about the same extents whose rows divide alike and leave as wide
        strips, is better than none.
        """
        wanted = (graph_hash(graph), dtype, order, gpu)
        found = []
        for entry in self.entries.values():
            apart = _apart(shape_class(shape), entry["shape_class"])
            alike = tuple(entry[k] for k in ("ir", "dtype", "order", "gpu")) == wanted and apart <= NEAR
            if alike and _same_strips(entry, shape):
                found.append((apart, entry["toolkit"] != toolkit, entry))
        if found:
            best = min(found, key=lambda f: f[:2])[2]
            schedule = Schedule.from_json(best["schedule"])
            return schedule if best.get("shape") == list(shape) else even(schedule, shape[0])
        if self.path == SHIPPED:
            return None
        return TuningStore(SHIPPED).find(graph, dtype, order, shape, gpu, toolkit)

    def put(
        self,
        name: str,
        graph: Graph,
        dtype: str,
        shape: tuple[int, ...],
        gpu: str,
        toolkit: str,
        schedule: Schedule,
        facts: dict[str, Any],
    ) -> None:
        """Add or replace an entry and write the file, keeping what others have added meanwhile."""
        entry = {
            "stencil": name,
            "ir": graph_hash(graph),
            "dtype": dtype,
            "order": schedule.order,
            "shape_class": shape_class(shape),
            "gpu": gpu,
            "toolkit": toolkit,
            "schedule": schedule.to_json(),
            **facts,
        }
        if self.path.exists():
            self.entries = {**TuningStore(self.path).entries, **self.entries}
        self.entries[self._key(entry)] = entry
        self._write(self.entries.values())

    def _write(self, entries: Iterable[dict[str, Any]]) -> None:
        ordered = sorted(entries, key=lambda e: (e["gpu"], e["stencil"], e["dtype"], e["shape_class"], e["order"]))
        text = json.dumps({"format": FORMAT, "schedules": ordered}, indent=1) + "\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=".tuning-")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
            os.replace(temporary, self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
