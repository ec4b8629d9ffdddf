"""Tile libraries: device functions that tile kernels call.

A tile kernel names no thread; a device function works on what one thread holds, and may shuffle between the lanes of
a warp. `tile_export` describes such functions, `make_library` puts them together, `toolchain.build_library` makes the
file, and `preview.foreign_call` calls them from a kernel. Needs CUDA 13.5.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stencil_dsl.tilelib.errors import TileLibraryError
    from stencil_dsl.tilelib.exports import Export, Parameter
    from stencil_dsl.tilelib.functions import TileFunction, make_library, tile_export
    from stencil_dsl.tilelib.layouts import Layout
    from stencil_dsl.tilelib.library import Code, TileLibrary
    from stencil_dsl.tilelib.meaning import evaluate
    from stencil_dsl.tilelib.preview import Tilelib, foreign_call, reference

_PLACES = {
    "errors": ("TileLibraryError",),
    "exports": ("Export", "Parameter"),
    "functions": ("TileFunction", "make_library", "tile_export"),
    "layouts": ("Layout",),
    "library": ("Code", "TileLibrary"),
    "meaning": ("evaluate",),
    "preview": ("Tilelib", "foreign_call", "reference"),
}
_LAZY = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "Code",
    "Export",
    "Layout",
    "Parameter",
    "TileFunction",
    "TileLibrary",
    "TileLibraryError",
    "Tilelib",
    "evaluate",
    "foreign_call",
    "make_library",
    "reference",
    "tile_export",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'stencil_dsl.tilelib' has no attribute {name!r}")
    return getattr(importlib.import_module(f"stencil_dsl.tilelib.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return sorted(set(__all__) | set(globals()))
