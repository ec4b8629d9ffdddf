"""The questions on time loops: the waves that they are checked with, on small loops of the host."""

from __future__ import annotations

from functools import partial

import pytest

from repro import test_solvers as questions
from repro.example_cases import CASES
from repro.loops import LoopVariant
from repro.test_examples import NAMES
from stencil_dsl.solve import Periodic

SHAPE = (12, 10, 16)


@pytest.mark.parametrize(
    ("name", "ranks", "more"),
    [("star-7", 0, {}), ("star-25", 2, {"over": "nccl"}), ("star-7", 0, {"temporal_steps": 3})],
)
def test_loops_keep_to_the_waves(name: str, ranks: int, more: dict) -> None:
    options = more | {"engine": "reference"}
    loop = questions.star_loop(name, SHAPE, Periodic(), ranks, options, "cpu", "sm_90")
    loop.set("u", partial(questions.waves, SHAPE, questions.HEIGHTS))
    loop.run(7)
    assert questions.distance(name, SHAPE, loop) < 1e-14
    loop.set("u", 1.0)
    assert questions.distance(name, SHAPE, loop) > 0.01


def test_every_variant_of_a_question_has_a_test() -> None:
    for make, ids in ((questions.step, questions.STEP), (questions.host, questions.HOST)):
        assert tuple(v.id for v in make().variants) == ids
    for what in ("star-7", "star-25", "acoustic"):
        found = questions.scaling(what).variants
        assert tuple(v.id for v in found) == questions.SCALING
        assert all(isinstance(v, LoopVariant) and (v.cells == 2 * 512**3) == ("weak" in v.id) for v in found)
    assert tuple(CASES) == NAMES
