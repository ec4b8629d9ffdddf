"""The published compiler as a variant: asked in another process, its kernels checked and launched like any other."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from repro import opponents
from repro.baselines import published
from repro.baselines.model import model
from repro.rows import ROWS
from repro.test_bricklib import sweep
from stencil_dsl.reference.numpy_eval import evaluate
from stencil_dsl.reference.tile_interpreter import ArrayArg, run
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.testing.bench import Bench, check_values
from stencil_dsl.testing.question import Target

#: A package with the interface that the child process uses; its kernels are one load an access, in one dimension of
#: blocks. It knows the 7-point star only, and is told by an environment variable to compute something else.
PACKAGE = '''
import importlib.util, inspect, os, pathlib, tempfile

CENTRE = os.environ.get("FAKE_CENTRE", "0.4")
CODE = """
import cuda.tile as ct
import cupy as cp

ConstInt = ct.Constant[int]
_HOST = [%s, 0.1]

def _numbers():
    return cp.asarray(_HOST, dtype=cp.float64)

@ct.kernel
def star_7_out_kernel(u, output, numbers, TZ: ConstInt, HZ: ConstInt):
    x, y, z = ct.bid(0), ct.bid(1), ct.bid(2)
    nx, ny, nz = u.shape[0] - 2, u.shape[1] - 2, u.shape[2] - 2 * HZ
    centre = ct.reshape(ct.load(numbers, index=(0,), shape=(1,)), (1, 1, 1))
    side = ct.reshape(ct.load(numbers, index=(1,), shape=(1,)), (1, 1, 1))
    a0 = u.slice(axis=0, start=1, stop=1 + nx).slice(axis=1, start=1, stop=1 + ny)
    s = centre * ct.load(a0.slice(axis=2, start=HZ, stop=HZ + nz), index=(x, y, z), shape=(1, 1, TZ))
    s = s + side * ct.load(a0.slice(axis=2, start=HZ - 1, stop=HZ - 1 + nz), index=(x, y, z), shape=(1, 1, TZ))
    s = s + side * ct.load(a0.slice(axis=2, start=HZ + 1, stop=HZ + 1 + nz), index=(x, y, z), shape=(1, 1, TZ))
    b0 = u.slice(axis=2, start=HZ, stop=HZ + nz)
    b1 = b0.slice(axis=1, start=1, stop=1 + ny)
    s = s + side * ct.load(b1.slice(axis=0, start=0, stop=nx), index=(x, y, z), shape=(1, 1, TZ))
    s = s + side * ct.load(b1.slice(axis=0, start=2, stop=2 + nx), index=(x, y, z), shape=(1, 1, TZ))
    b2 = b0.slice(axis=0, start=1, stop=1 + nx)
    s = s + side * ct.load(b2.slice(axis=1, start=0, stop=ny), index=(x, y, z), shape=(1, 1, TZ))
    s = s + side * ct.load(b2.slice(axis=1, start=2, stop=2 + ny), index=(x, y, z), shape=(1, 1, TZ))
    ct.store(output.slice(axis=0, start=1, stop=1 + nx).slice(axis=1, start=1, stop=1 + ny)
             .slice(axis=2, start=HZ, stop=HZ + nz), index=(x, y, z), tile=s)

def launch_star_7_out(u_in, u_out, stream=None):
    stream = stream or cp.cuda.get_current_stream()
    nx, ny, nz = u_in.shape
    ct.launch(stream, (nx - 2, ny - 2, ct.cdiv(nz - 32, 16)), star_7_out_kernel, (u_in, u_out, _numbers(), 16, 16))
""" % CENTRE

class Result:
    name, halo_widths, tile_sizes, kernel_hints, resources = "star_7_out", (1, 1, 16), (1, 1, 16), {}, None
    inputs, code = ("u",), CODE
    def load_module(self):
        file = pathlib.Path(tempfile.mkdtemp()) / "generated.py"
        file.write_text(self.code)
        spec = importlib.util.spec_from_file_location("generated", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

def stencil(f):
    inspect.getsource(f)
    return f

def compile(f, temporal_blocking):
    if f.__name__ != "star_7_out":
        raise ValueError("cannot read " + f.__name__)
    return Result()
'''
SHAPE = (4, 5, 40)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Installs the package behind an interpreter of its own, and an empty cache."""
    home = tmp_path / "site"
    (home / "cutile").mkdir(parents=True)
    (home / "cutile" / "__init__.py").write_text(PACKAGE)
    (home / "cutile_stencil-9.9.dist-info").mkdir()
    (home / "cutile_stencil-9.9.dist-info" / "METADATA").write_text("Name: cutile-stencil\nVersion: 9.9\n")
    python = tmp_path / "python"
    # The first argument is -I, which would hide the folder.
    python.write_text(f'#!/bin/sh\nshift\nPYTHONPATH={home} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("STENCIL_DSL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(published.VARIABLE, str(python))
    published._version.cache_clear()
    yield python
    published._version.cache_clear()


def variant(row="star-7", shape=SHAPE):
    return published.PublishedVariant(row, shape, {}, "published")


def test_the_generated_kernel_is_checked_without_a_device(package, monkeypatch):
    values = variant().validate(Target("sm_90"))
    assert values["ok"], values["why"]
    monkeypatch.setenv("FAKE_CENTRE", "0.5")
    monkeypatch.setenv("STENCIL_DSL_CACHE", str(package.parent / "other"))
    wrong = variant().validate(Target("sm_90"))
    assert not wrong["ok"] and wrong["max_rel_err"] > 0.01 and "exceeds" in wrong["why"]


def test_the_host_part_does_not_travel(package):
    found = published.generated("star-7", SHAPE, {})
    assert "cupy" not in found["source"] and "launch_" not in found["source"] and "import cuda.tile" in found["source"]
    assert found["version"] == "9.9" and found["halo"] == [1, 1, 16]
    (launch,) = found["launches"]
    assert launch["grid"] == [4, 5, 3]
    fields, numbers, constants = launch["arguments"][:2], launch["arguments"][2], launch["arguments"][3:]
    assert fields == [{"field": "u"}, {"field": "out_0"}] and numbers == {"values": [0.4, 0.1]}
    assert constants == [{"constant": 16}] * 2


def test_an_answer_is_kept_for_machines_without_the_package(package, monkeypatch):
    first = published.generated("star-7", SHAPE, {})
    monkeypatch.delenv(published.VARIABLE)
    monkeypatch.setattr(published, "interpreter", lambda: None)
    assert published.generated("star-7", SHAPE, {}) == first
    with pytest.raises(published.NotInstalled, match="--published"):
        published.generated("star-7", (8, 8, 8), {})


def test_a_refusal_carries_the_packages_words(package):
    with pytest.raises(RuntimeError, match="cannot read cond_out"):
        published.generated("cond", SHAPE, {})


def test_an_interpreter_without_the_package_is_an_error(package, monkeypatch):
    monkeypatch.setenv(published.VARIABLE, sys.executable)
    with pytest.raises(RuntimeError, match="has no cutile-stencil"):
        published.generated("star-7", SHAPE, {})


def test_a_launch_gets_addresses_extents_and_strides(package, monkeypatch):
    """On a device the arrays' facts travel as numbers: here they are put together again and interpreted."""
    made = variant()
    found, launch = made._found(SHAPE)

    def load_cubin(cubin, symbol):
        def start(grid, block, flat, stream):
            assert (cubin, symbol, block) == (b"cubin", "star_7_out_kernel", (1, 1, 1))
            arrays, rest = [], list(flat)
            while rest:
                array, rank = rest.pop(0), None
                rank = array.ndim
                extents, strides, rest = rest[:rank], rest[rank : 2 * rank], rest[2 * rank :]
                assert tuple(extents) == array.shape
                assert tuple(s * array.itemsize for s in strides) == array.strides
                arrays.append(ArrayArg.of(array))
            run(found["source"], symbol, grid, [*arrays, 16, 16], strict_views=False)

        return start

    monkeypatch.setattr(made, "build", lambda target: SimpleNamespace(cubin=b"cubin"))
    host = SimpleNamespace(
        xp=np,
        load_cubin=load_cubin,
        synchronize=lambda: None,
        launch=lambda enqueue: enqueue(None),
        download=np.array,
    )
    question = SimpleNamespace(**vars(sweep("star-7", 256)) | {"shape": SHAPE})
    prepared = made.prepare(Bench(host, question, Target("sm_90"), {}))
    values = check_values(host, question, prepared)
    assert values["ok"], values["why"]


@pytest.mark.parametrize("row", ROWS)
def test_rows_are_asked_for_in_words_that_mean_the_same(row):
    """The text for the published compiler, evaluated with NumPy, against the DSL's definition."""
    m, shape = model(row), (4, 5, 6)
    names = {"stencil": lambda f: f, "max": np.maximum, "abs": np.abs}
    exec(published.stencil_text(m), names)
    rng = np.random.default_rng(3)
    whole = tuple(n + 2 * r for n, r in zip(shape, m.radius, strict=True))
    fields = {f: rng.uniform(-1, 1, whole) for f in m.fields}
    index = np.ogrid[tuple(slice(r, r + n) for r, n in zip(m.radius, shape, strict=True))]
    from repro import stencils

    definition = Definition.of(getattr(stencils, ROWS[row].function), "float64")
    want = evaluate(definition.stencil, list(fields.values()), [m.radius] * len(fields), shape, [])
    for output, expected in zip(m.outputs, want, strict=True):
        only = m.only((m.outputs.index(output),))
        function = names[f"{row.replace('-', '_')}_{output}"]
        got = function(*(fields[f] for f in only.fields), *index)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


def test_configurations_are_the_packages_choice_and_the_published_tables():
    assert opponents.ids("star-7", 256).count("published") == 1
    assert [i for i in opponents.ids("cns", 512) if i.startswith("published")] == [
        "published",
        "published-x1-y2-z64-o4",
    ]
    assert published.request("cns", SHAPE, published.configs("cns")[1])["occupancy"] == 4
    assert json.dumps(published.request("box-125", SHAPE, {}))


def test_what_is_not_installed_is_no_failure():
    assert opponents.absent({"failure": "NotInstalled: cutile-stencil is not installed: ..."})
    assert not opponents.absent({"failure": "RuntimeError: the published compiler failed"}) and not opponents.absent({})
