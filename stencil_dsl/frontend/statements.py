"""Statements: assignments, static loops, `if` as a choice of values, and the final `return`."""

from __future__ import annotations

import ast
from typing import Any

from stencil_dsl.frontend.calls import CallReader
from stencil_dsl.frontend.values import FieldRef, IndexRef, Node, describe, is_condition, is_number

_REFUSED = {
    "While": ("a while loop", "loop over range(...) with constant bounds"),
    "AsyncFor": ("an async loop", "loop over range(...) with constant bounds"),
    "Break": ("break", "give the loop the bounds it needs"),
    "Continue": ("continue", "put the rest of the body under an `if` on constants"),
    "FunctionDef": ("a function defined inside", "define it outside; it is inlined where it is called"),
    "AsyncFunctionDef": ("an async function", "define a plain function outside"),
    "ClassDef": ("a class", "define functions outside"),
    "Try": ("try", "a stencil raises nothing"),
    "With": ("with", "leave it away"),
    "Raise": ("raise", "a stencil raises nothing"),
    "Assert": ("assert", "check the arrays before the call"),
    "Import": ("an import", "import at the top of the module"),
    "ImportFrom": ("an import", "import at the top of the module"),
    "Global": ("global", "return the value"),
    "Nonlocal": ("nonlocal", "return the value"),
    "Delete": ("del", "leave it away"),
    "Match": ("match", "use if and else"),
}
_IF_ADVICE = "assign the same variables in `if` and `else`, or use `a if condition else b`"


class StatementReader(CallReader):
    """Reads the body of one function."""

    def run_body(self) -> Any:
        """The value that the function returns; FrontendError where it returns none."""
        result = self.block(self.frame.source.node.body)
        if result is None:
            raise self.frame.at(
                self.frame.source.header,
                f"'{self.frame.source.node.name}' returns no value",
                "end it with `return` and one value per output",
            )
        return result

    def block(self, body: list[ast.stmt]) -> Any:
        """Run statements in order; the returned value, or None where the block does not return."""
        for position, statement in enumerate(body):
            method = getattr(self, f"run_{type(statement).__name__}", None)
            if method is None:
                what, advice = _REFUSED.get(
                    type(statement).__name__,
                    (type(statement).__name__, "use assignments, for, if and return"),
                )
                raise self.error(statement, f"{what} is not part of a stencil", advice)
            result = method(statement)
            if result is not None:
                if position + 1 < len(body):
                    raise self.error(body[position + 1], "this is never reached", "put `return` last")
                return result
        return None

    def run_Pass(self, node: ast.Pass) -> None:
        return None

    def run_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return  # a docstring
        self.expression(node.value)
        raise self.error(node, "the value of this expression is dropped", "assign it, or leave it away")

    def run_Return(self, node: ast.Return) -> Any:
        if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
            raise self.error(node, "return without a value", "return one value per output")
        return self.expression(node.value)

    # -- assignments --------------------------------------------------------------------------

    def run_Assign(self, node: ast.Assign) -> None:
        value = self.expression(node.value)
        for target in node.targets:
            self.bind(target, value)

    def run_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            raise self.error(node, "a declaration without a value", "assign a value")
        self.bind(node.target, self.expression(node.value))

    def run_AugAssign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self.bind(node.target, None)
            return
        name = node.target.id
        if name not in self.frame.env:
            raise self.error(node.target, f"unknown variable '{name}'", "assign it before adding to it")
        at = ast.copy_location(ast.Name(name, ast.Load()), node.target)
        value = self.binary(node.op, self.frame.env[name], self.expression(node.value), node, at, node.value)
        self.bind(node.target, value)

    def bind(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            if any(isinstance(t, ast.Starred) for t in target.elts):
                raise self.error(target, "a starred target is not part of a stencil", "name every part")
            if not isinstance(value, tuple) or len(value) != len(target.elts):
                got = f"{len(value)} values" if isinstance(value, tuple) else describe(value)
                raise self.error(
                    target, f"{got} cannot be unpacked into {len(target.elts)}", "match the numbers of names"
                )
            for part, item in zip(target.elts, value, strict=True):
                self.bind(part, item)
            return
        if isinstance(target, ast.Subscript):
            raise self.error(
                target, "a stencil cannot write to a field", "return the new value; the output is an array"
            )
        if not isinstance(target, ast.Name):
            raise self.error(target, "this cannot be assigned to", "assign to plain variables")
        old = self.frame.env.get(target.id)
        if isinstance(old, FieldRef | IndexRef) and old != value and target.id == old.name:
            raise self.error(target, f"{describe(old)} is assigned to", "give the new value a name of its own")
        if isinstance(value, Node) and value.hint is None:
            value.hint = target.id
        self.frame.env[target.id] = value
        self.frame.assigned.add(target.id)

    # -- loops and choices --------------------------------------------------------------------

    def run_For(self, node: ast.For) -> None:
        if node.orelse:
            raise self.error(node.orelse[0], "a loop with else is not part of a stencil", "put it behind")
        # A variable of the loop alone does not count as assigned by a branch of an `if` around it.
        names = {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)} - self.frame.env.keys()
        for item in self.iterate(node.iter):
            self.turn(node.iter)
            self.bind(node.target, item)
            if self.block(node.body) is not None:
                raise self.error(node, "return inside a loop", "collect the result and return it at the end")
        self.frame.assigned -= names

    def run_If(self, node: ast.If) -> Any:
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            return self.block(node.body if condition else node.orelse)
        if not node.orelse:
            raise self.error(node.test, "`if` without `else` on a run-time condition", _IF_ADVICE)
        first, first_env, first_names = self._branch(node.body)
        second, second_env, second_names = self._branch(node.orelse)
        if first is not None and second is not None:
            return self.select(condition, first, second, node)
        if first is not None or second is not None:
            raise self.error(node.test, "only one branch of this `if` returns", _IF_ADVICE)
        if first_names != second_names:
            only = ", ".join(f"'{name}'" for name in sorted(first_names ^ second_names))
            raise self.error(node.test, f"only one branch of this `if` assigns {only}", _IF_ADVICE)
        for name in self.in_order(first_names, first_env):
            value = self._merge(condition, first_env[name], second_env[name], node.test)
            self.bind(ast.copy_location(ast.Name(name, ast.Store()), node.test), value)
        return None

    @staticmethod
    def in_order(names: set[str], env: dict[str, Any]) -> list[str]:
        """Names in the order of their first assignment, so that the IR does not depend on hashing."""
        return [name for name in env if name in names]

    def _branch(self, body: list[ast.stmt]) -> tuple[Any, dict[str, Any], set[str]]:
        """A branch's returned value, variables and assigned names, with the frame left as it was."""
        env, assigned = dict(self.frame.env), self.frame.assigned
        self.frame.assigned = set()
        result = self.block(body)
        after, names = dict(self.frame.env), self.frame.assigned
        self.frame.env.clear()
        self.frame.env.update(env)
        self.frame.assigned = assigned
        return result, after, names

    def _merge(self, condition: Any, first: Any, second: Any, at: ast.AST) -> Any:
        if first is second or (is_number(first) and repr(first) == repr(second)):
            return first
        for value in (first, second):
            if not (isinstance(value, Node | tuple) or is_number(value) or is_condition(value)):
                raise self.error(at, f"{describe(value)} is chosen at run time", "choose between numbers")
        return self.select(condition, first, second, at)
