"""The baselines as variants: prepared and checked as on a GPU, with the host shim in the GPU's place."""

from __future__ import annotations

import contextlib
import functools
import sys
import types

import numpy as np
import pytest

from repro.baselines import emulate, harness, triton_kernels
from repro.baselines.base import generator
from repro.baselines.check import expected, fields
from repro.baselines.model import Model, model
from stencil_dsl.schedule.layout import Layout
from stencil_dsl.testing.bench import Bench, check_values
from stencil_dsl.testing.question import Question, Target
from stencil_dsl.testing.sources import RandomField

SHAPE = (9, 7, 19)
needs_compiler = pytest.mark.skipif(emulate.compiler() is None, reason="needs a C++ compiler")


class HostDevice:
    """Launches CUDA texts through the host shim."""

    xp = np

    def load_cubin(self, cubin, symbol):
        raise NotImplementedError("no machine code here")

    def load_cuda(self, source, name, options):
        library = emulate.Library(source, [name])
        return lambda grid, block, arguments, stream: library.launch(name, grid, block, arguments)

    def launch(self, enqueue):
        enqueue(contextlib.nullcontext())  # where CuPy has a stream

    def synchronize(self):
        pass

    def download(self, values):
        return np.asarray(values)


@pytest.fixture(autouse=True)
def _text_instead_of_machine_code(monkeypatch):
    monkeypatch.setattr(harness.cubins, "cubin", lambda source, arch: None)


def question(baseline, inputs):
    m: Model = baseline.model

    def reference(lo, shape):
        box = tuple(slice(a, a + n) for a, n in zip(lo, shape, strict=True))
        return [values[box] for values in expected(baseline)]

    sources = {name: RandomField(seed) for seed, name in enumerate(inputs or m.fields)}
    return Question("q", SHAPE, (), sources, reference)


@needs_compiler
@pytest.mark.parametrize(
    ("variant", "row", "inputs"),
    [("arr", "iso3dfd", ("a", "b", "c")), ("stream", "cond", ()), ("trans", "box-27", ()), ("trans", "iso3dfd", ())],
)
def test_variant_is_prepared_and_right(variant, row, inputs):
    baseline = generator(variant)(row, SHAPE)
    asked = question(baseline, inputs)
    bench = Bench(HostDevice(), asked, Target("sm_90"), {})
    prepared = harness.BaselineVariant(baseline, variant, inputs).prepare(bench)
    outcome = check_values(bench.device, asked, prepared)
    assert outcome["ok"], outcome
    assert outcome["max_rel_err"] < 1e-13


@needs_compiler
def test_several_launches_share_inputs():
    baseline = generator("stream")("cns", SHAPE, {"p": 1, "u": 1, "cx": 9, "k": 2})
    asked = question(baseline, ())
    shared = {}
    bench = Bench(HostDevice(), asked, Target("sm_90"), shared)
    prepared = harness.BaselineVariant(baseline).prepare(bench)
    assert check_values(bench.device, asked, prepared)["ok"]
    assert len(shared) == len(baseline.model.fields) + len(baseline.model.outputs)


@needs_compiler
def test_validate_says_how():
    outcome = harness.BaselineVariant(generator("arr")("star-7", (64, 64, 64))).validate(Target("sm_90"))
    assert outcome["ok"] and outcome["how"].startswith("host run, 9x7x19")


def test_cupy_slices_compute_the_row():
    asked = question(generator("arr")("cns", SHAPE), ())
    bench = Bench(HostDevice(), asked, Target("sm_90"), {})
    prepared = harness.CupyVariant("cns", SHAPE, "slices").prepare(bench)
    assert check_values(bench.device, asked, prepared)["ok"]


# Triton's language on NumPy: just what the generated texts use.


class Scalar(int):
    def to(self, dtype):
        return self


class Pointer:
    def __init__(self, buffer, at=0):
        self.buffer, self.at = buffer, at

    def __add__(self, offset):
        return Pointer(self.buffer, self.at + offset)


def fake_triton(monkeypatch, program):
    def load(pointer, mask=None, other=None):
        if mask is None:
            return pointer.buffer[pointer.at]  # an index outside the allocation raises
        return np.where(mask, pointer.buffer[np.where(mask, pointer.at, 0)], other)

    def store(pointer, value, mask):
        at = np.broadcast_to(pointer.at, mask.shape)
        pointer.buffer[at[mask]] = np.broadcast_to(value, mask.shape)[mask]

    language = types.ModuleType("triton.language")
    language.program_id = lambda axis: Scalar(program[axis])
    language.arange, language.load, language.store = np.arange, load, store
    language.full = lambda shape, value, dtype: np.full(shape, value, dtype)
    language.maximum, language.abs = np.maximum, np.abs
    language.float64, language.int64 = np.float64, np.int64
    triton = types.ModuleType("triton")
    triton.jit, triton.language = lambda function: function, language
    monkeypatch.setitem(sys.modules, "triton", triton)
    monkeypatch.setitem(sys.modules, "triton.language", language)


@pytest.mark.parametrize("load", ["masked", "wide"])
@pytest.mark.parametrize("row", ["star-25", "box-27", "iso3dfd", "cond", "cns"])
def test_triton_texts_compute_the_row(row, load, monkeypatch):
    baseline = generator("triton")(row, SHAPE, {"load": load, "y": 4, "z": 16, "w": 4})
    layout: Layout = baseline.layout
    arrays = {n: np.full(layout.capacity, np.nan) for n in (*baseline.model.fields, *baseline.model.outputs)}
    box = tuple(slice(o - r, o + n + r) for o, n, r in zip(layout.origin, SHAPE, baseline.model.radius, strict=True))
    size = np.prod(layout.extents)
    for name, values in fields(baseline).items():
        arrays[name][:size].reshape(layout.extents)[box] = values
    program = [0, 0, 0]
    fake_triton(monkeypatch, program)
    kernel = getattr(triton_kernels._module(baseline.source), baseline.kernel_name)
    launch = functools.partial(kernel, *(Pointer(arrays[name]) for name in baseline.args))
    for program[:] in np.ndindex(*baseline.grid):
        launch()
    for name, want in zip(baseline.model.outputs, expected(baseline), strict=True):
        whole = arrays[name][:size].reshape(layout.extents)
        got = whole[tuple(slice(o, o + n) for o, n in zip(layout.origin, SHAPE, strict=True))]
        assert np.abs(got - want).max() <= 1e-13 * np.abs(want).max()
        assert np.isfinite(arrays[name]).sum() == want.size  # nothing beside the interior


def test_a_tile_that_leaves_the_padding_is_refused():
    with pytest.raises(ValueError, match="at most 8 rows"):
        generator("triton")("star-7", SHAPE, {"load": "wide", "y": 16, "z": 32, "w": 4})


def test_jax_computes_the_row():
    pytest.importorskip("jax")
    from repro.baselines.jax_kernels import function

    for row in ("star-13", "cns"):
        baseline = generator("arr")(row, SHAPE)
        inputs = fields(baseline)
        results = function(row, SHAPE)(*(inputs[f] for f in model(row).fields))
        for got, want in zip(results, expected(baseline), strict=True):
            assert np.abs(np.asarray(got) - want).max() <= 1e-13 * np.abs(want).max()
