"""Which sweeps become one kernel, and that this changes no value."""

from __future__ import annotations

import numpy as np
import pytest

from stencil_dsl import StencilError, stencil
from stencil_dsl.solve import Periodic, System, TimeLoop
from stencil_dsl.solve.fusion import Fusion

RNG = np.random.default_rng(31)


@stencil
def hx_next(hx, e, c, i, j):
    return hx[i, j] - c * (e[i, j + 1] - e[i, j])


@stencil
def hy_next(hy, e, c, i, j):
    return hy[i, j] + c * (e[i + 1, j] - e[i, j])


@stencil
def e_next(e, hx_next, hy_next, c, i, j):
    return e[i, j] + c * (hy_next[i, j] - hy_next[i - 1, j] - hx_next[i, j] + hx_next[i, j - 1])


MAXWELL = System([hx_next, hy_next, e_next], {"hx": "hx_next", "hy": "hy_next", "e": "e_next"})
RULES = {name: Periodic() for name in ("e", "hx", "hy")}


def test_sweeps_that_share_a_field_are_fused() -> None:
    """The predicted gain is about the time to read the common field once more."""
    module = MAXWELL.module("float64")
    shape = (4096, 4096)
    fusion = Fusion(module, shape, "float64", "sm_90", "fast")
    assert fusion.groups() == ("hx_next hy_next",)
    seconds = {tuple(s.pieces[0].callee.string_value() for s in group): t for group, t in fusion.known.items()}
    saved = seconds["hx_next",] + seconds["hy_next",] - seconds["hx_next", "hy_next"]
    one_field = 8 * np.prod(shape) / 4.8e12
    assert 0.5 * one_field < saved < 2 * one_field


def test_values_do_not_depend_on_fusion() -> None:
    results = []
    for fuse in ("auto", "none", [["hy_next", "hx_next"]]):
        loop = TimeLoop(MAXWELL, (5, 6), RULES, device="cpu", order="source", fuse=fuse)
        assert len(loop.program.kernels) == (3 if fuse == "none" else 2)
        rng = np.random.default_rng(1)
        for name in ("e", "hx", "hy"):
            loop.set(name, rng.normal(size=(5, 6)))
        loop.run(3, c=0.4)
        results.append([loop.to_numpy(name) for name in ("e", "hx", "hy")])
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([["hx_next", "e_next"]], "cannot join .* it is computed from it"),
        ([["hx_next", "magnet"]], "no sweep makes a field 'magnet'"),
    ],
)
def test_impossible_groups_are_refused(groups: list[list[str]], message: str) -> None:
    with pytest.raises(StencilError, match=message):
        TimeLoop(MAXWELL, (5, 6), RULES, device="cpu", fuse=groups)


def test_groups_do_not_depend_on_each_other_through_third_sweeps() -> None:
    """a1 -> b1 and b2 -> a2 may be fused as {a1, b2} and then {b1, a2}, but not crosswise."""

    @stencil
    def a1(u, i):
        return u[i] + 1.0

    @stencil
    def b1(a1, u, i):
        return a1[i] + u[i]

    @stencil
    def b2(u, i):
        return u[i] * 2.0

    @stencil
    def a2(b2, u, i):
        return b2[i] - u[i]

    @stencil
    def last(b1, a2, u, i):
        return b1[i] + a2[i] + u[i]

    loop = TimeLoop(System([a1, b1, b2, a2, last], {"u": "last"}), (8,), device="cpu")
    assert len(loop.program.kernels) < 5
    u = RNG.normal(size=8)
    loop.set("u", u)
    loop.run(2)
    for _ in range(2):
        u = (u + 1 + u) + (2 * u - u) + u
    assert np.allclose(loop.to_numpy("u"), u)
