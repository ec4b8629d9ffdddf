"""The acoustic wave of Minimod: whole steps and the kernels alone, zero against random data, at sizes up to 800^3.

Five variants make the same steps: the compiler's kernels, in place and not, Triton as the paper describes it, CUDA
with shared memory and plain CUDA. All values are compared with a float64 model after two steps from random fields with
a velocity that changes from cell to cell. A timing makes many steps as CUDA graphs.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from stencil_dsl.testing import Question, asks

VARIANTS = ("dsl", "dsl-apart", "triton", "shared", "plain")
SIZES = (256, 512, 800)
STEPS = {256: 512, 512: 64, 800: 32}
"""Steps of one timing, by size."""

SERIES_SIZE = 512
AFTER = (1000, 2000, 3000, 4000)
"""Steps from rest; the last ones of them are timed."""


def acoustic(size: int, init: str) -> Question:
    """Whole steps from rest or from random fields."""
    from repro.acoustic.model import Cube
    from repro.acoustic.variants import Acoustic

    cube = Cube(size)
    made = [Acoustic(name, cube, "step", init, STEPS[size]) for name in VARIANTS]
    return _question(f"acoustic-{size}-{init}", cube, "step", made, 0)


def series(after: int) -> Question:
    """Steps up to the given one, from rest."""
    from repro.acoustic.model import Cube
    from repro.acoustic.variants import Acoustic

    cube = Cube(SERIES_SIZE)
    made = [Acoustic(name, cube, "step", "zero", STEPS[SERIES_SIZE], after) for name in VARIANTS]
    return _question(f"acoustic-after-{after}", cube, "step", made, 0)


def kernels(size: int, what: str) -> Question:
    """The inner box's kernel, or the six of the layer, beside a copy of the bytes that they must move."""
    from repro.acoustic.model import INNER_BYTES, LAYER_BYTES, Cube
    from repro.acoustic.variants import Acoustic
    from stencil_dsl.testing import CopyVariant

    cube = Cube(size)
    inner = cube.inner_cells
    nbytes = INNER_BYTES * inner if what == "inner" else LAYER_BYTES * (cube.cells - inner)
    made = [Acoustic(name, cube, what) for name in VARIANTS]
    return _question(f"acoustic-{size}-{what}", cube, what, [*made, CopyVariant("copy", nbytes)], nbytes)


def _question(name, cube, what, made, nbytes) -> Question:
    from repro.acoustic.variants import TOLERANCE, expected

    return Question(
        id=name,
        shape=(cube.n,) * 3,
        variants=tuple(made),
        reference=cache(expected(cube, what)),
        tolerance=TOLERANCE,
        dtype="float32",
        bytes=nbytes,
        baseline="dsl",
        limit_s=120.0,
    )


def triad() -> Question:
    """The triad over data of which more and more is random."""
    import numpy as np

    from repro.acoustic.ceilings import ELEMENTS, SHARES, MultiplyAdds, TriadVariant

    return Question(
        id="acoustic-triad",
        shape=(ELEMENTS,),
        variants=(*(TriadVariant(share) for share in SHARES), MultiplyAdds()),
        reference=lambda lo, shape: [np.ones(shape)],
        tolerance=1e-6,
        dtype="float32",
        bytes=12 * ELEMENTS,
        baseline="random-1-of-1",
    )


SHARES = ("1-of-128", "1-of-64", "1-of-32", "1-of-16", "1-of-8", "1-of-4", "1-of-2", "1-of-1")


def variants(*more: str, compiled: bool) -> list[Any]:
    """What is compiled once for all questions on a size is, without a device, compiled in one of them."""
    marks = () if compiled else (pytest.mark.timed_only,)
    return [pytest.param(name, marks=marks) for name in VARIANTS] + [
        pytest.param(name, marks=pytest.mark.timed_only) for name in more
    ]


@pytest.mark.parametrize("variant", variants(compiled=True))
@pytest.mark.parametrize(
    ("size", "init"),
    [
        pytest.param(n, init, id=f"{n}-{init}", marks=() if (n, init) == (512, "zero") else (pytest.mark.timed_only,))
        for n in SIZES
        for init in ("zero", "random")
    ],
)
@asks(acoustic)
def test_step(size, init, variant, result):
    result.check()


@pytest.mark.parametrize("variant", variants(compiled=False))
@pytest.mark.parametrize("after", AFTER)
@asks(series)
def test_series(after, variant, result):
    result.check()


@pytest.mark.parametrize("variant", variants("copy", compiled=False))
@pytest.mark.parametrize("what", ["inner", "layer"])
@pytest.mark.parametrize("size", SIZES[1:])
@asks(kernels)
def test_kernel(size, what, variant, result):
    result.check()


@pytest.mark.timed_only
@pytest.mark.parametrize("variant", [*(f"random-{share}" for share in SHARES), "multiply-adds"])
@asks(triad)
def test_triad(variant, result):
    result.check()
