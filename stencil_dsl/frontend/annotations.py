"""Optional parameter annotations, for signatures that the use of the parameters leaves open.

`u: Field`, `dt: Scalar` (or `float`) and `i: Index` say what a parameter is; `Field["float32"]` and
`np.float32` also fix the element type. `h: Staggered[0]` is a field that lies between the points along the first
index. Annotations are read from the source text, so strings and `from __future__ import annotations` work alike. Any
other annotation is ignored.
"""

from __future__ import annotations

import ast


class _Marker:
    def __class_getitem__(cls, item: object) -> type:
        return cls


class Field(_Marker):
    """A parameter that is an array on the grid."""


class Staggered(_Marker):
    """A parameter that is an array whose values lie between the points along some indices.

    They are given by position or name: with `h: Staggered[0]` and a first index i, `h[i + half]` lies between the
    points i and i + 1 and is stored as cell i, `h[i - half]` as cell i - 1.
    """


class Scalar(_Marker):
    """A parameter that is one number, given at run time."""


class Index(_Marker):
    """A parameter that names a grid axis."""


_KINDS = {
    "Field": "field",
    "Staggered": "field",
    "ndarray": "field",
    "NDArray": "field",
    "PaddedArray": "field",
    "Scalar": "scalar",
    "float": "scalar",
    "float32": "scalar",
    "float64": "scalar",
    "Index": "index",
}
_DTYPES = ("float32", "float64")


def read_annotation(node: ast.expr | None) -> tuple[str | None, str | None]:
    """The (kind, dtype) that an annotation states: kind is "field", "scalar", "index" or None."""
    if node is None:
        return None, None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return read_annotation(ast.parse(node.value, mode="eval").body)
        except SyntaxError:
            return None, None
    base = node.value if isinstance(node, ast.Subscript) else node
    kind = _KINDS.get(_last_name(base) or "")
    dtype = next((name for name in map(_last_name, ast.walk(node)) if name in _DTYPES), None)
    return kind, dtype if kind is not None else None


def read_staggered(node: ast.expr | None) -> tuple[str | int, ...]:
    """The indices, by name or position, along which an annotation says that a field lies between points."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return read_staggered(ast.parse(node.value, mode="eval").body)
        except SyntaxError:
            return ()
    if not isinstance(node, ast.Subscript) or _last_name(node.value) != "Staggered":
        return ()
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    found = [p.value if isinstance(p, ast.Constant) and isinstance(p.value, int) else _last_name(p) for p in parts]
    return tuple(each for each in found if each is not None and each not in _DTYPES)


def _last_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None
