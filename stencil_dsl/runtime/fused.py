"""Several stencils as one definition."""

from __future__ import annotations

from collections.abc import Sequence

from stencil_dsl.frontend.stencil import Stencil
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.transforms.fuse import fuse_modules
from stencil_dsl.transforms.pipeline import default_pipeline


def fuse(stencils: Sequence[Stencil], dtype: str, name: str | None) -> Definition:
    """A definition with the outputs of all stencils; common subexpressions are computed once."""
    parts = [Definition.of(f, dtype) for f in stencils]
    module = fuse_modules([p.stencil for p in parts], name or "_".join(p.name for p in parts))
    return Definition(None, default_pipeline().without("lower-source").run(module), dtype)
