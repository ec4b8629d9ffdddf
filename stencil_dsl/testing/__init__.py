"""The benchmark harness: a pytest plugin, and the words to describe what is measured.

``from stencil_dsl.testing import Question, KernelVariant, asks`` in a test module; see docs for a walk
through.
"""

from __future__ import annotations

import importlib
from typing import Any

_LAZY = {
    "Claim": "claims",
    "Finding": "claims",
    "asks": "grouping",
    "ConstantField": "sources",
    "RandomField": "sources",
    "RandomIntegers": "sources",
    "Prepared": "question",
    "Question": "question",
    "Target": "question",
    "Variant": "question",
    "Call": "problem",
    "FunctionVariant": "tile_kernels",
    "In": "problem",
    "Out": "problem",
    "Problem": "problem",
    "Scalar": "problem",
    "kernel_text": "kernel_source",
    "CallableVariant": "variants",
    "CopyVariant": "variants",
    "CudaVariant": "variants",
    "KernelVariant": "variants",
    "TileVariant": "variants",
    "sweep_question": "sweeps",
}

__all__ = sorted(_LAZY)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'stencil_dsl.testing' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"stencil_dsl.testing.{_LAZY[name]}"), name)
    globals()[name] = value
    return value
