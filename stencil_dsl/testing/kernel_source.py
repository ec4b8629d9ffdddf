"""The text of one ``@ct.kernel`` function, cut out of the file that defines it.

A file of kernels may also hold host code, other kernels and imports that a compiling machine lacks. What a kernel
needs is found by name: itself, and the module-level imports, constants and helpers that it uses. The text depends
on nothing else, so a change to a neighbour leaves the kernel's cache entry and golden facts alone.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path
from typing import Any


def kernel_text(file: str | Path, function: str, **options: Any) -> str:
    """A Python file that holds kernel `function` of `file` and what it uses.

    Args:
        file: path of the Python file. It is read, not imported.
        function: name of a function under ``@ct.kernel``.
        options: arguments of ``@ct.kernel`` that replace those of the same name, for example ``occupancy=4``;
            None removes one.

    Raises:
        ValueError: the file has no such kernel.
    """
    path = Path(file)
    return cut(path.read_text(encoding="utf-8"), function, str(path), tuple(sorted(options.items())))


@lru_cache(maxsize=512)
def cut(text: str, function: str, name: str, options: tuple[tuple[str, Any], ...] = ()) -> str:
    """`kernel_text` for a text; `name` is for messages."""
    tree = ast.parse(text, name)
    defined: dict[str, ast.stmt] = {}
    for statement in tree.body:
        for target in _names_of(statement):
            defined[target] = statement
    kernel = defined.get(function)
    if not isinstance(kernel, ast.FunctionDef) or _decorator(kernel) is None:
        kernels = [n for n, s in defined.items() if isinstance(s, ast.FunctionDef) and _decorator(s) is not None]
        raise ValueError(f"{name} has no @ct.kernel function {function!r}; it has {', '.join(kernels) or 'none'}")
    wanted: dict[int, ast.stmt] = {kernel.lineno: kernel}
    left: list[ast.stmt] = [kernel]
    while left:
        for node in ast.walk(left.pop()):
            needed = defined.get(node.id) if isinstance(node, ast.Name) else None
            if needed is not None and needed.lineno not in wanted:
                wanted[needed.lineno] = needed
                left.append(needed)
    lines = text.splitlines()
    pieces: list[str] = []
    for _, statement in sorted(wanted.items()):
        piece = "\n".join(lines[_first_line(statement) - 1 : statement.end_lineno])
        if statement is kernel and options:
            piece = _decorated(kernel, dict(options), lines)
        gap = "\n\n\n" if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) and pieces else "\n"
        pieces.append((gap if pieces else "") + piece)
    return "".join(pieces) + "\n"


def _names_of(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.FunctionDef() | ast.ClassDef():
            return [statement.name]
        case ast.Import() | ast.ImportFrom():
            return [(alias.asname or alias.name).split(".")[0] for alias in statement.names]
        case ast.Assign():
            return [node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)]
        case ast.AnnAssign():
            return [statement.target.id] if isinstance(statement.target, ast.Name) else []
    return []


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(d.lineno for d in decorators)])


def _decorator(function: ast.FunctionDef) -> ast.expr | None:
    """``@ct.kernel`` or ``@ct.kernel(...)``, whatever cuda.tile is called in the file."""
    for decorator in function.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if getattr(called, "attr", getattr(called, "id", None)) == "kernel":
            return decorator
    return None


def _decorated(function: ast.FunctionDef, options: dict[str, Any], lines: list[str]) -> str:
    """The function's lines with changed options of its kernel decorator."""
    old = _decorator(function)
    assert old is not None
    written = {k.arg: ast.unparse(k.value) for k in old.keywords if k.arg} if isinstance(old, ast.Call) else {}
    written |= {name: repr(value) for name, value in options.items()}
    called = ast.unparse(old.func if isinstance(old, ast.Call) else old)
    given = ", ".join(f"{name}={value}" for name, value in written.items() if options.get(name, "kept") is not None)
    others = [f"@{ast.unparse(d)}" for d in function.decorator_list if d is not old]
    return "\n".join([*others, f"@{called}({given})", *lines[function.lineno - 1 : function.end_lineno]])
