"""The error of this package."""

from __future__ import annotations

from stencil_dsl.errors import StencilError


class TileLibraryError(StencilError):
    """A tile library, an export or a call of one is not what the Tile compiler can take."""
