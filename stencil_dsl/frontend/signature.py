"""Which parameters are fields, scalars and indices.

The rule, after annotations, which always win:

1. Indices are the trailing parameters, starting with the first one that occurs inside a subscript
   (`i` in `u[i + 1]`, also where it is handed to an inlined function that uses it so). Where one
   subscript entry holds several parameters, as in `u[i + n]`, the last of them is the index.
2. Of the parameters before, those that are subscripted are fields, and so are all that stand before
   a subscripted one: fields come first, and a field may be left unread.
3. The remaining ones, behind the last subscripted field, are run-time scalars.
"""

from __future__ import annotations

import ast
import types
from dataclasses import dataclass, field

from stencil_dsl.errors import FrontendError
from stencil_dsl.frontend.annotations import read_annotation, read_staggered
from stencil_dsl.frontend.names import lookup
from stencil_dsl.frontend.source_text import FunctionSource, find_source

ORDER_ADVICE = "order the parameters as fields, then scalars, then indices"


@dataclass(frozen=True)
class Signature:
    """Parameter names by kind.

    Attributes:
        dtype: the element type that annotations fix, or None.
        staggered: for fields that lie between points, the indices along which they do.
    """

    fields: tuple[str, ...]
    scalars: tuple[str, ...]
    indices: tuple[str, ...]
    dtype: str | None
    staggered: dict[str, tuple[str, ...]] = field(default_factory=dict)


def plain_parameters(source: FunctionSource) -> list[ast.arg]:
    """The positional parameters; FrontendError for the kinds a stencil cannot have."""
    args = source.node.args
    for extra in (args.vararg, args.kwarg, *args.kwonlyargs):
        if extra is not None:
            raise source.error(
                extra,
                f"parameter '{extra.arg}' is not a plain positional one",
                "name every field, scalar and index as a positional parameter",
            )
    if args.defaults:
        raise source.error(
            args.defaults[0],
            "a stencil's parameter has no default value",
            "use a module constant, or give the scalar's value at the call of the kernel",
        )
    return [*args.posonlyargs, *args.args]


def classify(source: FunctionSource) -> Signature:
    """Sort the parameters of a stencil function; FrontendError where they do not fit the rule."""
    params = plain_parameters(source)
    stated = {p.arg: read_annotation(p.annotation) for p in params}
    use = parameter_use(source)
    names = [p.arg for p in params]

    first_index = next(
        (n for n, p in enumerate(names) if (stated[p][0] or (p in use.indices and "index")) == "index"),
        len(names),
    )
    last_field = max((n for n, p in enumerate(names) if stated[p][0] == "field" or p in use.bases), default=-1)
    kinds = []
    for position, name in enumerate(names):
        guess = "index" if position >= first_index else "field" if position <= last_field else "scalar"
        kinds.append(stated[name][0] or guess)
    _check_order(source, params, kinds, use)
    by_kind = {
        kind: tuple(n for n, k in zip(names, kinds, strict=True) if k == kind) for kind in ("field", "scalar", "index")
    }
    _check_counts(source, by_kind["index"])
    staggered = _staggered(source, params, by_kind["index"])
    return Signature(by_kind["field"], by_kind["scalar"], by_kind["index"], _dtype(source, params, stated), staggered)


def _check_order(source: FunctionSource, params: list[ast.arg], kinds: list[str], use: ParameterUse) -> None:
    rank = {"field": 0, "scalar": 1, "index": 2}
    for before, kind_before, param, kind in zip(params, kinds, params[1:], kinds[1:], strict=False):
        if rank[kind] < rank[kind_before]:
            raise source.error(param, f"{kind} '{param.arg}' stands behind {kind_before} '{before.arg}'", ORDER_ADVICE)
    for param, kind in zip(params, kinds, strict=True):
        if kind == "index" and param.arg in use.bases:
            raise source.error(param, f"'{param.arg}' is subscripted but stands among the indices", ORDER_ADVICE)


def _check_counts(source: FunctionSource, indices: tuple[str, ...]) -> None:
    if not indices:
        raise source.header.error(
            f"'{source.node.name}' has no indices: no parameter occurs inside a subscript",
            "name the indices last and read fields with them, as in `def f(u, i, j): return u[i, j + 1]`",
        )
    if len(indices) > 3:
        raise source.header.error(
            f"'{source.node.name}' has {len(indices)} indices ({', '.join(indices)})",
            "a stencil has one to three dimensions",
        )


def _staggered(source: FunctionSource, params: list[ast.arg], indices: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for param in params:
        names = []
        for each in read_staggered(param.annotation):
            name = indices[each] if isinstance(each, int) and 0 <= each < len(indices) else each
            if name not in indices:
                raise source.error(
                    param,
                    f"'{param.arg}' is staggered along {each!r}, which is no index",
                    f"name indices or their positions: {', '.join(f'{n} ({k})' for k, n in enumerate(indices))}",
                )
            names.append(str(name))
        if names:
            found[param.arg] = tuple(names)
    return found


def _dtype(
    source: FunctionSource, params: list[ast.arg], stated: dict[str, tuple[str | None, str | None]]
) -> str | None:
    dtype, first = None, ""
    for param in params:
        own = stated[param.arg][1]
        if own is not None and dtype is not None and own != dtype:
            raise source.error(
                param,
                f"mixed dtypes without a cast: '{first}' is {dtype}, '{param.arg}' is {own}",
                "give all fields and scalars of a stencil one dtype, and convert arrays before the call",
            )
        if own is not None and dtype is None:
            dtype, first = own, param.arg
    return dtype


@dataclass
class ParameterUse(ast.NodeVisitor):
    """How a function uses its parameters, directly and through the functions it calls.

    Attributes:
        bases: parameters that are subscripted.
        entries: for every entry of a subscript, the subscripted parameter and the parameters in the entry.
    """

    source: FunctionSource
    active: tuple[types.CodeType, ...] = ()
    bases: set[str] = field(default_factory=set)
    entries: set[tuple[str, frozenset[str]]] = field(default_factory=set)
    aliases: dict[str, ast.expr] = field(default_factory=dict)

    def __post_init__(self) -> None:
        args = self.source.node.args
        self.params = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]

    @property
    def indices(self) -> set[str]:
        """Parameters that can only be indices: the last one of each subscript entry."""
        return {max(entry, key=self.params.index) for _, entry in self.entries if entry}

    def visit_BinOp(self, node: ast.BinOp) -> None:
        left: ast.expr = node
        while isinstance(left, ast.BinOp):  # long sums are deep on the left
            self.visit(left.right)
            left = left.left
        self.visit(left)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._alias(target, node.value)

    def _alias(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, part in zip(target.elts, value.elts, strict=False):
                self._alias(one, part)
        elif isinstance(target, ast.Name):
            self.aliases[target.id] = value

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        for base in self._base(node.value):  # none where a constant sequence is subscripted
            self.bases.add(base)
            for entry in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
                self.entries.add((base, self._parameters_in(entry)))

    def _base(self, node: ast.expr | None, depth: int = 0) -> set[str]:
        """The parameter that an expression names, also through local variables."""
        if not isinstance(node, ast.Name) or depth > 8:
            return set()
        own = {node.id} & set(self.params)
        return own or self._base(self.aliases.get(node.id), depth + 1)

    def _parameters_in(self, node: ast.AST, depth: int = 0) -> frozenset[str]:
        inside: set[str] = set()
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                if part.id in self.params:
                    inside.add(part.id)
                elif part.id in self.aliases and depth < 8:
                    inside |= self._parameters_in(self.aliases[part.id], depth + 1)
        return frozenset(inside)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        callee = self._callee(node.func)
        if callee is None:
            return
        inner = parameter_use(callee, self.active)
        passed = dict(zip(inner.params, node.args, strict=False))
        passed |= {k.arg: k.value for k in node.keywords if k.arg is not None}
        for name, entry in inner.entries:
            for base in self._base(passed.get(name)):
                self.bases.add(base)
                parts = [self._parameters_in(passed[p]) for p in entry & passed.keys()]
                self.entries.add((base, frozenset().union(*parts)))

    def _callee(self, func: ast.expr) -> FunctionSource | None:
        """The inlinable function that a call names; problems with it are reported when it is read."""
        if not isinstance(func, ast.Name) or func.id in self.params:
            return None
        _, target = lookup(self.source.fn, func.id)
        if not isinstance(target, types.FunctionType) or target.__code__ in self.active:
            return None
        try:
            return find_source(target)
        except FrontendError:
            return None


def parameter_use(source: FunctionSource, active: tuple[types.CodeType, ...] = ()) -> ParameterUse:
    """Scan a function's body and the functions it calls; `active` are the callers, against recursion."""
    use = ParameterUse(source, (*active, source.fn.__code__))
    for statement in source.node.body:
        use.visit(statement)
    return use
