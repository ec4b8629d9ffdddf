"""Calls: the known functions, and inlining of the user's own."""

from __future__ import annotations

import ast
import inspect
import types
from typing import Any

from stencil_dsl.errors import FrontendError
from stencil_dsl.frontend.expressions import Frame
from stencil_dsl.frontend.names import FUNCTIONS, UNARY, convert
from stencil_dsl.frontend.sequences import SEQUENCES, SequenceReader
from stencil_dsl.frontend.source_text import find_source
from stencil_dsl.frontend.values import Intrinsic, Node, describe, is_number


class CallReader(SequenceReader):
    """Adds calls to the expressions of a frame."""

    def run_body(self) -> Any:
        """Read the frame's function body and give the value it returns (see StatementReader)."""
        raise NotImplementedError

    def read_Call(self, node: ast.Call) -> Any:
        target = self._target(node)
        if isinstance(target, types.FunctionType):
            return self._inline(target, node)
        if not isinstance(target, Intrinsic):
            raise self.error(node.func, f"{describe(target)} is called", "call a function")
        name = target.name
        if name == "sum":
            return self.read_sum(node)
        if name in SEQUENCES:
            return self.read_sequence(target, node)
        args = self._arguments(target, node)
        if name in ("min", "max", "minimum", "maximum"):
            return self._extremum(target, args, node)
        if name == "where":
            self._arity(node, target, 3)
            return self.select(self._as_condition(args[0], node.args[0]), args[1], args[2], node)
        if name == "pow":
            self._arity(node, target, 2)
            return self.binary(ast.Pow(), args[0], args[1], node, node.args[0], node.args[1])
        if name in UNARY:
            return self._unary(target, args, node)
        return self._conversion(target, args, node)

    def _target(self, node: ast.Call) -> Any:
        try:
            return self.expression(node.func)
        except FrontendError as problem:
            if isinstance(node.func, ast.Name) and problem.message.startswith("unknown name"):
                raise self.error(
                    node.func,
                    f"unknown function '{node.func.id}'",
                    f"known are {', '.join(FUNCTIONS)} and Python functions defined above the stencil",
                ) from None
            raise

    def _arguments(self, target: Intrinsic, node: ast.Call) -> list[Any]:
        """Evaluated arguments; one sequence stands for its items where Python has it so."""
        if node.keywords:
            keyword = node.keywords[0].value
            raise self.error(keyword, f"keyword argument of '{target.spelling}'", "pass it by position")
        args: list[Any] = []
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                items = self.iterate(arg.value)
                args.extend(items)
            else:
                args.append(self.iterate(arg) if isinstance(arg, ast.GeneratorExp) else self.expression(arg))
        return args

    def _arity(self, node: ast.Call, target: Intrinsic, count: int) -> None:
        if len(node.args) != count or any(isinstance(a, ast.Starred) for a in node.args):
            raise self.error(
                node,
                f"'{target.spelling}' takes {count} argument{'s' * (count > 1)}, got {len(node.args)}",
                f"call it as {target.spelling}({', '.join('abc'[:count])})",
            )

    # -- known functions ----------------------------------------------------------------------

    def _unary(self, target: Intrinsic, args: list[Any], node: ast.Call) -> Any:
        self._arity(node, target, 1)
        value = self.as_number(args[0], node.args[0])
        if is_number(value):
            return self.fold(target.fold, (value,), node)
        return Node("unary", target.name, (value,), self.span(node))

    def _extremum(self, target: Intrinsic, args: list[Any], node: ast.Call) -> Any:
        """min and max as NumPy's minimum and maximum, from left to right."""
        if target.name.endswith("imum"):
            self._arity(node, target, 2)
        elif len(args) == 1 and isinstance(args[0], tuple):
            args = list(args[0])
        if len(args) < 2:
            raise self.error(node, f"'{target.spelling}' needs two or more numbers", f"write {target.spelling}(a, b)")
        kind = target.name[:3]
        fold = min if kind == "min" else max
        places = node.args if len(node.args) == len(args) else [node] * len(args)
        numbers = [self.as_number(a, at) for a, at in zip(args, places, strict=True)]
        result = numbers[0]
        for value, at in zip(numbers[1:], places[1:], strict=True):
            if is_number(result) and is_number(value):
                result = fold(result, value)
            else:
                operands = (self.node(result, places[0]), self.node(value, at))
                result = Node("binary", kind, operands, self.span(node))
        return result

    def _as_condition(self, value: Any, at: ast.expr) -> Any:
        if isinstance(value, bool) or (isinstance(value, Node) and value.is_boolean):
            return value
        return self.condition(at)  # reports what it is instead

    def _conversion(self, target: Intrinsic, args: list[Any], node: ast.Call) -> Any:
        """float, int, len, numpy.float64 and numpy.float32."""
        self._arity(node, target, 1)
        if target.name == "len":
            if not isinstance(args[0], tuple):
                raise self.error(node, f"len of {describe(args[0])}", "use it on constant sequences")
            return len(args[0])
        value = self.as_number(args[0], node.args[0])
        if is_number(value) and target.name in ("float", "int"):
            return self.fold(float if target.name == "float" else int, (value,), node)
        if target.name == "float" and target.spelling == "float":
            return value  # run-time numbers are floats already
        raise self.error(
            node,
            f"'{target.spelling}' on {'a constant' if is_number(value) else 'a run-time value'}: "
            "a stencil computes in one dtype",
            "leave the conversion away: the dtype is chosen when the stencil is compiled",
        )

    # -- inlining -----------------------------------------------------------------------------

    def _inline(self, fn: types.FunctionType, node: ast.Call) -> Any:
        place = self.span(node)
        source = self._callee(fn, node)
        frame = Frame(
            source,
            self._bind_arguments(fn, node),
            self.frame.indices,
            (*self.frame.calls, (fn.__name__, place)),
            (*self.frame.stack, fn.__code__),
            self.frame.turns,
        )
        return type(self)(frame).run_body()

    def _callee(self, fn: types.FunctionType, node: ast.Call) -> Any:
        if fn.__code__ in self.frame.stack:
            raise self.error(
                node, f"'{fn.__name__}' calls itself: recursion is not part of a stencil",
                "unroll it with a loop over range(...)",
            )  # fmt: skip
        try:
            source = find_source(fn)
        except FrontendError as problem:
            message = f"cannot inline '{fn.__name__}': {problem.message}"
            raise self.error(node, message, problem.advice) from None
        if source.node.decorator_list:
            raise self.error(
                node,
                f"'{fn.__name__}' has decorators, whose effect cannot be inlined",
                "call a function without decorators",
            )
        return source

    def _bind_arguments(self, fn: types.FunctionType, node: ast.Call) -> dict[str, Any]:
        for arg in (*node.args, *node.keywords):
            if isinstance(arg, ast.Starred) or getattr(arg, "arg", "") is None:
                raise self.error(node, "unpacked arguments of an inlined function", "pass them one by one")
        signature = inspect.signature(fn)
        for parameter in signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise self.error(node, f"'{fn.__name__}' takes *{parameter.name}", "give it one parameter per value")
        args = [self.expression(arg) for arg in node.args]
        keywords = {str(k.arg): self.expression(k.value) for k in node.keywords}
        try:
            bound = signature.bind(*args, **keywords)
        except TypeError as problem:
            raise self.error(
                node, f"call of '{fn.__name__}': {problem}", f"it is defined as {fn.__name__}{signature}"
            ) from None
        env = dict(bound.arguments)
        for name, parameter in signature.parameters.items():
            if name not in env:
                env[name] = convert(parameter.default, self.span(node), f"{fn.__name__}.{name}")
        return env
