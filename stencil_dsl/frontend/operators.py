"""Operators of expressions: arithmetic, comparisons, conditions and choices.

Whatever is known now follows Python's own arithmetic; the rest becomes nodes of the graph.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from stencil_dsl.frontend.expressions import OFFSET_ADVICE, ExpressionReader
from stencil_dsl.frontend.values import Half, IndexRef, Node, describe, is_condition, is_number

_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
    ast.Pow: ("pow", operator.pow),
}
_CONSTANT_ONLY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
}
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
}
_SYMBOLS: dict[type[ast.operator], str] = {
    ast.MatMult: "@",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.BitAnd: "&",
}
# Beyond this size an integer cannot become a float64 anyway; refusing early keeps 9**9**9 from hanging.
_MAX_BITS = 4096


class OperatorReader(ExpressionReader):
    """Adds operators to the leaves."""

    def read_BinOp(self, node: ast.BinOp) -> Any:
        # Sums of hundreds of terms are left-deep trees: walk the spine instead of recursing into it.
        spine = [node]
        while isinstance(spine[-1].left, ast.BinOp):
            spine.append(spine[-1].left)
        value = self.expression(spine[-1].left)
        for step in reversed(spine):
            value = self.binary(step.op, value, self.expression(step.right), step, step.left, step.right)
        return value

    def binary(self, op: ast.operator, left: Any, right: Any, at: ast.AST, at_left: ast.AST, at_right: ast.AST) -> Any:
        """One arithmetic operation; `at` is the whole, `at_left` and `at_right` the operands' places."""
        if isinstance(left, IndexRef) or isinstance(right, IndexRef):
            return self._shift(op, left, right, at, at_left, at_right)
        left, right = self.as_number(left, at_left), self.as_number(right, at_right)
        static = is_number(left) and is_number(right)
        if type(op) in _CONSTANT_ONLY:
            symbol, fold = _CONSTANT_ONLY[type(op)]
            if not static:
                raise self.error(at, f"operator {symbol} on run-time values", "use floor(a / b), or constants only")
            return self.fold(fold, (left, right), at)
        if type(op) not in _BINARY:
            raise self.error(at, f"operator {_SYMBOLS.get(type(op), '?')} is not part of a stencil", "use + - * / **")
        kind, fold = _BINARY[type(op)]
        if kind == "div" and is_number(right) and right == 0:
            raise self.error(at, "division by the constant zero", "divide by something else")
        if static:
            return self.fold(fold, (left, right), at)
        return Node("binary", kind, (self.node(left, at_left), self.node(right, at_right)), self.span(at))

    def _shift(
        self, op: ast.operator, left: Any, right: Any, at: ast.AST, at_left: ast.AST, at_right: ast.AST
    ) -> IndexRef:
        """An index plus or minus an integer constant."""
        index, offset, at_offset = left, right, at_right
        if not isinstance(left, IndexRef):
            index, offset, at_offset = right, left, at_left
        legal = isinstance(op, ast.Add) or (isinstance(op, ast.Sub) and index is left)
        run_time = isinstance(offset, Node) and not self.in_subscript
        if not legal or isinstance(offset, IndexRef) or run_time:
            self.as_number(index, at)
        if isinstance(offset, Node) and not offset.is_boolean:
            raise self.error(at_offset, f"the offset from '{index.name}' is not a constant", OFFSET_ADVICE)
        sign = 1 if isinstance(op, ast.Add) else -1
        if isinstance(offset, Half):
            return index.moved_by_half(sign)
        if not is_number(offset):
            raise self.error(at_offset, f"{describe(offset)} is used as an offset", OFFSET_ADVICE)
        if not isinstance(offset, int):
            raise self.error(
                at_offset,
                f"the offset {offset} from '{index.name}' is a float",
                OFFSET_ADVICE + "; divide integers with //",
            )
        if abs(offset) >= 2**31:
            raise self.error(at_offset, f"the offset {offset} overflows", OFFSET_ADVICE)
        return replace(index, offset=index.offset + sign * offset)

    def fold(self, fold: Callable[..., Any], args: tuple[Any, ...], at: ast.AST) -> int | float:
        """Python's own result for compile-time numbers."""
        if fold is operator.pow and all(isinstance(a, int) for a in args):
            base, exponent = args
            if exponent > 0 and abs(base) > 1 and base.bit_length() * exponent > _MAX_BITS:
                raise self.error(at, "this integer power overflows float64", "keep constants within 1.8e308")
        try:
            value = fold(*args)
        except ZeroDivisionError:
            raise self.error(at, "division by the constant zero", "divide by something else") from None
        except OverflowError:
            raise self.error(at, "this constant overflows float64", "keep constants within 1.8e308") from None
        except (ValueError, TypeError) as problem:
            raise self.error(at, f"this constant has no value: {problem}", "use other constants") from None
        if hasattr(value, "item"):
            value = value.item()
        if not is_number(value):
            raise self.error(at, f"this constant is a {type(value).__name__}", "use real numbers")
        return value

    def read_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            value = self.condition(node.operand)
            return (not value) if isinstance(value, bool) else self._not(value, node)
        value = self.number(node.operand)
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Invert):
            raise self.error(node, "operator ~ is not part of a stencil", "use `not` on conditions")
        return -value if is_number(value) else Node("unary", "neg", (value,), self.span(node))

    def _not(self, value: Node, at: ast.AST) -> Node:
        return Node("unary", "not", (value,), self.span(at))

    # -- conditions ---------------------------------------------------------------------------

    def read_Compare(self, node: ast.Compare) -> Any:
        left, at_left = self.number(node.left), node.left
        result: Any = True
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            if type(op) not in _COMPARE:
                raise self.error(node, "`in` and `is` are not part of a stencil", "use < <= > >= == !=")
            kind, fold = _COMPARE[type(op)]
            right = self.number(comparator)
            if is_number(left) and is_number(right):
                one: Any = fold(left, right)
            else:
                one = Node("compare", kind, (self.node(left, at_left), self.node(right, comparator)), self.span(node))
            result = self.both("and", result, one, node)
            left, at_left = right, comparator
        return result

    def read_BoolOp(self, node: ast.BoolOp) -> Any:
        kind = "and" if isinstance(node.op, ast.And) else "or"
        result = self.condition(node.values[0])
        for operand in node.values[1:]:
            if result is (kind == "or"):  # Python does not look at the rest either
                return result
            result = self.both(kind, result, self.condition(operand), node)
        return result

    def both(self, kind: str, left: Any, right: Any, at: ast.AST) -> Any:
        """`left and right` or `left or right`, where either may be known already."""
        neutral = kind == "and"
        for one, other in ((left, right), (right, left)):
            if isinstance(one, bool):
                return other if one is neutral else one
        return Node("boolean", kind, (left, right), self.span(at))

    def read_IfExp(self, node: ast.IfExp) -> Any:
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            return self.expression(node.body if condition else node.orelse)
        return self.select(condition, self.expression(node.body), self.expression(node.orelse), node)

    def select(self, condition: Any, first: Any, second: Any, at: ast.AST) -> Any:
        """The choice between two values; both are evaluated, as everything in a stencil is."""
        if isinstance(condition, bool):
            return first if condition else second
        if first is second:
            return first
        if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
            return tuple(self.select(condition, a, b, at) for a, b in zip(first, second, strict=True))
        if is_condition(first) and is_condition(second):
            return self.both(
                "or",
                self.both("and", condition, first, at),
                self.both("and", self._not(condition, at), second, at),
                at,
            )
        chosen = (self.node(self.as_number(value, at), at) for value in (first, second))
        return Node("select", "", (condition, *chosen), self.span(at))
