"""What tests of time loops share."""

from __future__ import annotations

import numpy as np

from stencil_dsl import stencil
from stencil_dsl.solve import TimeLoop


def laplacian(p: np.ndarray) -> np.ndarray:
    """Of the cells inside a padded array."""
    return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4.0 * p[1:-1, 1:-1]


def on_host(*args, **more) -> TimeLoop:
    return TimeLoop(*args, device="cpu", **more)


@stencil
def heat(u, dt, i, j):
    return u[i, j] + dt * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j])


@stencil
def wave(u, old, c, i, j):
    return 2.0 * u[i, j] - old[i, j] + c * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j])


@stencil
def spread_old(u, old, i, j):
    return u[i, j] + 0.1 * (old[i - 1, j] + old[i + 1, j] - 2.0 * old[i, j])


@stencil
def e_next(e, h, c, i):
    return e[i] + c * (h[i] - h[i - 1])


@stencil
def h_next(h, e_next, c, i):
    return h[i] + c * (e_next[i + 1] - e_next[i])
