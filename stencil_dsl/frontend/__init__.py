"""Python functions read as stencils: `@stencil`, the AST reader and its error places."""

from stencil_dsl.frontend.annotations import Field, Index, Scalar, Staggered
from stencil_dsl.frontend.values import half

__all__ = ["Field", "Index", "Scalar", "Staggered", "half"]
