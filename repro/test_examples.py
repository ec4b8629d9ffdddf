"""The programs of `examples/` at the size of a GPU: values against a solution, then the time of a step."""

from __future__ import annotations

import pytest

from stencil_dsl.testing import Question, asks


def examples(name: str) -> Question:
    """One program; a launch makes many steps."""
    from repro.example_cases import CASES

    variant = CASES[name]()
    dtype = "float32" if name == "acoustic_3d" else "float64"
    return Question(f"example-{name}", (variant.cells,), (variant,), dtype=dtype, limit_s=60.0)


NAMES = (
    *("heat_1d", "wave_2d", "laplacian_3d", "gray_scott", "fdtd_maxwell_1d", "fdtd_maxwell_2d", "shallow_water"),
    *("advection_upwind", "burgers", "heat_2d_bricked", "acoustic_3d"),
)


@pytest.mark.parametrize(("name", "variant"), [pytest.param(n, n, marks=pytest.mark.timed_only) for n in NAMES])
@asks(examples)
def test_example(name, variant, result):
    result.check()
