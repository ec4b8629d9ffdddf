"""What a schedule would emit in the steady state, counted without making any operation.

Lowering hundreds of candidates to rank them takes minutes; counting them takes the same path through the lowering with
a builder whose values are numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from stencil_dsl.schedule.builder import Numbering, Value


@dataclass(frozen=True)
class Counts:
    """Operations on whole tiles in one trip of the main loop (or in the body where there is none).

    Attributes:
        loads, stores: tile loads and stores.
        operations: elementwise operations by name; "fma" counts a product with the addition that takes it.
        carried: tiles carried through the loop.
        live: most elements a thread holds at a time where operations stay in the order they are written in, over the
            elements of a compute tile that it owns; carried ones included.
        gathers: shuffle schedules: loads of what lies beyond a warp's ends, an element a lane.
        shuffles: shuffle schedules: values that a lane gets from another one.
    """

    loads: int
    stores: int
    operations: dict[str, int]
    carried: int
    live: int = 0
    gathers: int = 0
    shuffles: int = 0

    @property
    def arithmetic(self) -> int:
        """Floating point instructions; negation and absolute value are modifiers of an operand."""
        return sum(n for op, n in self.operations.items() if op not in ("neg", "abs"))

    @property
    def calls(self) -> float:
        """Operations that become a subroutine, in divisions."""
        return sum(CALLS.get(op, 0.0) * n for op, n in self.operations.items())


CALLS = {"div": 1.0, "sqrt": 1.0, "exp": 1.5, "log": 1.5, "tanh": 3.0, "sin": 3.0, "cos": 3.0, "tan": 4.0, "pow": 6.0}
"""Roughly how long operations take that are no single instruction, in divisions."""


class CountingBuilder(Numbering):
    """A builder whose values are numbers."""

    counting = True

    def __init__(self, arguments: int, shape: Sequence[int], fast: bool, pair: int = 1) -> None:
        super().__init__(range(arguments), shape, fast)
        self.next = arguments
        self.kinds: Counter[str] = Counter()
        self.operations: Counter[str] = Counter()
        self.products: set[int] = set()
        self.loop_counts: Counts | None = None
        self.pair = pair
        self.lanes: dict[int, int] = {}
        self.joined: dict[int, list[int]] = {}
        # In the order of making: the widths of values, and where each is used last.
        self.width: dict[int, int] = {}
        self.born: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.time = 0

    def token(self) -> int:
        self.next += 1
        return self.next

    def _make(self, kind: str, make: Any, hint: str | None = None, outer: bool = False) -> int:
        value = self.token()
        self.time += 1
        if not outer:
            self.kinds[kind] += 1
        if kind in ("load", "gather"):
            self._holds(value, self.pair if kind == "load" else 1)
        if kind == "shuffle":
            for arg in make:
                self._use(arg)
            self._holds(value, 1)
        if kind == "map":
            op, args = make
            for arg in args:
                self._use(arg)
            self._holds(value, 1)
            product = next((a for a in args if a in self.products), None) if op in ("add", "sub") else None
            if product is not None:
                self.products.discard(product)
                self.operations["mul"] -= 1
                op = "fma"
            self.operations[op] += 1
            if op == "mul":
                self.products.add(value)
        return value

    def _holds(self, value: int, width: int) -> None:
        self.born[value], self.width[value], self.last[value] = self.time, width, self.time

    def _use(self, value: Value) -> None:
        # A lane of a pair is in the pair's registers.
        raw = self.lanes.get(value, value) if isinstance(value, int) else None
        if raw in self.last:
            self.last[raw] = self.time

    def extract(self, raw: Value, part: int) -> Value:
        value = super().extract(raw, part)
        self.lanes[value] = raw
        return value

    def cat(self, lhs: Value, rhs: Value, axis: int) -> Value:
        value = super().cat(lhs, rhs, axis)
        self.joined[value] = [*self.joined.get(lhs, [lhs]), *self.joined.get(rhs, [rhs])]
        return value

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        result = super().reshape(value, shape)
        self.joined[result] = self.joined.get(value, [value])
        return result

    def shuffle(self, row: Value, halo: Value, distance: int) -> Value:
        """A row's element that lies some lanes away, or the halo's."""
        return self.once("shuffle", (row, halo, distance), (row, halo))  # type: ignore[arg-type]

    def joined_row(self, values: Sequence[Value]) -> Value:
        """A row of one element after the other."""
        row = self.token()
        self.joined[row] = list(values)
        return row

    def store(self, value: Value, view: Value, index: Sequence[Value], checked: bool) -> None:
        super().store(value, view, index, checked)
        for part in self.joined.get(value, [value]):
            self._use(part)

    def _live(self) -> int:
        """The most that is held at a time."""
        changes: Counter[int] = Counter()
        for value, born in self.born.items():
            changes[born] += self.width[value]
            changes[self.last[value] + 1] -= self.width[value]
        most = now = 0
        for _, change in sorted(changes.items()):
            now += change
            most = max(most, now)
        return most

    def map_op(self, op: str, args: Sequence[Value]) -> Any:
        return op, args

    def constant(self, value: float) -> Value:
        return ("const", value)

    def splat(self, scalar: Value) -> Value:
        return ("splat", scalar)

    def counts(self, carried: int = 0) -> Counts:
        operations = {k: n for k, n in sorted(self.operations.items()) if n}
        kinds = self.kinds
        return Counts(
            kinds["load"], kinds["store"], operations, carried, self._live(), kinds["gather"], kinds["shuffle"]
        )

    @contextmanager
    def loop(
        self, low: Value, high: Value, step: int, carried: Sequence[Value], hint: str
    ) -> Iterator[tuple[Value, list[Value], list[Value], list[Value]]]:
        """See `TileBuilder.loop`; what was counted before the loop is forgotten."""
        self.kinds.clear()
        self.operations.clear()
        self.known.append({})
        self.born.clear()
        self.last.clear()
        index, values, ends = self.token(), [self.token() for _ in carried], []  # type: ignore[var-annotated]
        for value in values:
            self._holds(value, 1)
        yield index, values, ends, []
        self.time += 1
        for value in ends:
            self._use(value)
        self.loop_counts = self.counts(len(carried))
        self.known.pop()
