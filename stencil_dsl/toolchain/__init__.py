"""Compiles kernels without a GPU and reads what came out.

`find` and `compose` give a `Toolkit`; `build` gives a kernel from the cache or the compiler;
`compile_source`, `inspect`, `sass` and `tile_ir` are its steps. Nothing heavy is imported before use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stencil_dsl.toolchain.builder import build
    from stencil_dsl.toolchain.cache import KernelCache
    from stencil_dsl.toolchain.composition import compose
    from stencil_dsl.toolchain.cubin import kernels, read_elf
    from stencil_dsl.toolchain.disasm import sass
    from stencil_dsl.toolchain.discover import clear_found, find, find_tool
    from stencil_dsl.toolchain.entry import Entry
    from stencil_dsl.toolchain.export import Artifact, assemble, compile_source, tile_ir
    from stencil_dsl.toolchain.installer import install
    from stencil_dsl.toolchain.kit import Toolkit, ToolVersions, open_toolkit
    from stencil_dsl.toolchain.libraries import build_library
    from stencil_dsl.toolchain.many import BuildRequest, build_many
    from stencil_dsl.toolchain.process import ToolError
    from stencil_dsl.toolchain.resources import Resources, inspect
    from stencil_dsl.toolchain.signature import ArrayParam, Param, ScalarParam

_PLACES = {
    # No module is called like a name it gives: importing it would put the module in that name's place.
    "builder": ("build",),
    "cache": ("KernelCache",),
    "composition": ("compose",),
    "cubin": ("kernels", "read_elf"),
    "disasm": ("sass",),
    "entry": ("Entry",),
    "export": ("Artifact", "assemble", "compile_source", "tile_ir"),
    "discover": ("clear_found", "find", "find_tool"),
    "installer": ("install",),
    "libraries": ("build_library",),
    "kit": ("Toolkit", "ToolVersions", "open_toolkit"),
    "many": ("BuildRequest", "build_many"),
    "process": ("ToolError",),
    "resources": ("Resources", "inspect"),
    "signature": ("ArrayParam", "Param", "ScalarParam"),
}
_LAZY = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "ArrayParam",
    "Artifact",
    "BuildRequest",
    "Entry",
    "KernelCache",
    "Param",
    "Resources",
    "ScalarParam",
    "ToolError",
    "ToolVersions",
    "Toolkit",
    "assemble",
    "build",
    "build_library",
    "build_many",
    "clear_found",
    "compile_source",
    "compose",
    "find",
    "find_tool",
    "inspect",
    "install",
    "kernels",
    "open_toolkit",
    "read_elf",
    "sass",
    "tile_ir",
]


def __getattr__(name: str) -> Any:
    try:
        module = _LAZY[name]
    except KeyError:
        raise AttributeError(f"module 'stencil_dsl.toolchain' has no attribute {name!r}") from None
    value = getattr(importlib.import_module(f"stencil_dsl.toolchain.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(__all__) | set(globals()))
