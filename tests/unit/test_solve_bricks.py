"""The bricked layout: conversion both ways, ghost cells of bricks, a kernel that runs on bricks."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.utils.exceptions import VerifyException

import stencil_dsl
from stencil_dsl import StencilError, stencil
from stencil_dsl.solve.bricks import Bricks

RNG = np.random.default_rng(41)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("shape", "brick"),
    [((16,), (4,)), ((13,), (4,)), ((8, 12), (4, 4)), ((7, 9), (2, 4)), ((4, 8, 6), (2, 4, 3)), ((5, 6, 7), (4, 4, 4))],
)
def test_conversion_both_ways(shape: tuple[int, ...], brick: tuple[int, ...], dtype: str) -> None:
    data = RNG.normal(size=shape).astype(dtype)
    rows = stencil_dsl.asarray(data, halo=1, device="cpu")
    bricks = Bricks.of(rows, brick)
    assert np.array_equal(bricks.values(), data) and bricks.cells.dtype == dtype
    for place in np.ndindex(*bricks.grid):
        inside = tuple(slice(p * b, min((p + 1) * b, n)) for p, b, n in zip(place, brick, shape, strict=True))
        own = bricks.cells[bricks.number(place)]
        assert np.array_equal(own[tuple(slice(0, s.stop - s.start) for s in inside)], data[inside])
        assert np.count_nonzero(own) == data[inside].size, "cells that hang over are zero"
    back = stencil_dsl.zeros(shape, halo=2, dtype=dtype, device="cpu")
    back.full[...] = 7
    bricks.to_rows(back)
    assert np.array_equal(back.interior, data)
    assert np.count_nonzero(back.full != 7) == data.size
    with pytest.raises(StencilError, match="the bricks hold a field of"):
        bricks.to_rows(stencil_dsl.zeros(tuple(n + 1 for n in shape), device="cpu"))


@pytest.mark.parametrize(("shape", "brick", "halo"), [((12,), (4,), 2), ((8, 12), (4, 4), (1, 2)), ((6, 4), (2, 4), 2)])
def test_ghost_cells_are_those_of_a_periodic_field(shape, brick, halo) -> None:
    data = RNG.normal(size=shape)
    bricks = Bricks.of(stencil_dsl.asarray(data, device="cpu"), brick, halo)
    bricks.fill()
    full = bricks.padded.with_halo(((0, 0), *bricks.halo))
    around = np.pad(data, bricks.halo, mode="wrap")
    for place in np.ndindex(*bricks.grid):
        box = tuple(slice(p * b, p * b + b + sum(w)) for p, b, w in zip(place, brick, bricks.halo, strict=True))
        assert np.array_equal(full[bricks.number(place)], around[box])


def test_a_kernel_on_bricks() -> None:
    @stencil
    def heat(u, n, i, j):
        around = u[n, i - 1, j] + u[n, i + 1, j] + u[n, i, j - 1] + u[n, i, j + 1]
        return u[n, i, j] + 0.1 * (around - 4.0 * u[n, i, j])

    data = RNG.normal(size=(8, 12))
    kernel = stencil_dsl.compile(heat)
    now, after = (Bricks.of(stencil_dsl.asarray(data, device="cpu"), (4, 4), 1) for _ in range(2))
    for _ in range(3):
        now.fill()
        kernel(now.padded, after.padded)
        now, after = after, now
        p = np.pad(data, 1, mode="wrap")
        data = data + 0.1 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * data)
    assert np.allclose(now.values(), data, atol=1e-14)


def test_what_bricks_cannot_be() -> None:
    with pytest.raises(StencilError, match="have no ghost cells"):
        Bricks((4, 4, 4), (2, 2, 2), halo=1)
    with pytest.raises(StencilError, match="that bricks of"):
        Bricks((5,), (2,), halo=1, device="cpu").fill()
    with pytest.raises(StencilError, match="reaches beyond the next brick"):
        Bricks((4,), (2,), halo=3, device="cpu").fill()
    with pytest.raises(VerifyException, match="a brick has positive extents"):
        Bricks((4,), (0,))
