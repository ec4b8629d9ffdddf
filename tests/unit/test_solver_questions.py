"""The questions on time loops: the waves that they are checked with, on small loops of the host."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from repro import test_solvers as questions
from repro.example_cases import CASES
from repro.loops import LoopVariant, WrongValues
from repro.more_tables import SPECS, csv_text
from repro.tables import Table
from repro.test_examples import NAMES
from stencil_dsl.solve import Periodic
from stencil_dsl.solve.scaling import Work, predict
from stencil_dsl.testing import Target

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


@pytest.mark.parametrize("ranks", [0, 2])
def test_a_loop_is_checked_before_it_is_timed(ranks: int) -> None:
    """What a device run does with a variant, on host arrays; a launch makes its steps, whatever the stream."""
    made: list = []

    def make(device: str, arch: str):
        made.append(questions.star_loop("star-7", SHAPE, Periodic(), ranks, {}, "cpu", arch))
        made[-1].set("u", partial(questions.waves, SHAPE, questions.HEIGHTS))
        return made[-1]

    bench = SimpleNamespace(target=Target("sm_90"))
    variant = LoopVariant("loop", make, 4, 12 * 10 * 16, partial(questions.distance, "star-7", SHAPE))
    prepared = variant.prepare(bench)  # type: ignore[arg-type]
    assert prepared.facts["error"] < 1e-13 and prepared.facts["kernels"] >= 1 and made[0].step == 4
    prepared.enqueue(None)
    assert made[0].step == 8
    with pytest.raises(WrongValues, match="relative error 1 exceeds"):
        replace(variant, error=lambda loop: 1.0).prepare(bench)  # type: ignore[arg-type]


def test_every_variant_of_a_question_has_a_test() -> None:
    for make, ids in ((questions.step, questions.STEP), (questions.host, questions.HOST)):
        assert tuple(v.id for v in make().variants) == ids
    for what in questions.SCALING:
        found = questions.scaling(what).variants
        assert tuple(v.id for v in found) == questions.SCALING[what]
        assert all(isinstance(v, LoopVariant) and (v.cells == 2 * 512**3) == ("weak" in v.id) for v in found)
    assert tuple(CASES) == NAMES


def test_the_table_gives_times_of_steps_and_efficiencies() -> None:
    """Made-up times: a launch makes 96 steps; two GPUs take 2 % longer for twice the cells."""

    def record(test: str, variant: str, ms: float, facts: dict, **params: str) -> dict:
        return {
            "node": f"repro/test_solvers.py::{test}[{variant}]",
            "question": test,
            "variant": variant,
            "arch": "sm_90",
            "dtype": "float64",
            "shape": [512] * 3,
            "facts": {"steps": 96} | facts,
            "params": params,
            "run": "one",
            "samples": [{"ms": ms * (1 + 1e-5 * k), "used": True} for k in range(9)],
        }

    n = 512**3
    rows = (
        record("test_step", "sweep", 48.0, {}),
        record("test_step", "loop", 49.0, {"cells": n, "error": 1e-13, "kernels": 1}),
        record("test_step", "copy", 96.0, {}),
        record("test_scaling", "one", 96.0, {"cells": n}, what="star-7"),
        record("test_scaling", "weak-2", 97.92, {"cells": 2 * n}, what="star-7"),
        record("test_scaling", "strong-2", 60.0, {"cells": n}, what="star-7"),
    )
    spec = next(s for s in SPECS if s.stem == "solvers")
    table = Table(Path("here"), "sm_90", (), (), (), {"repro/test_solvers.py": rows})
    found = {line["variant"]: line for line in csv.DictReader(io.StringIO(csv_text(spec, table)))}
    assert found["loop"]["ms_per_step"] == "0.51044" and found["loop"]["ratio"] == "1.0208"
    assert found["loop"]["ratio_to_copy"] == "0.5104" and found["loop"]["max_rel_err"] == "1.00e-13"
    assert found["weak-2"]["efficiency"] == "0.9804" and found["strong-2"]["efficiency"] == "0.8000"
    said = predict((1024, 512, 512), (2, 1, 1), Work(1e-3 * (1 + 4e-5) / n, 1, 8))
    assert found["weak-2"]["model_efficiency"] == f"{said.efficiency:.4f}" and found["weak-2"]["model_bound"] == "cells"
