"""Ghost cells against padded NumPy models: every rule, mixed rules, corners, narrow interiors, run-time values."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stencil_dsl
from stencil_dsl import StencilError
from stencil_dsl.dialects.boundary import FaceAttr, face_from_text, face_to_text
from stencil_dsl.solve import (
    Antisymmetric,
    Dirichlet,
    Keep,
    Neumann,
    Outflow,
    Periodic,
    Symmetric,
)
from stencil_dsl.solve.boundaries import Face, face_arrays
from stencil_dsl.solve.ghosts import GhostFill, RunTimeValues

RULES: dict[str, Face] = {
    "periodic": Periodic(),
    "outflow": Outflow(),
    "dirichlet": Dirichlet(1.5),
    "dirichlet-face": Dirichlet(-0.75, at="face"),
    "dirichlet-cell": Dirichlet(0.5, at="cell"),
    "dirichlet-zero": Dirichlet(0.0, at="face"),
    "neumann": Neumann(0.25),
    "neumann-cell": Neumann(-2.0, at="cell"),
    "neumann-zero": Neumann(),
    "symmetric": Symmetric(),
    "symmetric-cell": Symmetric("cell"),
    "antisymmetric": Antisymmetric(),
    "antisymmetric-cell": Antisymmetric("cell"),
    "dirichlet-name": Dirichlet("inflow"),
    "dirichlet-name-face": Dirichlet("inflow", at="face"),
    "neumann-name": Neumann("slope"),
}
SCALARS = {"inflow": -3.25, "slope": 0.625}


def number(rule: Any) -> float:
    return SCALARS.get(rule.value, rule.value) if isinstance(rule.value, str) else rule.value


def value_at(line: np.ndarray, pair: tuple[Face, Face], i: int) -> np.ndarray:
    """The value of cell i of a line (first axis) that goes on for ever: by recursion on values, cell by cell."""
    n = len(line)
    if 0 <= i < n:
        return line[i]
    rule, k = (pair[0], -i) if i < 0 else (pair[1], i - n + 1)
    if isinstance(rule, Periodic):
        return value_at(line, pair, i % n)
    if isinstance(rule, Outflow):
        return line[0] if i < 0 else line[-1]
    if isinstance(rule, Dirichlet) and rule.at == "ghost":
        return np.full_like(line[0], number(rule))
    inward = k - 1 if rule.at == "face" else k
    mirror = value_at(line, pair, inward if i < 0 else n - 1 - inward)
    if isinstance(rule, Symmetric):
        return mirror
    if isinstance(rule, Antisymmetric):
        return -mirror
    if isinstance(rule, Dirichlet):
        return (2 * number(rule) - mirror).astype(line.dtype)
    assert isinstance(rule, Neumann)
    return (mirror + number(rule) * (2 * k - 1 if rule.at == "face" else 2 * k)).astype(line.dtype)


def model(data: np.ndarray, pairs: list[tuple[Face, Face]], widths: list[tuple[int, int]]) -> np.ndarray:
    """Pad axis after axis."""
    for axis, (pair, (lo, hi)) in enumerate(zip(pairs, widths, strict=True)):
        line = np.moveaxis(data, axis, 0)
        padded = np.stack([value_at(line, pair, i) for i in range(-lo, len(line) + hi)])
        data = np.moveaxis(padded, 0, axis)
    return data


def filled(
    data: np.ndarray,
    pairs: list[tuple[Face, Face]],
    widths: list[tuple[int, int]],
    corners: bool = True,
    whole_sectors: bool = False,
) -> np.ndarray:
    """What GhostFill makes of the data; everything outside is NaN before, and behind as well but for whole sectors."""
    array = stencil_dsl.empty(data.shape, widths, data.dtype, device="cpu")
    array.fill(np.nan)
    array.interior[...] = data
    arrays = {(a, s): r.array for a, pair in enumerate(pairs) for s, r in enumerate(pair) if r.array is not None}
    values = RunTimeValues()
    faces = [(face_from_text(lo.text()), face_from_text(hi.text())) for lo, hi in pairs]
    fill = GhostFill("u", array, faces, widths, values, arrays, corners, whole_sectors)
    values.set(SCALARS)
    fill.apply()
    outside = array.full.copy()
    box = tuple(
        slice(o - lo, o + n + hi) for o, n, (lo, hi) in zip(array.layout.origin, data.shape, widths, strict=True)
    )
    outside[(*box[:-1], slice(None)) if whole_sectors else box] = np.nan
    assert np.isnan(outside).all(), "a cell outside the ghost cells was written"
    return array.with_halo(tuple(widths))


@pytest.mark.parametrize(
    ("rule", "mode"),
    [("periodic", "wrap"), ("symmetric", "symmetric"), ("symmetric-cell", "reflect"), ("outflow", "edge")],
)
@pytest.mark.parametrize("n", [2, 3, 7])
def test_modes_of_numpy(rule: str, mode: str, n: int) -> None:
    """Where NumPy has the rule, its own padding is the model, narrow interiors included."""
    data = np.random.default_rng(n).normal(size=(n, n + 1, n))
    widths = [(4, 1), (2, 5), (3, 3)]
    want = np.pad(data, widths, mode=mode)  # type: ignore[call-overload]
    assert np.array_equal(filled(data, [(RULES[rule],) * 2] * 3, widths), want)


def test_constant_mode_of_numpy() -> None:
    data = np.random.default_rng(0).normal(size=(3, 4))
    want = np.pad(data, [(2, 1), (1, 3)], constant_values=1.5)
    assert np.array_equal(filled(data, [(RULES["dirichlet"],) * 2] * 2, [(2, 1), (1, 3)]), want)


PAIRS = [
    (a, b) for a, b in itertools.product(RULES.values(), repeat=2) if isinstance(a, Periodic) == isinstance(b, Periodic)
]


@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_every_pair_of_rules_along_one_axis(n: int) -> None:
    data = np.random.default_rng(n).normal(size=n)
    for pair, widths in itertools.product(PAIRS, [(3, 2), (1, 4)]):
        if n == 1 and any(getattr(r, "at", "") == "cell" for r in pair):
            continue
        got, want = filled(data, [pair], [widths]), model(data, [pair], [widths])
        assert np.allclose(got, want, rtol=1e-14, atol=1e-14), (pair, widths)
        if n == 9:
            assert np.array_equal(got, want), pair


@st.composite
def situations(draw: st.DrawFn) -> tuple[np.ndarray, list[tuple[Face, Face]], list[tuple[int, int]]]:
    ndim = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(2, 6)) for _ in range(ndim))
    pairs = [draw(st.sampled_from(PAIRS)) for _ in range(ndim)]
    widths = [(draw(st.integers(0, 4)), draw(st.integers(0, 4))) for _ in range(ndim)]
    dtype = draw(st.sampled_from(["float64", "float32"]))
    data = np.random.default_rng(draw(st.integers(0, 99))).uniform(-1, 1, shape).astype(dtype)
    return data, pairs, widths


@settings(max_examples=150)
@given(situations())
def test_mixed_rules_with_corners(case: tuple[np.ndarray, list[tuple[Face, Face]], list[tuple[int, int]]]) -> None:
    data, pairs, widths = case
    got, want = filled(data, pairs, widths), model(data, pairs, widths)
    assert got.dtype == want.dtype
    assert np.allclose(got, want, rtol=0, atol=1e-5 if data.dtype == "float32" else 1e-13)


def test_without_corners_only_faces_are_written() -> None:
    data = np.random.default_rng(1).normal(size=(3, 4))
    got = filled(data, [(Periodic(), Periodic())] * 2, [(1, 1), (2, 2)], corners=False)
    want = np.pad(data, [(1, 1), (2, 2)], mode="wrap")
    corner = np.ones(want.shape, bool)
    corner[1:-1], corner[:, 2:-2] = False, False
    assert np.isnan(got[corner]).all() and np.array_equal(got[~corner], want[~corner])


def test_arrays_over_faces() -> None:
    rng = np.random.default_rng(2)
    data, wall, slope = rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 5)), rng.normal(size=(3, 4))
    pairs: list[tuple[Face, Face]] = [
        (Periodic(), Periodic()),
        (Dirichlet(wall), Dirichlet(wall, at="face")),
        (Neumann(slope), Outflow()),
    ]
    got = filled(data, pairs, [(1, 1), (2, 2), (2, 1)])
    inside = got[1:-1, :, 2:-1]
    assert np.array_equal(inside[:, 0], wall) and np.array_equal(inside[:, 1], wall)
    assert np.array_equal(inside[:, -1], 2 * wall - data[:, -2])
    assert np.array_equal(inside[:, -2], 2 * wall - data[:, -1])
    assert np.array_equal(got[1:-1, 2:-2, 1], data[:, :, 0] + slope)
    assert np.allclose(got[1:-1, 2:-2, 0], data[:, :, 1] + 3 * slope)
    # Beyond the array its edge goes on.
    assert np.array_equal(got[0, 0, 2:-1], wall[0]) and np.array_equal(got[-1, 0, 2:-1], wall[-1])


def test_run_time_values_change_between_fills() -> None:
    array = stencil_dsl.zeros((4,), 1, device="cpu")
    values = RunTimeValues()
    rules = [(face_from_text("dirichlet a"), face_from_text("dirichlet b at face"))]
    fill = GhostFill("u", array, rules, [(1, 1)], values)
    assert set(values.names) == {"a", "b"}
    fill.apply()
    assert np.isnan(array.with_halo(((1, 1),))[[0, -1]]).all(), "a value that was never set is seen"
    for a, b in ((1.0, 2.0), (3.0, -1.0)):
        values.set({"a": a, "b": b, "dt": 0.0})
        fill.apply()
        assert array.with_halo(((1, 1),)).tolist() == [a, 0, 0, 0, 0, 2 * b]


def test_keep_leaves_ghost_cells_alone() -> None:
    array = stencil_dsl.zeros((3,), 1, device="cpu")
    array.full[...] = 7.0
    GhostFill("u", array, [(face_from_text("keep"), face_from_text("outflow"))], [(1, 1)], RunTimeValues()).apply()
    array.interior[...] = 1.0
    assert array.with_halo(((1, 1),)).tolist() == [7, 1, 1, 1, 7]


@pytest.mark.parametrize(
    ("faces", "n", "message"),
    [
        (("open", "outflow"), 4, r"reads 'u' across the face z-, which has no rule; give one, such as Periodic"),
        (("symmetric at cell", "outflow"), 1, "needs 2 cells: 'u' across the face z- there is 1"),
        (("symmetric", "keep"), 2, "has 2 cells along z, fewer than its ghost cells need"),
        (("dirichlet array", "keep"), 4, "the face z- of 'u' needs an array of values"),
    ],
)
def test_refused_with_the_reason(faces: tuple[str, str], n: int, message: str) -> None:
    array = stencil_dsl.zeros((n,), 3, device="cpu")
    pair = (face_from_text(faces[0]), face_from_text(faces[1]))
    with pytest.raises(StencilError, match=message):
        GhostFill("u", array, [pair], [(3, 3)], RunTimeValues())


def test_values_of_another_shape_are_refused() -> None:
    array = stencil_dsl.zeros((3, 4), 1, device="cpu")
    keep = face_from_text("keep")
    faces: list[tuple[FaceAttr, FaceAttr]] = [(face_from_text("dirichlet array"), keep), (keep, keep)]
    with pytest.raises(StencilError, match=r"the face x- of 'u' have the shape \(4,\), got \(3,\)"):
        GhostFill("u", array, faces, [(1, 1), (1, 1)], RunTimeValues(), {(0, 0): np.zeros(3)})


@pytest.mark.parametrize("rule", [*RULES.values(), Keep(), Dirichlet(np.zeros(3)), Dirichlet(1e-30)])
def test_texts_are_read_back(rule: Face) -> None:
    face = face_from_text(rule.text())
    assert face_from_text(face_to_text(face)) == face


def test_later_rules_replace_arrays_of_earlier_ones() -> None:
    wall, other = np.zeros(4), np.ones(4)
    rules = {"*": Dirichlet(wall), "x+": Neumann(), "x-": Dirichlet(other)}
    found = face_arrays(rules, 2)
    assert found.keys() == {(0, 0), (1, 0), (1, 1)}
    assert found[0, 0] is other and found[1, 1] is wall
