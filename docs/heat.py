"""Explicit Euler for the heat equation on a unit grid, used throughout the documentation."""

from stencil_dsl import stencil


@stencil
def heat(u, dt, i, j):
    neighbours = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
    return u[i, j] + dt * (neighbours - 4.0 * u[i, j])
