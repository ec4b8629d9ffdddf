"""The stencils that probes sweep with, and the extents they are timed at."""

from __future__ import annotations

from probes import linear
from probes.linear import Sweep, Terms
from repro import stencils
from stencil_dsl.testing import Problem

#: One field of 512^3 float64 cells is 1 GB: no cache of today holds it.
SHAPE = (512, 512, 512)
#: What the interpreter runs: whole tiles of all shapes that the probes use.
CHECK = (4, 8, 256)

STENCILS: dict[str, Terms] = {
    "star-7": linear.star(stencils.STAR_7),
    "star-13": linear.star(stencils.STAR_13),
    "star-25": linear.star(stencils.STAR_25),
    "box-27": linear.box(stencils._B27, 1),
    "box-125": linear.box(stencils._B125, 2),
}

#: Tiles by elements a thread (128 threads) and layout.
TILES = {
    "row-256": Sweep(tile=(1, 1, 256)),
    "row-128": Sweep(tile=(1, 1, 128)),
    "rows-2x64": Sweep(tile=(1, 2, 64)),
    "cube-4x8x8": Sweep(tile=(4, 8, 8)),
}


def problem(stencil: str) -> Problem:
    """A sweep of the stencil over `SHAPE`."""
    return linear.problem(STENCILS[stencil], SHAPE, CHECK)


def variants(stencil: str, forms: dict[str, Sweep]) -> tuple[Problem, list]:
    """The problem and one contestant a form."""
    of = problem(stencil)
    return of, [linear.variant(name, of, STENCILS[stencil], form) for name, form in forms.items()]
