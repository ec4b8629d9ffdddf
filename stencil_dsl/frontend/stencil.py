"""`@stencil`: a Python function becomes a `Stencil`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from stencil_dsl.errors import StencilError
from stencil_dsl.frontend.expressions import Frame
from stencil_dsl.frontend.signature import Signature, classify
from stencil_dsl.frontend.source_text import FunctionSource, find_source
from stencil_dsl.frontend.statements import StatementReader
from stencil_dsl.frontend.values import FieldRef, IndexRef, Node

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

DTYPES = ("float64", "float32")


class Stencil:
    """A stencil read from a Python function.

    The function is read once, when it is decorated: module constants and closure variables count with
    the values they have then, and mistakes are reported there.

    Attributes:
        name: the function's name.
        fields, scalars, indices: parameter names by kind, each in the function's order.
        ndim: number of indices, 1 to 3.
        profiles: fields that are read with some indices only, with the axes of these.
        results: the expression graph, one node per output.
        outputs: (name,) for one returned value, (name_0, name_1, ...) for several.
        dtype: the element type that annotations fix, or None where any will do.
        fn: the Python function.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        source = find_source(fn)
        try:
            signature = classify(source)
            self.results, fields = _read(source, signature)
        except RecursionError:
            raise source.header.error(
                f"expressions of '{source.node.name}' are nested too deeply",
                "assign their parts to variables",
            ) from None
        self.fn = source.fn
        self.name = source.fn.__name__
        self.fields = signature.fields
        self.scalars = signature.scalars
        self.indices = signature.indices
        self.ndim = len(signature.indices)
        axes = {f.name: axes for f in fields for axes in f.read}
        self.profiles = {name: found for name, found in axes.items() if len(found) < self.ndim}
        self.dtype = signature.dtype
        numbered = tuple(f"{self.name}_{n}" for n in range(len(self.results)))
        self.outputs = numbered if len(numbered) > 1 else (self.name,)
        self.span = source.header
        self.__name__ = source.fn.__name__
        self.__qualname__ = source.fn.__qualname__
        self.__module__ = source.fn.__module__
        self.__doc__ = source.fn.__doc__

    def module(self, dtype: str = "float64") -> ModuleOp:
        """A new level-1 module with one `source.stencil`, for element type "float64" or "float32".

        Raises FrontendError where a constant does not fit the dtype or annotations ask for another.
        """
        from stencil_dsl.frontend.build import build_module

        if dtype not in DTYPES:
            raise self.span.error(f"unknown dtype {dtype!r}", "use 'float64' or 'float32'")
        if self.dtype is not None and dtype != self.dtype:
            raise self.span.error(
                f"mixed dtypes without a cast: '{self.name}' is annotated {self.dtype}, asked for {dtype}",
                f"compile it for {self.dtype}, or take the dtype out of the annotations",
            )
        return build_module(self, dtype)

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """A stencil is compiled, not called; always raises StencilError."""
        raise StencilError(f"stencil '{self.name}' cannot be called: call the kernel that compile() gives")

    def __repr__(self) -> str:
        params = ", ".join((*self.fields, *self.scalars, *self.indices))
        return f"<stencil {self.name}({params}), {self.ndim}-D>"


def stencil(fn: Callable[..., Any]) -> Stencil:
    """Read a Python function as a stencil; raises FrontendError with the place of what it cannot mean."""
    return Stencil(fn)


def _read(source: FunctionSource, signature: Signature) -> tuple[tuple[Node, ...], list[FieldRef]]:
    """The graph of the outputs, in order, and the fields with how they are read."""
    fields = [FieldRef(name, signature.staggered.get(name, ())) for name in signature.fields]
    env: dict[str, Any] = {f.name: f for f in fields}
    place = source.header
    env |= {name: Node("scalar", name, (), place, hint=name) for name in signature.scalars}
    env |= {name: IndexRef(name, axis) for axis, name in enumerate(signature.indices)}
    frame = Frame(source, env, signature.indices, stack=(source.fn.__code__,))
    reader = StatementReader(frame)
    result = reader.run_body()
    values = result if isinstance(result, tuple) else (result,)
    if not values:
        raise source.header.error(f"'{source.node.name}' returns no value", "return one value per output")
    at = source.node.body[-1]
    partly = [(f, axes, span) for f in fields for axes, span in f.read.items() if len(axes) < len(signature.indices)]
    if partly and all(f in [each for each, _, _ in partly] for f in fields if f.read):
        field, axes, span = partly[0]
        names = ", ".join(signature.indices)
        count = f"{len(axes)} {'index' if len(axes) == 1 else 'indices'}"
        raise span.error(
            f"field '{field.name}' is read with {count} in a stencil over {names}, and so are all others",
            f"write {field.name}[{names}] with constant offsets",
        )
    return tuple(reader.node(reader.as_number(value, at), at) for value in values), fields
