"""From a function object to its syntax tree, with places that match the file the user wrote.

The text comes from `linecache`, which knows files, notebook cells, doctests and whatever an
embedding program registered for `exec`. The whole file is parsed, not a cut-out, so that lines and
columns need no correction; a cut-out is the fallback where the file as a whole is not plain Python.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import re
import textwrap
import types
from dataclasses import dataclass
from functools import cached_property, lru_cache

from stencil_dsl.errors import FrontendError


@dataclass(frozen=True)
class Span:
    """A place in the user's source: lines from 1, columns from 0 in characters."""

    filename: str
    line: int
    col: int
    end_col: int
    text: str

    @property
    def short(self) -> str:
        """`file:line:column` with the file's base name and the column from 1, for the IR."""
        return f"{os.path.basename(self.filename)}:{self.line}:{self.col + 1}"

    def error(self, message: str, advice: str = "") -> FrontendError:
        """An error that shows this place with a caret under it."""
        return FrontendError(
            message,
            filename=self.filename,
            line=self.line,
            col=self.col,
            end_col=self.end_col,
            source_line=self.text or None,
            advice=advice,
        )


@dataclass(frozen=True)
class FunctionSource:
    """A Python function with its syntax tree; `lines` is the whole file, without line ends."""

    fn: types.FunctionType
    node: ast.FunctionDef
    filename: str
    lines: tuple[str, ...]

    def span(self, node: ast.AST) -> Span:
        """The place of a node of this function's tree."""
        line = getattr(node, "lineno", self.node.lineno)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        col = _characters(text, getattr(node, "col_offset", 0))
        end_line = getattr(node, "end_lineno", line)
        end = _characters(text, getattr(node, "end_col_offset", col)) if end_line == line else len(text)
        return Span(self.filename, line, col, max(end, col + 1), text)

    @property
    def header(self) -> Span:
        """The `def` line up to the name, where errors about the whole function point."""
        place = self.span(self.node)
        found = re.compile(rf"def\s+{re.escape(self.node.name)}").match(place.text, place.col)
        end = found.end() if found else place.col + 1
        return Span(place.filename, place.line, place.col, end, place.text)

    @cached_property
    def variables(self) -> frozenset[str]:
        """Names that the function assigns, which are its own even before they have a value."""
        found: set[str] = set()
        pending: list[ast.AST] = list(self.node.body)
        while pending:
            node = pending.pop()
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            if not isinstance(node, ast.GeneratorExp | ast.ListComp):
                pending.extend(ast.iter_child_nodes(node))
        return frozenset(found)

    def error(self, node: ast.AST, message: str, advice: str = "") -> FrontendError:
        return self.span(node).error(message, advice)


def find_source(fn: object) -> FunctionSource:
    """The source of a plain Python function.

    Raises FrontendError where `fn` is no plain function or its text cannot be found.
    """
    if not isinstance(fn, types.FunctionType):
        raise FrontendError(
            f"{type(fn).__name__} object is not a plain Python function",
            advice="put @stencil directly above a `def`, below any other decorator",
        )
    code = fn.__code__
    place = Span(code.co_filename, code.co_firstlineno, 0, 1, "")
    if hasattr(fn, "__wrapped__"):
        raise place.error(
            f"'{fn.__name__}' is wrapped by a decorator, whose effect a stencil cannot keep",
            "put @stencil directly above the `def`, below the other decorators",
        )
    if code.co_name == "<lambda>":
        raise place.error("a lambda cannot be read as a stencil", "write it as a `def`")
    linecache.checkcache(code.co_filename)
    lines = tuple(linecache.getlines(code.co_filename, fn.__globals__))
    if not lines:
        raise place.error(
            f"the source text of '{fn.__name__}' is not available",
            "define the function in a file or a notebook cell, or register the text given to exec "
            "in linecache.cache under the file name it was compiled with",
        )
    node = _locate(lines, code)
    if node is None:
        raise place.error(
            f"the text of '{code.co_filename}' has no function '{code.co_name}' at this line",
            "the file changed after it was imported: import it again",
        )
    if isinstance(node, ast.AsyncFunctionDef):
        raise place.error("an async function cannot be read as a stencil", "use a plain `def`")
    return FunctionSource(fn, node, code.co_filename, _stripped(lines))


@lru_cache(maxsize=32)
def _stripped(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The lines without their ends; a stencil that calls others asks for many functions of one file."""
    return tuple(line.rstrip("\r\n") for line in lines)


def _locate(lines: tuple[str, ...], code: types.CodeType) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    tree = _parse("".join(lines))
    if tree is None:
        tree = _parse_block(lines, code.co_firstlineno)
    if tree is None:
        return None
    for node in _functions(tree):
        if node.name == code.co_name:
            # A code object starts at its first decorator, the tree's node at `def`.
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
    return None


@lru_cache(maxsize=32)
def _functions(tree: ast.Module) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
    """All functions of a file."""
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@lru_cache(maxsize=32)
def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except SyntaxError:
        return None


def _parse_block(lines: tuple[str, ...], first: int) -> ast.Module | None:
    """Parse only the function that starts at line `first`, with its lines as in the file."""
    if first > len(lines):
        return None
    block = inspect.getblock(list(lines[first - 1 :]))
    indent = len(block[0]) - len(block[0].lstrip())
    tree = _parse.__wrapped__(textwrap.dedent("".join(block)))  # a tree of its own: places are corrected below
    if tree is None:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt | ast.arg | ast.keyword):
            node.col_offset += indent
            node.end_col_offset = (node.end_col_offset or 0) + indent
    return ast.increment_lineno(tree, first - 1)


def _characters(text: str, byte_offset: int) -> int:
    """Columns of the tree count UTF-8 bytes; carets count characters."""
    if text.isascii():
        return byte_offset
    return len(text.encode()[:byte_offset].decode(errors="ignore"))
