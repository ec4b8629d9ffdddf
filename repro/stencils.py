"""The nine rows of the table, written in the DSL.

Coefficients are the public ones of the benchmark set (7-, 13-, 25-, 125-point, iso3dfd, CNS hypterm).
The papers do not print those of the 19- and 27-point rows and of cond: the ones here are ours. The
coefficients of every row but iso3dfd and CNS sum to one, so a constant field is preserved: a check that
costs nothing.
"""

from __future__ import annotations

from stencil_dsl import stencil

# Stars: the centre, then one coefficient a distance, the same on every axis and side.
STAR_7 = (0.4, 0.1)
STAR_13 = (0.4, 0.07, 0.03)
STAR_19 = (0.28, 0.07, 0.035, 0.015)
STAR_25 = (0.1, 0.06, 0.045, 0.03, 0.015)


def star(u, c, radius, i, j, k):
    """The sum over a star with coefficients by distance."""
    return c[0] * u[i, j, k] + sum(
        c[r] * u[i - r, j, k]
        + c[r] * u[i + r, j, k]
        + c[r] * u[i, j - r, k]
        + c[r] * u[i, j + r, k]
        + c[r] * u[i, j, k - r]
        + c[r] * u[i, j, k + r]
        for r in range(1, radius + 1)
    )


@stencil
def star_7(u, i, j, k):
    return star(u, STAR_7, 1, i, j, k)


@stencil
def star_13(u, i, j, k):
    return star(u, STAR_13, 2, i, j, k)


@stencil
def star_19(u, i, j, k):
    return star(u, STAR_19, 3, i, j, k)


@stencil
def star_25(u, i, j, k):
    return star(u, STAR_25, 4, i, j, k)


# Boxes: one coefficient a class of offsets, a class being the sorted absolute offsets: [|a|][|b|][|c|].
# 27 points: 000 (1), 001 (6), 011 (12), 111 (8).
_B27 = {"000": 0.28, "001": 0.06, "011": 0.02, "111": 0.015}
# 125 points: 000 (1), 001 (6), 002 (6), 011 (12), 012 (24), 022 (12), 111 (8), 112 (24), 122 (24), 222 (8).
_B125 = {
    "000": 0.1,
    "001": 0.04,
    "002": 0.03,
    "011": 0.01,
    "012": 0.006,
    "022": 0.004,
    "111": 0.005,
    "112": 0.002,
    "122": 0.003,
    "222": 0.001,
}


def _by_offset(classes, radius):
    """Classes as a table that three absolute offsets index."""
    r = range(radius + 1)
    return tuple(tuple(tuple(classes["".join(map(str, sorted((a, b, c))))] for c in r) for b in r) for a in r)


BOX_27 = _by_offset(_B27, 1)
BOX_125 = _by_offset(_B125, 2)


@stencil
def box_27(u, i, j, k):
    return sum(
        BOX_27[abs(a)][abs(b)][abs(c)] * u[i + a, j + b, k + c]
        for a in range(-1, 2)
        for b in range(-1, 2)
        for c in range(-1, 2)
    )


@stencil
def box_125(u, i, j, k):
    return sum(
        BOX_125[abs(a)][abs(b)][abs(c)] * u[i + a, j + b, k + c]
        for a in range(-2, 3)
        for b in range(-2, 3)
        for c in range(-2, 3)
    )


# Isotropic acoustic wave, eighth order in space, second in time: three fields in, one out.
LAP_8 = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)
_ISO = (3 * LAP_8[0], *LAP_8[1:])


@stencil
def iso3dfd(p, p_prev, vel, i, j, k):
    return 2.0 * p[i, j, k] - p_prev[i, j, k] + vel[i, j, k] * star(p, _ISO, 4, i, j, k)


# Seven distinct coefficients of both signs: with signed data max and abs both act.
COND = (0.9, 0.5, -0.35, 0.25, -0.2, 0.15, -0.25)


@stencil
def cond(u, i, j, k):
    return abs(
        COND[0] * max(u[i, j, k], 0.0)
        + COND[1] * max(u[i - 1, j, k], 0.0)
        + COND[2] * max(u[i + 1, j, k], 0.0)
        + COND[3] * max(u[i, j - 1, k], 0.0)
        + COND[4] * max(u[i, j + 1, k], 0.0)
        + COND[5] * max(u[i, j, k - 1], 0.0)
        + COND[6] * max(u[i, j, k + 1], 0.0)
    )


# Compressible Navier-Stokes, hyperbolic terms: eighth-order central differences along each axis, of a
# field, of a product of two, and of the two sums that momentum and energy need. (a, b, c) is the axis as
# a unit offset.
CNS = ((1, 0.8), (2, -0.2), (3, 0.038), (4, -0.0035))
X, Y, Z = (0.01, 1, 0, 0), (0.02, 0, 1, 0), (0.03, 0, 0, 1)


def at(f, r, axis, i, j, k):
    """The field r cells along an axis."""
    return f[i + r * axis[1], j + r * axis[2], k + r * axis[3]]


def d(f, axis, i, j, k):
    """Derivative of f."""
    return axis[0] * sum(w * (at(f, r, axis, i, j, k) - at(f, -r, axis, i, j, k)) for r, w in CNS)


def d_product(f, q, axis, i, j, k):
    """Derivative of f q."""
    return axis[0] * sum(
        w * (at(f, r, axis, i, j, k) * at(q, r, axis, i, j, k) - at(f, -r, axis, i, j, k) * at(q, -r, axis, i, j, k))
        for r, w in CNS
    )


def d_momentum(f, q, p, axis, i, j, k):
    """Derivative of f q + p."""
    return axis[0] * sum(
        w
        * (
            at(f, r, axis, i, j, k) * at(q, r, axis, i, j, k)
            - at(f, -r, axis, i, j, k) * at(q, -r, axis, i, j, k)
            + (at(p, r, axis, i, j, k) - at(p, -r, axis, i, j, k))
        )
        for r, w in CNS
    )


def d_energy(e, p, q, axis, i, j, k):
    """Derivative of e q + p q."""
    return axis[0] * sum(
        w
        * (
            at(e, r, axis, i, j, k) * at(q, r, axis, i, j, k)
            - at(e, -r, axis, i, j, k) * at(q, -r, axis, i, j, k)
            + (at(p, r, axis, i, j, k) * at(q, r, axis, i, j, k) - at(p, -r, axis, i, j, k) * at(q, -r, axis, i, j, k))
        )
        for r, w in CNS
    )


@stencil
def cns(c1, c2, c3, c4, q1, q2, q3, q4, i, j, k):
    rho = -(d(c1, X, i, j, k) + d(c2, Y, i, j, k) + d(c3, Z, i, j, k))
    mx = -(d_momentum(c1, q1, q4, X, i, j, k) + d_product(c1, q2, Y, i, j, k) + d_product(c1, q3, Z, i, j, k))
    my = -(d_product(c2, q1, X, i, j, k) + d_momentum(c2, q2, q4, Y, i, j, k) + d_product(c2, q3, Z, i, j, k))
    mz = -(d_product(c3, q1, X, i, j, k) + d_product(c3, q2, Y, i, j, k) + d_momentum(c3, q3, q4, Z, i, j, k))
    ene = -(d_energy(c4, q4, q1, X, i, j, k) + d_energy(c4, q4, q2, Y, i, j, k) + d_energy(c4, q4, q3, Z, i, j, k))
    return rho, mx, my, mz, ene
