"""Read IR, run passes, print IR: `python -m stencil_dsl.opt FILE -p lower-source,stencil-cse`.

The options are those of `xdsl-opt`, which this driver extends by the project's dialects and passes:
`--split-input-file`, `--verify-diagnostics`, `--print-op-generic`, `--print-between-passes`, ...
"""

from __future__ import annotations

import importlib

from xdsl.ir import Dialect
from xdsl.xdsl_opt_main import xDSLOptMain

from stencil_dsl.transforms import registry

# Dialects are loaded when a file uses one of their names.
DIALECTS: dict[str, str] = {
    "source": "stencil_dsl.dialects.source:Source",
    "tile": "stencil_dsl.dialects.tile:Tile",
    "simt": "stencil_dsl.dialects.simt:Simt",
    "boundary": "stencil_dsl.dialects.boundary:Boundary",
    "comm": "stencil_dsl.dialects.comm:Comm",
    "layout": "stencil_dsl.dialects.layout:Layout",
    "timestep": "stencil_dsl.dialects.timestep:Timestep",
}


def load_dialect(name: str) -> Dialect:
    """The dialect object registered under a name."""
    module, _, attribute = DIALECTS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


class OptMain(xDSLOptMain):
    """xDSL's driver with the dialects and passes of this package."""

    def register_all_dialects(self) -> None:
        super().register_all_dialects()
        for name in DIALECTS:
            self.ctx.register_dialect(name, lambda name=name: load_dialect(name))  # type: ignore[misc]

    def register_all_passes(self) -> None:
        super().register_all_passes()
        for name, factory in registry.available().items():
            self.register_pass(name, factory)


def main(args: list[str] | None = None) -> None:
    """Run the driver on command line arguments."""
    OptMain("Reads IR, runs passes of stencil_dsl and xDSL, prints IR", args).run()


if __name__ == "__main__":
    main()
