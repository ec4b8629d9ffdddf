"""Leaves of expressions: literals, names, attributes, sequences and accesses to fields."""

from __future__ import annotations

import ast
import types
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stencil_dsl.errors import FrontendError
from stencil_dsl.frontend.names import convert, is_math_module, lookup
from stencil_dsl.frontend.source_text import FunctionSource, Span
from stencil_dsl.frontend.values import (
    FieldRef,
    IndexRef,
    Node,
    constant,
    describe,
    is_condition,
    is_number,
)

OFFSET_ADVICE = "write an index plus an integer constant, as in u[i + 1]"
NUMBER_ADVICE = "choose numbers with where(condition, a, b) or `a if condition else b`"
CONDITION_ADVICE = "compare explicitly, as in `a != 0`"


@dataclass
class Frame:
    """One function while it is read: its text and variables, the stencil's index names by axis, and the
    calls that led here as (name of the function, place of the call). `turns` counts loop turns, over all
    frames of a stencil."""

    source: FunctionSource
    env: dict[str, Any]
    indices: tuple[str, ...]
    calls: tuple[tuple[str, Span], ...] = ()
    stack: tuple[types.CodeType, ...] = ()
    turns: list[int] = field(default_factory=lambda: [0])
    assigned: set[str] = field(default_factory=set)

    def span(self, node: ast.AST) -> Span:
        return self.source.span(node)

    def error(self, node: ast.AST, message: str, advice: str = "") -> FrontendError:
        return self.at(self.span(node), message, advice)

    def at(self, span: Span, message: str, advice: str = "") -> FrontendError:
        trail = "".join(f" (in '{name}', called at {place.short})" for name, place in reversed(self.calls))
        return span.error(message + trail, advice)


class ExpressionReader:
    """Evaluates expressions in one frame; subclasses add operators, calls and statements."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.in_subscript = False

    def error(self, node: ast.AST, message: str, advice: str = "") -> FrontendError:
        return self.frame.error(node, message, advice)

    def span(self, node: ast.AST) -> Span:
        return self.frame.span(node)

    # -- entry points -------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> Any:
        """The value of an expression: number, condition, node, field, index, sequence or function."""
        method = getattr(self, f"read_{type(node).__name__}", None)
        if method is None:
            raise self.error(
                node,
                f"{_construct(node)} is not part of a stencil",
                "use arithmetic, comparisons, conditional expressions and calls of known functions",
            )
        return method(node)

    def number(self, node: ast.expr) -> Any:
        """The value of an expression that must be a number (compile-time or run-time)."""
        return self.as_number(self.expression(node), node)

    def condition(self, node: ast.expr) -> Any:
        """The value of an expression that must be a condition (bool or boolean node)."""
        value = self.expression(node)
        if is_condition(value):
            return value
        if isinstance(value, FieldRef | IndexRef):
            self.as_number(value, node)
        raise self.error(node, f"{describe(value)} is used as a condition", CONDITION_ADVICE)

    def as_number(self, value: Any, node: ast.AST) -> Any:
        if is_condition(value):
            raise self.error(node, "a comparison is used as a number", NUMBER_ADVICE)
        if isinstance(value, Node) or is_number(value):
            return value
        if isinstance(value, FieldRef):
            raise self.error(
                node,
                f"field '{value.name}' is read without indices",
                f"index it, as in {value.name}[...]; a run-time scalar stands behind all fields",
            )
        if isinstance(value, IndexRef):
            raise self.error(
                node,
                f"index '{value.name}' is used as a value",
                "indices only name places, as in u[i + 1]; store coordinates in a field",
            )
        raise self.error(node, f"{describe(value)} is used as a number", "use a number here")

    def node(self, value: Any, at: ast.AST) -> Node:
        """The graph node of a number."""
        if isinstance(value, Node):
            return value
        try:
            return constant(value, self.frame.span(at))
        except FrontendError as problem:
            raise self.error(at, problem.message, problem.advice) from None

    # -- leaves -------------------------------------------------------------------------------

    def read_Constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, bool | int | float):
            return node.value
        kind = "complex numbers" if isinstance(node.value, complex) else f"{type(node.value).__name__} values"
        raise self.error(node, f"{kind} are not part of a stencil", "use real numbers")

    def read_Name(self, node: ast.Name) -> Any:
        if node.id in self.frame.env:
            return self.frame.env[node.id]
        if node.id in self.frame.source.variables:
            raise self.error(node, f"variable '{node.id}' has no value here", "assign it on every way that leads here")
        found, value = lookup(self.frame.source.fn, node.id)
        if not found:
            raise self.error(
                node,
                f"unknown name '{node.id}'",
                "define it above the stencil, or make it a parameter",
            )
        try:
            return convert(value, self.frame.span(node), node.id)
        except FrontendError as problem:
            raise self.error(node, problem.message, problem.advice) from None

    def read_Attribute(self, node: ast.Attribute) -> Any:
        base: Any = self.expression(node.value) if isinstance(node.value, ast.Name) else None
        if not is_math_module(base):
            raise self.error(
                node,
                f"attribute access '{ast.unparse(node)}'",
                "only functions and constants of math and numpy are reached with a dot; "
                "copy other values into a module constant",
            )
        if not hasattr(base, node.attr):
            raise self.error(node, f"module {base.__name__} has no '{node.attr}'", "use a known function")
        value = getattr(base, node.attr)
        try:
            return convert(value, self.frame.span(node), ast.unparse(node))
        except FrontendError as problem:
            raise self.error(node, problem.message, problem.advice) from None

    def read_Tuple(self, node: ast.Tuple | ast.List) -> tuple[Any, ...]:
        for item in node.elts:
            if isinstance(item, ast.Starred):
                raise self.error(item, "a starred expression is not part of a stencil", "write the parts out")
        return tuple(self.expression(item) for item in node.elts)

    read_List = read_Tuple

    # -- subscripts ---------------------------------------------------------------------------

    def read_Subscript(self, node: ast.Subscript) -> Any:
        base = self.expression(node.value)
        if isinstance(base, FieldRef):
            return self._access(base, node)
        if isinstance(base, tuple):
            position = self.expression(node.slice)
            if not is_number(position) or not isinstance(position, int):
                raise self.error(node.slice, "a sequence needs an integer constant as index", "use C[0]")
            try:
                return base[position]
            except IndexError:
                raise self.error(
                    node.slice,
                    f"index {position} is outside a sequence of {len(base)}",
                    f"use 0 to {len(base) - 1}",
                ) from None
        raise self.error(node, f"{describe(base)} is indexed", "only fields and constant sequences are")

    def _access(self, base: FieldRef, node: ast.Subscript) -> Node:
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        read = [self._offset(entry) for entry in entries]
        names = self.frame.indices
        if len(read) > len(names):
            raise self.error(
                node,
                f"field '{base.name}' is read with {len(read)} indices in a stencil over {', '.join(names)}",
                f"write {base.name}[{', '.join(names)}] with constant offsets",
            )
        for position, (entry, index) in enumerate(zip(entries, read, strict=True)):
            wrong = index.axis != position if len(read) == len(names) else index.axis <= (-1, *_axes(read))[position]
            if wrong:
                place = f"at the place of '{names[position]}'" if len(read) == len(names) else "out of order"
                raise self.error(
                    entry,
                    f"index '{index.name}' stands {place}: transposed or repeated indices",
                    f"write the indices in the order {', '.join(names)}",
                )
            if index.half != (index.name in base.staggered):
                raise self._misplaced(base, entry, index)
        self._check_axes(base, node, _axes(read))
        offsets = [0] * len(names)
        for index in read:
            offsets[index.axis] = index.offset
        return Node("access", base.name, (), self.span(node), tuple(offsets))

    def _check_axes(self, base: FieldRef, node: ast.Subscript, axes: tuple[int, ...]) -> None:
        """A field that is read with fewer indices does not vary along the others, so all its reads must agree."""
        names = self.frame.indices
        missing = [n for n in base.staggered if names.index(n) not in axes]
        if missing:
            raise self.error(
                node,
                f"field '{base.name}' lies between the points along '{missing[0]}', which is not among its indices",
                f"write {base.name}[{', '.join(names)}] with constant offsets",
            )
        base.read.setdefault(axes, self.span(node))
        other = next(iter(base.read))
        if other != axes:
            both = [f"[{', '.join(names[a] for a in each)}]" for each in (axes, other)]
            raise self.error(
                node,
                f"field '{base.name}' is read as {base.name}{both[0]} here and as {base.name}{both[1]} at"
                f" {base.read[other].short}",
                "read a field with the same indices everywhere; those that are left out it does not vary along",
            )

    def _misplaced(self, base: FieldRef, entry: ast.expr, index: IndexRef) -> FrontendError:
        if index.half:
            return self.error(
                entry,
                f"field '{base.name}' has no values between the points along '{index.name}'",
                f"read it at whole offsets, or declare it: {base.name}: Staggered[{index.axis}]",
            )
        return self.error(
            entry,
            f"field '{base.name}' has its values between the points along '{index.name}'",
            f"read it at {index.name} + half or {index.name} - half",
        )

    def _offset(self, entry: ast.expr) -> IndexRef:
        if isinstance(entry, ast.Slice):
            raise self.error(entry, "a slice is not part of a stencil", OFFSET_ADVICE)
        outer, self.in_subscript = self.in_subscript, True
        value = self.expression(entry)
        self.in_subscript = outer
        if isinstance(value, IndexRef):
            return value
        if is_number(value):
            raise self.error(entry, f"the place {value} is absolute", OFFSET_ADVICE)
        raise self.error(entry, "this subscript is not an index plus a constant", OFFSET_ADVICE)


def _axes(indices: Sequence[IndexRef]) -> tuple[int, ...]:
    return tuple(index.axis for index in indices)


def _construct(node: ast.AST) -> str:
    names = {
        "Lambda": "a lambda",
        "NamedExpr": "an assignment inside an expression",
        "Dict": "a dictionary",
        "Set": "a set",
        "JoinedStr": "a formatted string",
        "Starred": "a starred expression",
        "Await": "await",
        "Yield": "yield",
        "YieldFrom": "yield",
        "GeneratorExp": "a generator outside sum(...)",
        "DictComp": "a dictionary comprehension",
        "SetComp": "a set comprehension",
    }
    return names.get(type(node).__name__, type(node).__name__)
