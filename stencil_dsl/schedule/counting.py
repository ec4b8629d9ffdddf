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
    """

    loads: int
    stores: int
    operations: dict[str, int]
    carried: int

    @property
    def arithmetic(self) -> int:
        """Floating point instructions; negation and absolute value are modifiers of an operand."""
        return sum(n for op, n in self.operations.items() if op not in ("neg", "abs"))


class CountingBuilder(Numbering):
    """A builder whose values are numbers."""

    counting = True

    def __init__(self, arguments: int, shape: Sequence[int], fast: bool) -> None:
        super().__init__(range(arguments), shape, fast)
        self.next = arguments
        self.kinds: Counter[str] = Counter()
        self.operations: Counter[str] = Counter()
        self.products: set[int] = set()
        self.loop_counts: Counts | None = None

    def token(self) -> int:
        self.next += 1
        return self.next

    def _make(self, kind: str, make: Any, hint: str | None = None, outer: bool = False) -> int:
        value = self.token()
        if not outer:
            self.kinds[kind] += 1
        if kind == "map":
            op, args = make
            product = next((a for a in args if a in self.products), None) if op in ("add", "sub") else None
            if product is not None:
                self.products.discard(product)
                self.operations["mul"] -= 1
                op = "fma"
            self.operations[op] += 1
            if op == "mul":
                self.products.add(value)
        return value

    def map_op(self, op: str, args: Sequence[Value]) -> Any:
        return op, args

    def constant(self, value: float) -> Value:
        return ("const", value)

    def splat(self, scalar: Value) -> Value:
        return ("splat", scalar)

    def counts(self, carried: int = 0) -> Counts:
        operations = {k: n for k, n in sorted(self.operations.items()) if n}
        return Counts(self.kinds["load"], self.kinds["store"], operations, carried)

    @contextmanager
    def loop(
        self, low: Value, high: Value, step: int, carried: Sequence[Value], hint: str
    ) -> Iterator[tuple[Value, list[Value], list[Value], list[Value]]]:
        """See `TileBuilder.loop`; what was counted before the loop is forgotten."""
        self.kinds.clear()
        self.operations.clear()
        self.known.append({})
        yield self.token(), [self.token() for _ in carried], [], []
        self.loop_counts = self.counts(len(carried))
        self.known.pop()
