"""The model of several GPUs: its limits, and what it says of a case worked out by hand."""

from __future__ import annotations

import pytest

from stencil_dsl.solve.scaling import Link, Work, predict

STAR = Work(0.58e-3 / 512**3, radius=1, bytes_a_cell=8, launch=3e-6, narrow=2.0)


def test_one_gpu_is_the_measure() -> None:
    alone = predict((512, 512, 512), (1, 1, 1), STAR)
    assert alone.efficiency == 1 and alone.bound == "cells" and alone.faces == 0
    assert alone.total == pytest.approx(0.583e-3)


def test_two_gpus_by_hand() -> None:
    """Two planes of 512^2 cells in the rim of each; one face of 2 MiB each way beside the inner part."""
    both = predict((1024, 512, 512), (2, 1, 1), STAR)
    plane = 0.58e-3 / 512
    assert both.faces == pytest.approx(4.3e-6 + 2 * 1024**2 / 396e9)
    assert both.inner == pytest.approx(510 * plane + 3e-6) and both.rim == pytest.approx(4 * plane + 6e-6)
    assert both.total == pytest.approx(both.inner + both.rim)
    assert 0.98 < both.efficiency < 0.99


def test_what_bounds_it_changes_with_the_link_and_the_number() -> None:
    slow = predict((1024, 512, 512), (2, 1, 1), STAR, Link(5e-6, 2e9))
    assert slow.bound == "faces" and slow.total == pytest.approx(slow.faces + slow.rim)
    strong = [predict((512, 512, 512), (ranks, 1, 1), STAR) for ranks in (1, 2, 4, 8, 64, 256)]
    assert all(a.efficiency > b.efficiency for a, b in zip(strong, strong[1:], strict=False))
    assert all(a.total > b.total for a, b in zip(strong[:4], strong[1:4], strict=False))
    assert strong[-1].bound != "cells" and strong[-1].inner == 0


def test_cuts_along_two_axes_make_faces_smaller_and_more() -> None:
    rows, both = (predict((4096, 4096, 512), grid, STAR) for grid in ((64, 1, 1), (8, 8, 1)))
    assert both.faces < rows.faces and both.rim < rows.rim and both.efficiency > rows.efficiency
