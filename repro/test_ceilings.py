"""What the device does at best: copy and triad, reads from L1 and from L2, multiply-adds. The floors rest on them."""

from __future__ import annotations

import pytest

from stencil_dsl.testing import Question, asks

KINDS = ("copy", "triad", "l2", "l1", "fma")
ELEMENTS = 1 << 27
"""Of each array of copy and triad: 1 GiB."""


def ceilings() -> Question:
    """Each ceiling once; they are timed in the same rounds."""
    from repro.baselines.harness import CeilingVariant

    made = tuple(CeilingVariant(kind, ELEMENTS) for kind in KINDS)
    return Question("ceilings", (ELEMENTS,), made, bytes=16 * ELEMENTS)


@pytest.mark.parametrize("variant", [pytest.param(f"ceiling-{kind}", marks=pytest.mark.timed_only) for kind in KINDS])
@asks(ceilings)
def test_ceiling(variant, result):
    result.check()
