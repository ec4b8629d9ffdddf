"""Which passes exist, by name. A pass is loaded when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from stencil_dsl.errors import StencilError

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

PASSES: dict[str, str] = {
    "lower-source": "stencil_dsl.transforms.lower_source:LowerSourcePass",
    "fold-constants": "stencil_dsl.transforms.fold_constants:FoldConstantsPass",
    "stencil-cse": "stencil_dsl.transforms.cse:StencilCsePass",
    "stencil-dce": "stencil_dsl.transforms.dce:StencilDcePass",
    "footprint": "stencil_dsl.transforms.footprint:FootprintPass",
    "compose-steps": "stencil_dsl.transforms.compose_steps:ComposeStepsPass",
    "select-outputs": "stencil_dsl.transforms.select_outputs:SelectOutputsPass",
    "roofline": "stencil_dsl.transforms.roofline:RooflinePass",
    "boundary": "stencil_dsl.transforms.boundary:BoundaryPass",
    "expand-integrator": "stencil_dsl.transforms.expand_integrator:ExpandIntegratorPass",
    "fuse-sweeps": "stencil_dsl.transforms.fuse_sweeps:FuseSweepsPass",
    "halo-exchange": "stencil_dsl.transforms.halo_exchange:HaloExchangePass",
    "temporal-blocking": "stencil_dsl.transforms.temporal_blocking:TemporalBlockingPass",
    "insert-fills": "stencil_dsl.transforms.insert_fills:InsertFillsPass",
    "wrap-rows": "stencil_dsl.transforms.wrap_rows:WrapRowsPass",
}


def load(name: str) -> type[ModulePass]:
    """The class of a pass; StencilError for an unknown name."""
    if name not in PASSES:
        raise StencilError(f"unknown pass '{name}'; known are {', '.join(PASSES)}")
    module, _, attribute = PASSES[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def available() -> dict[str, Callable[[], type[ModulePass]]]:
    """Every pass as xDSL's drivers want them: name to a function that loads the class."""
    return {name: lambda name=name: load(name) for name in PASSES}  # type: ignore[misc]
