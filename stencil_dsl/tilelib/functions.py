"""`@tile_export`: a Python function, or device code as text, becomes an export of a tile library.

>>> @tile_export(tile_shape=128, dtype="float32")
... def relu(x):
...     return x if x > 0.0 else 0.0
>>> print(relu.export().prototype())
define void @relu_impl(float, ptr)
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Literal

from stencil_dsl.tilelib.errors import TileLibraryError
from stencil_dsl.tilelib.exports import Access, Export, Parameter, Sync
from stencil_dsl.tilelib.layouts import Layout, elementwise, warpwise
from stencil_dsl.tilelib.library import Code, TileLibrary
from stencil_dsl.tilelib.nvvm import FunctionBuilder, Register

if TYPE_CHECKING:
    from stencil_dsl.frontend.values import Node

# Integer powers up to this one are multiplications, as in a stencil.
MAX_UNROLLED_POWER = 64

Shape = int | Sequence[int]


class TileFunction:
    """A device function with its description; `tile_export` makes it.

    Attributes:
        fn: the Python function, which still can be called.
        name, symbol: of the export; sized forms of a function without tile_shape end in `__N<size>`.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        tile_shape: Shape | None,
        name: str | None,
        symbol: str | None,
        sync: Sync,
        dtype: str,
        inout: Iterable[str],
        footprint: int,
        archs: Iterable[str],
        outs: int | None,
        code: Code | None,
        meaning: str,
    ) -> None:
        functools.update_wrapper(self, fn)
        self.fn, self.sync, self.dtype, self.footprint, self.text = fn, sync, dtype, footprint, code
        self.name = name or fn.__name__
        self.symbol = symbol or f"{self.name}_impl"
        self.tile_shape = None if tile_shape is None else _shape(tile_shape)
        self.inout, self.archs, self.given = tuple(inout), tuple(archs), meaning == "function"
        if footprint < 1:
            raise TileLibraryError(f"export {self.name!r}: footprint is at least 1, got {footprint}")
        arguments = fn.__code__.co_varnames[: fn.__code__.co_argcount]
        unknown = [n for n in self.inout if n not in arguments]
        if unknown:
            raise TileLibraryError(f"export {self.name!r}: inout names {unknown[0]!r}, which is no parameter")
        self.arguments = arguments
        self.results = self._read() if code is None else None
        total = outs if self.results is None else len(self.results) - len(self.inout)
        total = (0 if self.inout else 1) if total is None else total
        if total < 0:
            raise TileLibraryError(
                f"export {self.name!r} returns {len(self.results or ())} values for {len(self.inout)} inout"
                " parameters; return the new value of each, then any others"
            )
        self.outs = total
        if self.tile_shape is not None:
            self.export().check()

    def __call__(self, *args: Any) -> Any:
        return self.fn(*args)

    def _read(self) -> tuple[Node, ...]:
        from stencil_dsl.frontend.expressions import Frame
        from stencil_dsl.frontend.signature import plain_parameters
        from stencil_dsl.frontend.source_text import find_source
        from stencil_dsl.frontend.statements import StatementReader
        from stencil_dsl.frontend.values import Node

        source = find_source(self.fn)
        env: dict[str, Any] = {
            p.arg: Node("scalar", p.arg, (), source.header, hint=p.arg) for p in plain_parameters(source)
        }
        reader = StatementReader(Frame(source, env, (), stack=(source.fn.__code__,)))
        result = reader.run_body()
        values = result if isinstance(result, tuple) else (result,)
        at = source.node.body[-1]
        return tuple(reader.node(reader.as_number(value, at), at) for value in values)

    # -- sizes

    def sized(self, tile_shape: Shape | None = None) -> tuple[tuple[int, ...], str]:
        """The tile's extents and the ending of the names for it."""
        if self.tile_shape is not None:
            if tile_shape is not None and _shape(tile_shape) != self.tile_shape:
                raise TileLibraryError(f"export {self.name!r} is for tiles {self.tile_shape}, not {tile_shape}")
            return self.tile_shape, ""
        if tile_shape is None:
            raise TileLibraryError(
                f"export {self.name!r} has no tile_shape: a static library holds one symbol a size, so name the"
                " sizes, as in make_library(..., sizes=(128, 256))"
            )
        extents = _shape(tile_shape)
        return extents, "__N" + "_".join(map(str, extents))

    def fragmap(self, extents: tuple[int, ...]) -> Layout:
        size = prod(extents)
        unit = self.footprint * (32 if self.sync == "warp" else 1)
        if size % unit:
            what = "32 times the footprint" if self.sync == "warp" else "the footprint"
            raise TileLibraryError(
                f"export {self.name!r}: tile {extents} has {size} elements; sync={self.sync!r} with footprint"
                f" {self.footprint} needs a multiple of {what} ({unit})"
            )
        return warpwise(size, self.footprint) if self.sync == "warp" else elementwise(size, self.footprint)

    def export(self, tile_shape: Shape | None = None) -> Export:
        """The description for a tile size; raises TileLibraryError."""
        if self.sync not in ("none", "warp"):
            raise TileLibraryError(f"export {self.name!r}: sync is none or warp here, got {self.sync!r}")
        extents, ending = self.sized(tile_shape)
        fragmap = self.fragmap(extents)
        named: list[tuple[str, Access]] = [(n, "inout" if n in self.inout else "in") for n in self.arguments]
        base = self.fn.__name__ if self.fn.__name__.isidentifier() else self.name
        named += [(f"{base}_out" + (f"_{k}" if self.outs > 1 else ""), "out") for k in range(self.outs)]
        parameters = tuple(Parameter(n, self.dtype, access, extents, fragmap) for n, access in named)
        return Export(self.name + ending, self.symbol + ending, parameters, self.sync, self.archs)

    def code(self, tile_shape: Shape | None = None) -> Code:
        """The device code for a tile size."""
        export = self.export(tile_shape)
        if self.text is not None:
            _, ending = self.sized(tile_shape)
            renamed = re.sub(rf"\b{re.escape(self.symbol)}\b", self.symbol + ending, self.text.text)
            return Code(self.text.language, renamed)
        assert self.results is not None
        builder = FunctionBuilder(export)
        inputs = [[builder.read(k, e) for e in range(self.footprint)] for k in range(len(self.arguments))]
        targets = [k for k, p in enumerate(export.parameters) if p.access != "in"]
        for e in range(self.footprint):
            values = {n: held[e] for n, held in zip(self.arguments, inputs, strict=True)}
            kind = builder.constant(0.0, _kind(self.dtype, self.name)).type
            done = _expressions(builder, self.results, values, kind)
            for target, value in zip(targets, done, strict=True):
                builder.write(target, e, value)
        return Code("nvvm", builder.text())


def tile_export(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    tile_shape: Shape | None = None,
    name: str | None = None,
    symbol: str | None = None,
    sync: Sync = "none",
    dtype: str = "float64",
    inout: str | Iterable[str] = (),
    footprint: int = 1,
    archs: Iterable[str] = (),
    outs: int | None = None,
    nvvm: str | None = None,
    cuda: str | None = None,
    meaning: Literal["text", "function"] | None = None,
) -> Any:
    """Make an export of a function of scalars, or of device code.

    Without `nvvm` and `cuda`, the Python function is compiled: the expressions of a stencil, on scalars. With them,
    the function gives the parameters' names (and, for meaning="function", the meaning on arrays, see
    `meaning.evaluate`); the text defines `symbol` as `export().prototype()` says.

    Args:
        tile_shape: extents of the tiles it is called with; None: chosen when a library is made, one symbol a size.
        name: what kernels call; the function's name by default.
        symbol: what the device code defines; `<name>_impl` by default.
        sync: "warp": all 32 lanes of a warp call together, and may shuffle.
        dtype: element type of all parameters and results.
        inout: parameters that are changed in place. The function returns their new values first.
        footprint: neighbouring elements that one thread is handed; a Python function is applied to each.
        archs: architectures it is for, such as "sm_90"; all by default.
        outs: for text: results besides the inout parameters; one by default where there is no inout parameter.
        meaning: what a call means where there is no GPU: the NVVM text itself, or the function ("cuda" text: always).

    Raises:
        FrontendError: where the function holds what no stencil may hold; TileLibraryError: where a rule is broken.
    """
    if nvvm is not None and cuda is not None:
        raise TileLibraryError("give nvvm or cuda, not both")
    code = Code("nvvm", nvvm) if nvvm is not None else Code("cuda", cuda) if cuda is not None else None
    chosen = meaning or ("function" if cuda is not None else "text")
    names = (inout,) if isinstance(inout, str) else tuple(inout)

    def made(f: Callable[..., Any]) -> TileFunction:
        return TileFunction(f, tile_shape, name, symbol, sync, dtype, names, footprint, archs, outs, code, chosen)

    return made if fn is None else made(fn)


def make_library(name: str, *functions: TileFunction, sizes: Sequence[Shape] = ()) -> TileLibrary:
    """A library of functions; those without tile_shape are in it once for each of `sizes`.

    Raises:
        TileLibraryError: a function without tile_shape and no sizes, or a broken rule.
    """
    exports, code, meanings = [], [], {}
    for function in functions:
        wanted: Sequence[Shape | None] = [None] if function.tile_shape is not None or not sizes else sizes
        for size in wanted:
            export = function.export(size)
            exports.append(export)
            code.append(function.code(size))
            if function.given:
                meanings[export.name] = function.fn
    return TileLibrary(name, tuple(exports), tuple(dict.fromkeys(code)), meanings)


def _shape(tile_shape: Shape) -> tuple[int, ...]:
    return (tile_shape,) if isinstance(tile_shape, int) else tuple(tile_shape)


def _kind(dtype: str, name: str) -> str:
    kinds = {"float64": "double", "float32": "float"}
    if dtype not in kinds:
        raise TileLibraryError(f"export {name!r}: a Python function computes in float64 or float32, not {dtype}")
    return kinds[dtype]


def _expressions(
    builder: FunctionBuilder, results: Sequence[Node], inputs: dict[str, Register], kind: str
) -> list[Register]:
    from stencil_dsl.frontend.build import reachable

    known: dict[Node, Register] = {}
    for node in reachable(results):
        args = [known[o] for o in node.operands]
        if node.category == "scalar":
            known[node] = inputs[node.kind]
        elif node.category == "constant":
            known[node] = builder.constant(node.payload, kind)
        elif node.category == "select":
            known[node] = builder.op("select", *args)
        elif node.kind == "pow" and (power := _integer_power(node)) is not None:
            known[node] = _power(builder, args[0], power)
        else:
            known[node] = builder.op(node.kind, *args)
    return [known[node] for node in results]


def _integer_power(node: Node) -> int | None:
    exponent = node.operands[1]
    if exponent.category != "constant" or exponent.payload != int(exponent.payload):
        return None
    return int(exponent.payload) if abs(exponent.payload) <= MAX_UNROLLED_POWER else None


def _power(builder: FunctionBuilder, base: Register, exponent: int) -> Register:
    """By squaring, in the order of a stencil's powers; a negative exponent divides once, at the end."""
    one = builder.constant(1.0, base.type)
    if exponent < 0:
        return builder.op("div", one, _power(builder, base, -exponent))
    result = None
    while exponent:
        if exponent & 1:
            result = base if result is None else builder.op("mul", result, base)
        exponent >>= 1
        base = builder.op("mul", base, base) if exponent else base
    return one if result is None else result
