"""The rows as the baselines write them down, against the DSL's own reading of the same rows."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from repro import stencils
from repro.baselines.model import ROWS, Term, model, sources
from repro.rows import ROWS as TABLE
from stencil_dsl.reference import numpy_eval
from stencil_dsl.transforms.pipeline import default_pipeline

SHAPE = (3, 4, 5)


@pytest.mark.parametrize("row", ROWS)
def test_terms_mean_what_the_dsl_reads(row):
    module = getattr(stencils, TABLE[row].function).module("float64")
    default_pipeline().run(module)
    m = model(row)
    halo = tuple((r, r) for r in m.radius)
    inputs = numpy_eval.random_inputs(module, SHAPE, halo, seed=3)
    want = numpy_eval.evaluate(module, inputs.fields, inputs.origins, SHAPE)

    def read(field, offset):
        array = inputs.fields[m.fields.index(field)]
        return array[tuple(slice(r + d, r + d + n) for r, d, n in zip(m.radius, offset, SHAPE, strict=True))]

    got = m.evaluate(read, np)
    assert len(got) == len(want)
    for ours, theirs in zip(got, want, strict=True):
        assert np.abs(ours - theirs).max() <= 1e-14 * np.abs(theirs).max()


@pytest.mark.parametrize("row", ROWS)
def test_traffic_is_the_tables(row):
    m = model(row)
    assert len(m.loads()) == TABLE[row].loads
    assert m.bytes_per_point == TABLE[row].bytes


@pytest.mark.parametrize("row", ROWS)
def test_sources_lose_no_term(row):
    for terms in model(row).sums:
        again = {
            (product_, offset): coefficient
            for source, table in sources(terms).items()
            for product_ in source
            for offset, coefficient in table.items()
        }
        assert again == {(t.product, t.offset): t.coefficient for t in terms}


def test_products_with_one_derivative_become_one_source():
    terms = [Term(s * w, p, (d, 0, 0)) for d, w, s in ((1, 0.5, 1), (-1, 0.5, -1)) for p in (("c", "q"), ("p",))]
    terms.append(Term(0.25, ("p",), (0, 1, 0)))
    merged = sources(terms)
    assert merged[("c", "q"), ("p",)] == {(1, 0, 0): 0.5, (-1, 0, 0): -0.5}
    assert merged[(("p",),)] == {(0, 1, 0): 0.25}


def test_separate_kernels_read_what_they_need():
    m = model("cns")
    parts = [m.only((k,)) for k in range(5)]
    assert [len(p.loads()) for p in parts] == [24, 56, 56, 56, 72]
    assert sum(p.bytes_per_point for p in parts) == 224


def test_box_classes():
    offsets = {t.offset: t.coefficient for t in model("box-125").sums[0]}
    assert set(offsets) == set(product(range(-2, 3), repeat=3))
    assert offsets[1, -2, 0] == stencils.BOX_125[0][1][2]


def test_unknown_row_is_named():
    with pytest.raises(KeyError, match="star-9.*star-7"):
        model("star-9")
