"""Fields that lie between the points of the grid."""

from __future__ import annotations

import numpy as np
import pytest

from stencil_dsl import FrontendError, stencil
from stencil_dsl.frontend import Field, Staggered, half
from stencil_dsl.solve import Dirichlet, Outflow, System, TimeLoop


def accesses(f) -> list[tuple[str, tuple[int, ...]]]:
    from stencil_dsl.frontend.build import reachable

    return [(n.kind, n.payload) for n in reachable(f.results) if n.category == "access"]


def test_half_offsets_mean_cells() -> None:
    @stencil
    def curl(hx: Staggered[0, 1], hy: Staggered[1], e, i, j):
        return hx[i + half, j - half] + hy[i - 1, j + 1 + half] + e[i + half + half, j] + hy[i, j - 2 - half]

    assert accesses(curl) == [("hx", (0, -1)), ("hy", (-1, 1)), ("e", (1, 0)), ("hy", (0, -3))]


def test_fields_stay_staggered_in_functions_they_are_passed_to() -> None:
    def difference(f, i):
        return f[i + half] - f[i - half]

    @stencil
    def update(h: "Staggered['i', float64]", i):  # noqa: F821, UP037
        return difference(h, i)

    assert accesses(update) == [("h", (0,)), ("h", (-1,))] and update.dtype == "float64"


def _whole(h: Staggered[0], i):
    return h[i + 1]


def _between(e, i):
    return e[i - half]


def _wrong_axis(h: Staggered[1], i, j):
    return h[i + half, j]


def _unknown(h: Staggered[1], i):
    return h[i + half]


def _number(e: Field, i):
    return e[i] * half


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_whole, "field 'h' has its values between the points along 'i'\n.*\n.*\n.*i [+] half or i - half"),
        (_between, "field 'e' has no values between the points along 'i'\n.*\n.*\n.*declare it: e: Staggered"),
        (_wrong_axis, "field 'h' has no values between the points along 'i'"),
        (_unknown, "'h' is staggered along 1, which is no index"),
        (_number, "half a point is used as a number"),
    ],
)
def test_misplaced_accesses_are_refused(function, message: str) -> None:
    with pytest.raises(FrontendError, match=message):
        stencil(function)


def test_staggered_pair_in_a_loop() -> None:
    """h[n] lies between e[n] and e[n + 1]; the walls of the cavity carry e = 0."""

    @stencil
    def e_new(e, h: Staggered[0], c, i):
        return e[i] + c * (h[i + half] - h[i - half])

    @stencil
    def h_new(h: Staggered[0], e_new, c, i):
        return h[i + half] + c * (e_new[i + 1] - e_new[i])

    rules = {"e": {"z+": Dirichlet(0.0)}, "h": Outflow()}
    loop = TimeLoop(System([e_new, h_new], {"e": "e_new", "h": "h_new"}), (12,), rules, device="cpu")
    e, h = np.random.default_rng(3).normal(size=(2, 12))
    loop.set("e", e)
    loop.set("h", h)
    loop.run(4, c=0.5)
    for _ in range(4):
        e = e + 0.5 * np.diff(h, prepend=h[0])
        h = h + 0.5 * np.diff(e, append=0.0)
    assert np.allclose(loop.to_numpy("e"), e) and np.allclose(loop.to_numpy("h"), h)
