"""The CUDA kernels of the solvers, run on the host by a C compiler, against what NumPy makes of the same work."""

from __future__ import annotations

import numpy as np
import pytest
from cuda_on_host import COMPILER, build, run
from hypothesis import given, settings
from test_solve_boundaries import SCALARS, filled, situations

import stencil_dsl
from stencil_dsl.dialects.boundary import face_from_text
from stencil_dsl.solve import ghosts, points, slabs
from stencil_dsl.solve.boxes import Domain
from stencil_dsl.solve.device_code import source
from stencil_dsl.solve.ghosts import GhostFill, RunTimeValues
from stencil_dsl.solve.slabs import THREADS, describe, independent

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler here")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    return {d: build(source(d), tmp_path_factory.mktemp(d)) for d in ("float64", "float32")}


def fused(libraries: dict[str, object], dtype: str, launches: list[int]):
    """`actions_of` as on a GPU, with the kernel on the host."""

    def actions_of(parts, xp):
        if not parts or not independent(parts):
            return [s.action(np) for s in parts]
        table, total = describe(parts, lambda a: a.ctypes.data)

        def launch(keep: object = parts) -> None:
            launches.append(total)
            arguments = (table, np.uint32(total))
            run(libraries[dtype], "fill_slabs", (-(-total // THREADS),), (THREADS,), arguments)

        return [launch]

    return actions_of


@settings(max_examples=120)
@given(case=situations())
def test_ghost_cells_have_the_same_bits(libraries: dict[str, object], case) -> None:
    data, pairs, widths = case
    for corners in (True, False):
        want = filled(data, pairs, widths, corners)
        assert np.array_equal(filled(data, pairs, widths, corners, True), want, equal_nan=True)
        launches: list[int] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ghosts, "actions_of", fused(libraries, data.dtype.name, launches))
            got = filled(data, pairs, widths, corners, whole_sectors=True)
        assert np.array_equal(got, want, equal_nan=True)


def test_without_corners_one_launch_fills_all_faces(
    libraries: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    launches: list[int] = []
    monkeypatch.setattr(ghosts, "actions_of", fused(libraries, "float64", launches))
    array = stencil_dsl.zeros((4, 5, 6), 2, device="cpu")
    faces = [(face_from_text("periodic"),) * 2, (face_from_text("outflow"), face_from_text("neumann slope"))] + [
        (face_from_text("dirichlet 1"), face_from_text("antisymmetric"))
    ]
    values = RunTimeValues()
    fill = GhostFill("u", array, faces, [(1, 2)] * 3, values, corners=False)
    values.set(SCALARS)
    fill.apply()
    assert launches == [3 * (5 * 6 + 4 * 6 + 4 * 5)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sources_and_receivers_have_the_same_bits(
    libraries: dict[str, object], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device's branch of both, on host arrays that claim to be on a GPU."""
    rng = np.random.default_rng(3)
    start, series = rng.normal(size=(6, 7)), rng.normal(size=(5, 3))
    places = [(1.5, 2.25), (2, 2), (1.75, 2.5)]

    def simulate(on_device: bool) -> tuple[np.ndarray, np.ndarray]:
        array = stencil_dsl.asarray(start.astype(dtype), 1, device="cpu")
        clock = points.Clock(array)
        domain = Domain.single((6, 7))
        parts = [points.Source("u", places, series, domain), points.Receiver("u", places, domain)]
        if on_device:
            clock.cell = np.zeros(1, "int64")
            monkeypatch.setattr(type(array), "device", "gpu")
            monkeypatch.setattr(points, "array_module", lambda a: np)
            monkeypatch.setattr(points, "compiled", lambda name, d, device: lambda *a: run(libraries[d], name, *a))
            monkeypatch.setattr(points, "_device", lambda a: 0)
        actions = [p.bind(array, clock) for p in parts]
        for p in parts:
            p.prepare(0, 5)
        for _ in range(5):
            for action in actions:
                action()
            if on_device:
                run(libraries[dtype], "tick", (1,), (1,), (clock.cell,))
            clock.now += 1
        parts[1].collect(0, 5)
        return array.interior.copy(), parts[1].samples

    want, got = simulate(False), simulate(True)
    assert np.array_equal(got[0], want[0]) and np.array_equal(got[1], want[1])
    assert not np.array_equal(want[0], start)


def test_the_table_describes_broadcast_sources() -> None:
    dst, src = np.zeros((3, 4)), np.arange(4.0)[None]
    table, total = describe([slabs.Slab(dst, src, np.ones((1, 1)), -1)], lambda a: 99)
    assert total == 12 and table.tolist() == [[12, -1, 99, 99, 99, 1, 3, 4, 0, 4, 1, 0, 0, 1, 0, 0, 0, 1]]
