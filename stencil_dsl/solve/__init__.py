"""Solvers: boundaries, time loops, integrators, systems of fields, sources, reductions, several ranks.

Names are loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stencil_dsl.solve.boundaries import (
        Antisymmetric,
        Dirichlet,
        Keep,
        Neumann,
        Outflow,
        Periodic,
        Symmetric,
    )
    from stencil_dsl.solve.loop import TimeLoop
    from stencil_dsl.solve.parts import Integrate, Piece, Sweep
    from stencil_dsl.solve.spread import spread
    from stencil_dsl.solve.system import System
    from stencil_dsl.solve.transports.in_process import run_ranks
    from stencil_dsl.solve.transports.mpi import world

_LAZY = {
    "TimeLoop": "stencil_dsl.solve.loop",
    "spread": "stencil_dsl.solve.spread",
    "run_ranks": "stencil_dsl.solve.transports.in_process",
    "world": "stencil_dsl.solve.transports.mpi",
    **dict.fromkeys(("Integrate", "Piece", "Sweep"), "stencil_dsl.solve.parts"),
    "System": "stencil_dsl.solve.system",
    **dict.fromkeys(
        ("Antisymmetric", "Dirichlet", "Keep", "Neumann", "Outflow", "Periodic", "Symmetric"),
        "stencil_dsl.solve.boundaries",
    ),
}

__all__ = [
    "Antisymmetric",
    "Dirichlet",
    "Integrate",
    "Keep",
    "Neumann",
    "Outflow",
    "Periodic",
    "Piece",
    "Sweep",
    "Symmetric",
    "System",
    "TimeLoop",
    "run_ranks",
    "spread",
    "world",
]


def __getattr__(name: str) -> Any:
    try:
        module = _LAZY[name]
    except KeyError:
        raise AttributeError(f"module 'stencil_dsl.solve' has no attribute {name!r}") from None
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value
