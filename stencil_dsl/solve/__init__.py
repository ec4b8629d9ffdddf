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

_LAZY = {
    **dict.fromkeys(
        ("Antisymmetric", "Dirichlet", "Keep", "Neumann", "Outflow", "Periodic", "Symmetric"),
        "stencil_dsl.solve.boundaries",
    ),
}

__all__ = [
    "Antisymmetric",
    "Dirichlet",
    "Keep",
    "Neumann",
    "Outflow",
    "Periodic",
    "Symmetric",
]


def __getattr__(name: str) -> Any:
    try:
        module = _LAZY[name]
    except KeyError:
        raise AttributeError(f"module 'stencil_dsl.solve' has no attribute {name!r}") from None
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value
