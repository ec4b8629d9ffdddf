"""What a call of an export computes, on NumPy: fragments are cut from the tiles, and results put together again."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from stencil_dsl.tilelib.errors import TileLibraryError
from stencil_dsl.tilelib.exports import Parameter
from stencil_dsl.tilelib.library import TileLibrary
from stencil_dsl.tilelib.simt import run_function


def evaluate(library: TileLibrary, name: str, tiles: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of a call, in the order of the out and inout parameters.

    NVVM code is run as it stands. A meaning that was given for an export is called instead, with one array a
    parameter: (invocations, participants) for what travels by value, else (invocations, participants, footprint);
    it returns one array a result, of the latter shape or one that broadcasts to it.

    Args:
        tiles: one array a parameter, of its dtype and extents; what an "out" parameter is given is not looked at.

    Raises:
        TileLibraryError: the code cannot be run and has no meaning.
    """
    export = library.export(name)
    arguments = [_fragments(p, t) for p, t in zip(export.parameters, tiles, strict=True)]
    given = library.meanings.get(name)
    if given is not None:
        results = given(*(a for p, a in zip(export.parameters, arguments, strict=True) if p.access != "out"))
        results = results if isinstance(results, tuple) else (results,)
        if len(results) != len(export.results):
            raise TileLibraryError(
                f"the meaning of {name!r} returns {len(results)} values for {len(export.results)} results"
            )
        return [_tile(p, _stretched(p, r)) for p, r in zip(export.results, results, strict=True)]
    if library.language != "nvvm":
        raise TileLibraryError(f"{name!r} is CUDA C++ and has no meaning on NumPy; give one")
    for code in library.code:
        if f"@{export.symbol}(" in code.text:
            run_function(code.text, export.symbol, arguments)
    return [_tile(p, a) for p, a in zip(export.parameters, arguments, strict=True) if p.access != "in"]


def _indices(p: Parameter) -> np.ndarray:
    """Tile index of every fragment element, shape (invocations, participants, footprint)."""
    return np.reshape(p.fragmap.offsets(), p.fragmap.sizes(), order="F")


def _fragments(p: Parameter, tile: np.ndarray) -> np.ndarray:
    if p.access == "out":
        # Nobody may read it: what is not written stays recognisable.
        kind = np.dtype(p.dtype)
        return np.full(p.fragmap.sizes(), np.nan if kind.kind == "f" else np.iinfo(kind).min, kind)
    held = np.ravel(tile, order="F")[_indices(p)]
    return held[:, :, 0] if p.by_value else held


def _stretched(p: Parameter, value: Any) -> np.ndarray:
    value = np.asarray(value, dtype=p.dtype)
    if value.ndim == 2:
        value = value[:, :, None]
    return np.broadcast_to(value, p.fragmap.sizes())


def _tile(p: Parameter, held: np.ndarray) -> np.ndarray:
    flat = np.empty(prod(p.shape), p.dtype)
    flat[_indices(p)] = held
    return np.reshape(flat, p.shape, order="F")
