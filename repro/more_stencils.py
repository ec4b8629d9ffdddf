"""Stencils beside the nine rows: in two dimensions, in one plane, and an expression of two fields."""

from __future__ import annotations

from stencil_dsl import stencil


@stencil
def plane_5(u, i, k):
    return 0.6 * u[i, k] + 0.1 * (u[i - 1, k] + u[i + 1, k] + u[i, k - 1] + u[i, k + 1])


@stencil
def plane_9(u, i, k):
    return sum((0.4, 0.1, 0.05)[abs(a) + abs(c)] * u[i + a, k + c] for a in range(-1, 2) for c in range(-1, 2))


def class_weight(a, c):
    """A weight that differs by both distances, so that no two classes share a coefficient."""
    return 1.0 / (81.0 + 3.0 * (abs(a) + abs(c)) + abs(a * c))


@stencil
def box_81(u, i, k):
    return sum(class_weight(a, c) * u[i + a, k + c] for a in range(-4, 5) for c in range(-4, 5))


@stencil
def in_plane_49(u, i, j, k):
    """7 x 7 points of one plane of a 3-D field."""
    return sum(class_weight(b, c) * u[i, j + b, k + c] for b in range(-3, 4) for c in range(-3, 4))


@stencil
def two_fields_125(u, v, i, j, k):
    """A 125-point box of one field, limited and scaled by the other."""
    near = range(-2, 3)
    box = sum(
        (0.1, 0.04, 0.02, 0.01, 0.006, 0.003, 0.001)[abs(a) + abs(b) + abs(c)] * u[i + a, j + b, k + c]
        for a in near
        for b in near
        for c in near
    )
    return v[i, j, k] * max(box, 0.0) + 0.5 * abs(u[i, j, k] - v[i, j, k])
