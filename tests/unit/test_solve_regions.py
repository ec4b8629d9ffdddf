"""Sweeps of several pieces: boxes of the interior, what they leave, what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
from loop_cases import e_next, heat, on_host, wave

from stencil_dsl import StencilError, stencil
from stencil_dsl.solve import (
    Integrate,
    Periodic,
    Piece,
    Sweep,
    System,
)

RNG = np.random.default_rng(5)


@stencil
def double(u, i, j):
    return 2.0 * u[i, j]


@stencil
def blur(u, i, j):
    return 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


def test_pieces_compute_parts_of_one_field() -> None:
    inner, left, right = [(0, 0), (2, -3)], [(0, 0), (0, 2)], [(0, 0), (-3, 0)]
    pieces = [Piece(blur, box, ["new"]) for box in (inner,)] + [Piece(double, box, ["new"]) for box in (left, right)]
    loop = on_host(System([Sweep(pieces)], {"u": "new"}), (4, 9), {"u": Periodic()})
    u = RNG.normal(size=(4, 9))
    loop.set("u", u)
    loop.run(2)
    for _ in range(2):
        new = 2 * u
        p = np.pad(u, 1, "wrap")
        new[:, 2:-3] = 0.25 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:])[:, 2:-3]
        u = new
    assert np.allclose(loop.to_numpy("u"), u)


def test_cells_outside_the_pieces_keep_their_values() -> None:
    sweep = Sweep([Piece(double, [(1, 3), (0, 4)], ["new"])], onto={"new": "u"})
    loop = on_host(System([sweep], {"u": "new"}), (4, 9))
    u = RNG.normal(size=(4, 9))
    loop.set("u", u)
    loop.run(3)
    u[1:3, 0:4] *= 8
    assert np.array_equal(loop.to_numpy("u"), u)


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        (Sweep([Piece(double, [(0, 3), (0, 0)], ["new"])]), "leave 9 of 36 cells without a value"),
        (Sweep([Piece(double, [(0, 3), (0, 0)], ["new"]), Piece(blur, [(2, 0), (0, 0)], ["new"])]), "overlap"),
        (Sweep([Piece(double, [(0, 5), (0, 0)], ["new"])]), "has no cells or leaves an interior"),
        (Sweep([Piece(blur, [(1, 3), (1, 3)], ["new"])], onto={"new": "u"}), "'u' is read at neighbouring cells"),
    ],
)
def test_pieces_that_cannot_be_are_refused(sweep: Sweep, message: str) -> None:
    with pytest.raises(StencilError, match=message):
        on_host(System([sweep], {"u": "new"}), (4, 9), {"u": Periodic()})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: System([heat, wave]), "say which fields continue as which"),
        (lambda: System([heat], {"u": "nothing"}), "'u' advances to 'nothing'; fields are"),
        (lambda: System([heat, heat], {"u": "heat"}), "two sweeps make 'heat'"),
        (lambda: System([heat, e_next], {"u": "heat"}), "one number of dimensions"),
        (lambda: System([Piece(heat, names={"u": "heat"})], {"u": "heat"}), "computed from each other"),
        (lambda: System([], {}), "at least one stencil"),
        (lambda: on_host(heat, (4, 5)), r"reads 'u' across the face x-, which has no rule"),
        (lambda: on_host(heat, (4,), {"u": Periodic()}), "2 dimensions, the shape is"),
        (lambda: on_host(heat, (4, 5), {"v": Periodic()}), "boundary of an unknown field 'v'"),
        (lambda: on_host(heat, (4, 5), {"u": {"y": Periodic()}}), "unknown face 'y' of a 2-D field; faces are x-, x"),
        (lambda: on_host(heat, (4, 5), {"u": {"x-": Periodic()}}), "periodic on one face along x and open"),
        (
            lambda: on_host(System([wave], {"u": "wave", "old": "wave"}), (4, 5), {"u": Periodic()}),
            "u and old would be",
        ),
        (lambda: Integrate([heat], ["u"], "leapfrog") and System(Integrate([heat], ["u"], "leapfrog")), "needs older="),
        (lambda: System(Integrate([heat], ["u"], "magic")), "unknown method 'magic'; known are euler"),
    ],
)
def test_what_does_not_fit_is_refused(make, message: str) -> None:
    with pytest.raises(StencilError, match=message):
        loop = make()
        loop.run(1)


def test_the_largest_piece_starts_on_a_cache_line() -> None:
    """Its loads are wide then; where rows start in memory changes no value."""

    @stencil
    def inner(u, i, j):
        return u[i, j] + 0.25 * (u[i, j - 1] - u[i, j + 1])

    @stencil
    def edge(u, i, j):
        return 0.5 * u[i, j]

    boxes = ([(0, 0), (5, -3)], [(0, 0), (0, 5)], [(0, 0), (-3, 0)])
    pieces = [Piece(f, box, ["w"]) for f, box in zip((inner, edge, edge), boxes, strict=True)]
    u, found = RNG.normal(size=(4, 40)), []
    for engine in ("kernel", "reference"):
        loop = on_host(System([Sweep(pieces)], {"u": "w"}), u.shape, engine=engine)
        assert {(b.layout.origin[-1] + 5) * 8 % 128 for b in loop.program.buffers} == {0}
        loop.set("u", u)
        loop.run(3)
        found.append(loop.to_numpy("u"))
    assert np.array_equal(*found)
