"""What kernels import: `Tilelib` and `foreign_call`.

Inside a kernel that cuda.tile compiles, `foreign_call` is a call of a tile library (see `adapter`); where the kernel is
interpreted on NumPy, it computes what the library's description says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stencil_dsl.tilelib.errors import TileLibraryError
from stencil_dsl.tilelib.exports import Export
from stencil_dsl.tilelib.library import TileLibrary, find_library


@dataclass(frozen=True)
class Tilelib:
    """A library as a kernel names it, a global of the kernel's module.

    Attributes:
        path: of the built file. The toolchain of this package passes its own build instead.
        version: digest of the content; caches go by it.
    """

    path: str
    version: str


def reference(library: TileLibrary, path: str | None = None) -> Tilelib:
    """How kernels name a library; `path` where cuda.tile itself is to compile them."""
    return Tilelib(path or f"{library.name}.tilelib", library.digest)


def embedded(name: str, exports: Sequence[dict[str, Any]], nvvm: Sequence[str]) -> Tilelib:
    """A library that is written out in the file of its kernel; exports as of `Export.to_json`."""
    code = [{"language": "nvvm", "text": text} for text in nvvm]
    return reference(TileLibrary.from_json({"name": name, "exports": list(exports), "code": code}))


def sized_name(symbol_name: str, constant_params: Sequence[int]) -> str:
    """The export that stands for a size: a static library has one symbol each."""
    return symbol_name + "".join(f"__N{n}" for n in constant_params)


def foreign_call(
    tilelibs: Any, symbol_name: Any, constant_params: Any, inputs: Any, output_types: Any, pure: Any = False
) -> Any:
    """Call an export of a tile library inside a kernel.

    Args:
        tilelibs: libraries to look in, `Tilelib` globals.
        symbol_name: name of the export, not of its implementation.
        constant_params: () or the size of an export without tile_shape.
        inputs: one tile a parameter, "out" parameters included (of any content).
        output_types: (dtype, shape) of each out and inout parameter, in order.
        pure: the call does nothing but compute its results, so that no load or store waits for it.

    Returns:
        A tuple of tiles.
    """
    from stencil_dsl.tilelib.meaning import evaluate

    name = sized_name(symbol_name, constant_params)
    library = find_exporter(tilelibs, name)
    arrays = [_array(t, name) for t in inputs]
    kinds = [(d.name, tuple(s)) for d, s in output_types]
    check_call(library.export(name), [(a.dtype.name, a.shape) for a in arrays], kinds)
    results = evaluate(library, name, arrays)
    tile = type(inputs[0])
    return tuple(tile(r, d) for r, (d, _) in zip(results, output_types, strict=True))


def find_exporter(tilelibs: Sequence[Tilelib], name: str) -> TileLibrary:
    """The first library with an export; raises TileLibraryError naming what there is."""
    libraries = [find_library(t.version) for t in tilelibs]
    for library in libraries:
        if any(e.name == name for e in library.exports):
            return library
    offered = ", ".join(e.name for library in libraries for e in library.exports)
    raise TileLibraryError(f"no export {name!r} in {', '.join(t.path for t in tilelibs)}; there are: {offered}")


Kind = tuple[str, tuple[int, ...]]
"""dtype name and extents of a tile."""


def check_call(export: Export, inputs: Sequence[Kind], results: Sequence[Kind]) -> None:
    """Compare the tiles of a call with the description; raises TileLibraryError naming the parameter."""
    for what, given, wanted in (
        ("inputs", inputs, export.parameters),
        ("output_types", results, export.results),
    ):
        if len(given) != len(wanted):
            names = ", ".join(f"{p.name}: {p.access}" for p in wanted)
            raise TileLibraryError(
                f"call of {export.name!r}: {what} has {len(given)} entries for {len(wanted)} ({names});"
                " out parameters take an input tile too"
            )
        for p, (dtype, shape) in zip(wanted, given, strict=True):
            if (dtype, tuple(shape)) != (p.dtype, p.shape):
                raise TileLibraryError(
                    f"call of {export.name!r}: {p.name!r} in {what} is a tile {dtype} {tuple(shape)}, the export has"
                    f" {p.dtype} {p.shape}"
                )


def _array(tile: Any, name: str) -> Any:
    if not hasattr(tile, "a"):
        raise TileLibraryError(f"inputs of {name!r} are tiles, got {tile!r}; a scalar needs a tile too")
    return tile.a
