"""Sequences known while reading: loops over them, comprehensions, and sums."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from stencil_dsl.frontend.operators import OperatorReader
from stencil_dsl.frontend.values import Intrinsic, Node, describe

# More unrolled turns than this, in all loops of a stencil, are almost surely a mistake.
MAX_TURNS = 10_000
SEQUENCES = ("range", "enumerate", "zip", "tuple", "list")


class SequenceReader(OperatorReader):
    """Adds sequences to the expressions of a frame."""

    def read_sum(self, node: ast.Call) -> Any:
        """Python's sum: from the start value, or 0, from left to right; 0 + a is a."""
        if node.args and len(node.args) <= 2 and all(k.arg == "start" for k in node.keywords):
            starts = [*node.args[1:], *(k.value for k in node.keywords)]
            if len(starts) <= 1:
                items = self.iterate(node.args[0])
                total = self.number(starts[0]) if starts else 0
                for item in items:
                    if type(total) is int and total == 0:
                        total = self.as_number(item, node.args[0])
                    else:
                        total = self.binary(ast.Add(), total, item, node, node, node.args[0])
                return total
        raise self.error(node, "'sum' takes one sequence", "write sum(... for k in range(...)), or a + b")

    def read_sequence(self, target: Intrinsic, node: ast.Call) -> tuple[Any, ...]:
        """The items of range, enumerate, zip, tuple and list, all known now."""
        if target.name == "range":
            return self._range(node)
        count = 1 if target.name == "enumerate" else len(node.args)
        parts = [*map(self.iterate, node.args[:count]), *map(self._integer, node.args[count:])]
        keywords = {k.arg or "**": self._integer(k.value) for k in node.keywords}
        try:
            return tuple(target.fold(*parts, **keywords))
        except (TypeError, ValueError) as problem:
            raise self.error(node, str(problem), "use constant sequences") from None

    def _integer(self, node: ast.expr) -> int:
        value = self.expression(node)
        if not isinstance(value, int):
            raise self.error(node, f"{describe(value)} where an integer is needed", "use an integer constant")
        return value

    def _range(self, node: ast.Call) -> tuple[int, ...]:
        if node.keywords:
            raise self.error(node.keywords[0].value, "keyword argument of 'range'", "pass it by position")
        bounds = [self.expression(arg) for arg in node.args]
        for bound, arg in zip(bounds, node.args, strict=True):
            if type(bound) is not int:
                what = "a run-time value" if isinstance(bound, Node) else describe(bound)
                if isinstance(bound, float):
                    what = f"the float {bound}"
                raise self.error(arg, f"a bound of range is {what}", "loop bounds are integer constants: range(1, 5)")
        try:
            trips = range(*bounds)
        except (TypeError, ValueError) as problem:
            raise self.error(node, str(problem), "write range(start, stop)") from None
        if len(trips) > MAX_TURNS:
            raise self.error(
                node, f"a loop of {len(trips)} turns would be unrolled", f"keep it within {MAX_TURNS} turns"
            )
        return tuple(trips)

    def iterate(self, node: ast.expr) -> tuple[Any, ...]:
        """The items of a sequence that is known now."""
        if isinstance(node, ast.GeneratorExp | ast.ListComp):
            return tuple(self._comprehension(node, 0))
        value = self.expression(node)
        if not isinstance(value, tuple):
            raise self.error(
                node,
                f"{describe(value)} is not a sequence",
                "use range(...) with constant bounds, or a tuple or list of constants",
            )
        return value

    def read_ListComp(self, node: ast.ListComp) -> tuple[Any, ...]:
        return self.iterate(node)

    def _comprehension(self, node: ast.GeneratorExp | ast.ListComp, depth: int) -> Iterator[Any]:
        """Items in Python's order; the variables live in the comprehension only."""
        if depth == len(node.generators):
            yield self.expression(node.elt)
            return
        clause = node.generators[depth]
        items = self.iterate(clause.iter)
        outer, assigned = dict(self.frame.env), set(self.frame.assigned)
        for item in items:
            self.turn(clause.iter)
            self.bind(clause.target, item)
            if all(self._static(test) for test in clause.ifs):
                yield from self._comprehension(node, depth + 1)
        self.frame.env.clear()
        self.frame.env.update(outer)
        self.frame.assigned = assigned

    def turn(self, at: ast.expr) -> None:
        """Count one turn of a loop that is unrolled."""
        self.frame.turns[0] += 1
        if self.frame.turns[0] > MAX_TURNS:
            raise self.error(
                at,
                f"loops of more than {MAX_TURNS} turns in all",
                "unroll less: kernels are straight code",
            )

    def _static(self, test: ast.expr) -> bool:
        value = self.condition(test)
        if not isinstance(value, bool):
            raise self.error(
                test, "this condition is known at run time only", "choose values with where(condition, a, b)"
            )
        return value

    def bind(self, target: ast.expr, value: Any) -> None:
        """Assign a value to a variable or unpack it into several."""
        raise NotImplementedError
