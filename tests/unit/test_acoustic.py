"""The acoustic wave: its model against mathematics, every variant's own kernels against the model, tables by hand."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from repro.acoustic import ceilings, cuda, device, dsl, model, tables, triton_text, variants
from repro.acoustic.__main__ import main
from repro.acoustic.grid import Grid
from repro.acoustic.host import HostRun
from repro.acoustic.model import Cube, Wave
from repro.baselines import emulate
from repro.tables import Table, paper
from stencil_dsl.testing import Question
from stencil_dsl.testing.bench import Bench, check_values
from stencil_dsl.testing.question import Target

needs_compiler = pytest.mark.skipif(emulate.compiler() is None, reason="needs a C++ compiler")
TEXTS = ("triton", "shared", "plain")


# -- the model


def test_the_numbers_of_minimod() -> None:
    assert pytest.approx(1.61015e-3, rel=3e-6) == model.DT
    cube = Cube(800)
    eta = model.profile(cube)
    assert eta[0] == eta[-1] == pytest.approx(0.139032, rel=1e-5)
    assert cube.inner_cells == 746**3
    assert (eta[27:-27] == 0).all() and (np.diff(eta[:28]) < 0).all()


def test_boxes_cover_the_cube_once() -> None:
    cube = Cube(19, 5)
    count = np.zeros((19,) * 3, int)
    for box in (cube.inner, *cube.slabs.values()):
        count[tuple(slice(lo, hi) for lo, hi in box)] += 1
    assert (count == 1).all()
    assert np.array_equal(model.in_layer(cube, (0, 0, 0), (19,) * 3).sum(), 19**3 - cube.inner_cells)


def test_a_cube_needs_room_between_its_layers() -> None:
    with pytest.raises(ValueError, match="no room"):
        Cube(54)


def test_polynomials_of_degree_nine_have_their_derivative() -> None:
    """Eighth order: u is x^9 + y^8 + z^7 in metres; without an older field the step gives 2 u + vp lap u."""
    cube = Cube(16, 2)
    x, y, z = (model.DX * axis for axis in np.ogrid[-8:8, -8:8, -8:8])
    wave = Wave(cube, {"u": x**9 + y**8 + z**7}, vp=1.0)
    wave.step()
    want = 2 * (x**9 + y**8 + z**7) + 72 * x**7 + 56 * y**6 + 42 * z**5
    inside = (slice(4, 12),) * 3
    got = wave.u[inside].copy()
    got[4, 4, 4] -= model.wavelet(0)
    np.testing.assert_allclose(got, want[inside], rtol=1e-10, atol=1e-6 * abs(want[inside]).max())


def test_a_box_is_part_of_the_cube() -> None:
    cube = Cube(30, 7)
    whole = variants.expected(cube, "step")((0, 0, 0), (30,) * 3)
    part = variants.expected(cube, "step")((3, 14, 22), (9, 7, 8))
    for all_cells, box in zip(whole, part, strict=True):
        assert np.array_equal(all_cells[3:12, 14:21, 22:30], box)


def test_the_layer_takes_the_wave_out() -> None:
    rest = {}
    for strength in (1.0, 0.0):
        wave = Wave(Cube(40, 12), vp=(4500.0 * model.DT) ** 2)
        if not strength:
            wave._gain[...], wave._loss[...], wave._decay[...] = 2, 1, 0
        wave.run(160)
        rest[strength] = float(np.linalg.norm(wave.u))
    assert rest[1.0] < 0.05 * rest[0.0]


# -- kernels on the host


@needs_compiler
@pytest.mark.parametrize("cube", [Cube(24, 6), Cube(41, 9)], ids=lambda cube: f"{cube.n}-{cube.layer}")
@pytest.mark.parametrize("variant", TEXTS)
def test_texts_make_the_model_s_steps(variant, cube) -> None:
    """Two steps from random fields, with a velocity that changes from cell to cell."""
    fields = variants._cells(cube)
    want = Wave(cube, *variants._split(fields))
    want.run(2)
    for got, expected in zip(variants.host_step(variant, cube, fields, 2), (want.u, want.phi), strict=True):
        assert abs(got - expected).max() < 1e-6 * abs(expected).max()


@pytest.mark.parametrize("variant", device.INPLACE)
def test_the_compiler_s_kernels_make_the_model_s_steps_in_the_forms_that_are_compiled_ahead(variant) -> None:
    cube, inplace = Cube(16, 4), device.INPLACE[variant]
    fields = variants._cells(cube)
    want = Wave(cube, *variants._split(fields))
    want.step()
    loop = dsl.simulation(cube, "cpu", inplace=inplace)
    for name, values in fields.items():
        dsl.cells(loop, cube, name)[...] = values
    loop.run(1)
    for name, expected in (("u", want.u), ("phi", want.phi)):
        assert abs(dsl.cells(loop, cube, name) - expected).max() < 1e-6 * abs(expected).max()
    assert loop.program.storage.inplace == ({"u_new": "older"} if inplace else {}) | {"phi_new": "phi"}
    whole = np.array(loop["u"].interior)
    dsl.cells(loop, cube, "u")[...] = 0
    assert whole.any() and not loop["u"].interior.any(), "nothing but the cube was written"
    for number in range(loop.program.cycle):
        bound = [sweep.bound.spec for sweep in loop.program.phase(number).sweeps]
        assert [spec.form for spec in bound] == [part.form for part in dsl.parts(cube, inplace)]
        chosen = dsl.schedules(cube, "sm_90", inplace)
        assert [spec.schedule for spec in bound] == [chosen[part.definition.name] for part in dsl.parts(cube, inplace)]


def test_rows_of_the_inner_box_start_on_cache_lines() -> None:
    for n in (256, 512, 800):
        grid = Grid(Cube(n))
        assert grid.at(27, 27, 27) % 32 == grid.strides[1] % 32 == 0
        inner, *slabs = dsl.parts(Cube(n))
        assert all((p.form.inputs[0].offset % 4, p.form.shape[2] % 4) == (0, 0) for p in slabs)
        assert inner.form.inputs[0].offset % 32 == 0


def test_cubes_beyond_32_bit_indices_are_refused() -> None:
    with pytest.raises(ValueError, match="32-bit"):
        Grid(Cube(1400))
    with pytest.raises(KeyError, match="plain, shared"):
        cuda.generate("fast", Cube(60))


def test_a_triton_text_that_leaves_its_allocation_is_found() -> None:
    made = triton_text.generate(Cube(24, 6))
    far = made.source.replace("tl.load(vp + at)", f"tl.load(vp + at + {made.grid.size})")
    run = HostRun(device.Program("triton", made.config, made.grid, far, made.inner, made.layer), {})
    with pytest.raises(IndexError, match="an allocation of"):
        run.step()


# -- as on a device: NumPy for CuPy, the CUDA text on the host


class Stream:
    """A stream that records launches while it captures, and a graph that repeats them."""

    def __init__(self, **_) -> None:
        self.recorded: list | None = None

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        pass

    def begin_capture(self) -> None:
        self.recorded = []

    def end_capture(self):
        calls, self.recorded = self.recorded, None
        return SimpleNamespace(launch=lambda stream: [call() for call in calls])


@cache
def built(source: str) -> emulate.Library:
    return emulate.Library(
        source, re.findall(r'extern "C" __global__ void (?:__launch_bounds__\(\d+\)\s)?(\w+)', source)
    )


class HostDevice:
    """What `TextRun` and the check of values need of a device."""

    def __init__(self) -> None:
        streams = SimpleNamespace(Stream=Stream, get_current_stream=Stream)
        names = ("zeros", "asarray", "where", "abs", "isnan", "uint64", "arange", "float64", "floor", "empty")
        functions = {name: getattr(np, name) for name in (*names, "empty_like", "concatenate")}
        self.xp = SimpleNamespace(cuda=streams, **functions)

    def load_cuda(self, source, name, options):
        library = built(source)

        def launch(grid, block, arguments, stream=None) -> None:
            grid, block = (tuple(extent) + (1,) * (3 - len(extent)) for extent in (grid, block))
            if stream is not None and stream.recorded is not None:
                stream.recorded.append(lambda: library.launch(name, grid, block, arguments))
            else:
                library.launch(name, grid, block, arguments)

        return launch

    def synchronize(self) -> None:
        pass

    def launch(self, enqueue) -> None:
        enqueue(Stream())

    def download(self, values):
        return np.array(values)


def outcome(variant, cube, what) -> dict:
    """Of the check that a device run makes."""
    asked = variants.Acoustic(variant, cube, what, "zero", 16)
    question = Question(
        "q", (cube.n,) * 3, (asked,), reference=variants.expected(cube, what), tolerance=variants.TOLERANCE
    )
    bench = Bench(HostDevice(), question, Target("sm_90"), {})
    found = check_values(bench.device, question, asked.prepare(bench))
    assert found is not None
    return found


@needs_compiler
@pytest.mark.parametrize("what", device.WHAT)
@pytest.mark.parametrize("variant", ["dsl", "dsl-apart", "shared", "plain"])
def test_a_device_run_checks_what_it_times(variant, what, monkeypatch) -> None:
    monkeypatch.setattr(device.cubins, "cubin", lambda *_: None)
    host = dsl.simulation
    monkeypatch.setattr(dsl, "simulation", lambda cube, on, **o: host(cube, "cpu", engine="reference", **o))
    cube = Cube(20, 5)
    found = outcome(variant, cube, what)
    assert found["ok"], found["why"]


@needs_compiler
@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("step", "", ""),
        ("inner", "2.0f * u[at] - v[at]", "2.0f * u[at] + v[at]"),
        ("layer", "phi[at] = (correction -", "phi[at] = (correction +"),
    ],
)
def test_a_device_run_finds_a_wrong_kernel(what, old, new, monkeypatch) -> None:
    cube = Cube(20, 5)
    text = cuda.generate("plain", cube)
    if what == "step":  # the source a cell further
        at = Grid(cube).at(10, 10, 10)
        old, new = f"v[{at}]", f"v[{at + 1}]"
    assert old in text.source
    wrong = device.Program("plain", {}, text.grid, text.source.replace(old, new), text.inner, text.layer)
    monkeypatch.setattr(device.cubins, "cubin", lambda *_: None)
    monkeypatch.setattr(device, "program", lambda *_: wrong)
    assert not outcome("plain", cube, what)["ok"]


def test_graphs_hold_two_steps() -> None:
    run = object.__new__(device.TextRun)
    with pytest.raises(ValueError, match="3 is odd"):
        run.advance(3, None)


# -- ceilings


@pytest.mark.parametrize("share", ceilings.SHARES)
def test_a_share_of_the_triad_s_data_is_random(share) -> None:
    values = ceilings.PartlyRandom(0, share)((64,), (10 * ceilings.RUN,), np)
    assert (values != ceilings.STILL).sum() == share * values.size
    part = ceilings.PartlyRandom(0, share)((300,), (500,), np)
    assert np.array_equal(part, values[300 - 64 : 800 - 64])
    far = ceilings.PartlyRandom(0, share)(((1 << 20) - 40,), (90,), np)
    assert np.array_equal(far[40:], ceilings.PartlyRandom(0, share)((1 << 20,), (50,), np))


@needs_compiler
def test_the_triad_and_the_multiply_adds_compute_what_they_say() -> None:
    elements = 4 * ceilings.THREADS * ceilings.PER_THREAD
    asked = ceilings.TriadVariant(Fraction(1, 4), elements)
    question = Question("q", (elements,), (asked,), reference=lambda lo, shape: [np.ones(shape)], tolerance=1e-6)
    bench = Bench(HostDevice(), question, Target("sm_90"), {})
    found = check_values(bench.device, question, asked.prepare(bench))
    assert found is not None and found["ok"], found
    a, out = np.linspace(0, 1, ceilings.FMA_THREADS, dtype="float32"), np.zeros(ceilings.FMA_THREADS, "float32")
    emulate.Library(ceilings.FMA, ["multiply_adds"]).launch(
        "multiply_adds", (1, 1, 1), (ceilings.FMA_THREADS, 1, 1), [a, out]
    )
    np.testing.assert_allclose(out, 2 * ceilings.CHAINS * a, rtol=1e-5, atol=1e-6)


# -- tables


def record(test: str, variant: str, params: dict, ms: float, **more) -> dict:
    samples = [{"ms": ms, "used": True}] * 9
    name = f"{test}-{'-'.join(map(str, params.values()))}"
    return {
        "kind": "variant", "module": tables.MODULE, "node": f"{tables.MODULE}::{test}[x]", "question": name,
        "variant": variant, "params": params, "samples": samples, "run": name, "facts": {"steps": 32}, **more,
    }  # fmt: skip


def table(*rows: dict) -> Table:
    return Table(Path("x"), "sm_90", (), (), (), {tables.MODULE: rows})


def test_throughput_is_cells_a_second_beside_the_published_ratio() -> None:
    rows = [
        record("test_step", variant, {"size": 512, "init": init}, ms, shape=[512] * 3)
        for init, scale in (("zero", 1.0), ("random", 2.0))
        for variant, ms in (("dsl", 32.0 * scale), ("triton", 48.0 * scale))
    ]
    found = tables.lines(table(*rows))["acoustic"]
    first = found[0]
    assert (first["ms_per_step"], first["gpts"]) == ("1.00000", "134.22")
    assert (first["over_triton"], first["verdict"]) == ("1.500", "faster")
    assert first["paper_over_triton"] == f"{35.8 / 32.5:.3f}"
    assert {line["zero_over_random"] for line in found} == {"2.000"}


def test_kernels_stand_beside_a_copy_and_what_was_counted() -> None:
    inner = Cube(512).inner_cells
    counted = {"metrics": {"dram_read_bytes": 3.0 * inner, "dram_write_bytes": 1.0 * inner, "l2_hit_pct": 41.26}}
    rows = [
        record("test_kernel", "dsl", {"size": 512, "what": "inner"}, 2.0, profile=counted, facts={"cells": inner}),
        record("test_kernel", "copy", {"size": 512, "what": "inner"}, 1.0),
    ]
    line, copy = tables.lines(table(*rows))["acoustic_kernels"]
    assert (line["ratio_to_copy"], line["l2_hit_pct"], line["flops_a_dram_byte"]) == ("2.0000", "41.3", "10.250")
    assert float(line["gb_per_s"]) == pytest.approx(16 * inner / 2e-3 / 1e9, rel=1e-3)
    assert copy["gflops"] == ""


def test_the_triad_s_table_is_against_full_random_data() -> None:
    rows = [
        record("test_triad", f"random-1-of-{n}", {}, ms, facts={"amount": 10**9}) for n, ms in ((128, 0.5), (1, 1.0))
    ]
    rows.append(record("test_triad", "multiply-adds", {}, 1.0, facts={"flops": 5 * 10**9}))
    few, full = tables.lines(table(*rows))["acoustic_triad"]
    assert (few["random_share"], few["over_full"], few["paper_over_full"]) == ("1/128", "2.0000", "2.100")
    assert full["gb_per_s"] == "1000.0"
    assert tables.ceilings(table(*rows)) == {"triad": pytest.approx(1e12), "fma": pytest.approx(5e12)}


def test_a_failure_has_its_line() -> None:
    failed = record("test_step", "dsl", {"size": 256, "init": "zero"}, 1.0) | {"samples": None, "failure": "no\nway"}
    (line,) = tables.lines(table(failed))["acoustic"]
    assert (line["failure"], line["gpts"]) == ("no", "")


def test_published_figures_name_their_source() -> None:
    for name in ("acoustic", "acoustic_devices", "acoustic_triad"):
        assert {row["source"] for row in paper(name)} == {"003_2efe40aff7eea218.txt"}


# -- command line


def test_the_model_s_command_prints_its_range(capsys) -> None:
    assert main(["model", "--size", "24", "--layer", "6", "--steps", "5"]) == 0
    wave = Wave(Cube(24, 6))
    wave.run(5)
    assert capsys.readouterr().out == f"u from {wave.u.min():.6f} to {wave.u.max():.6f} after 5 steps\n"
