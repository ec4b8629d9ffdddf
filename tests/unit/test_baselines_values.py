"""Values of the generated CUDA texts, run on the CPU by the host shim."""

from __future__ import annotations

import re

import numpy as np
import pytest

from repro.baselines import arr, ceilings, check, cupy_kernels, emulate, stream, trans
from repro.baselines.base import generator
from repro.baselines.bricks import BrickGrid, run_on_host
from repro.baselines.model import ROWS, model
from stencil_dsl.schedule.layout import Layout

pytestmark = pytest.mark.skipif(emulate.compiler() is None, reason="needs a C++ compiler")

ODD, EVEN = (9, 7, 19), (16, 8, 64)
TOLERANCE = 1e-13

CASES = [
    *(("arr", row, (ODD, EVEN)[k % 2], arr.configs(row)[k % len(arr.BLOCKS)]) for k, row in enumerate(ROWS)),
    *(("stream", row, ODD, stream.configs(row)[0] | {"cx": 5}) for row in ROWS),
    ("stream", "star-7", EVEN, {"cx": 8, "p": 1, "u": 1, "st": "cs"}),
    ("stream", "star-25", EVEN, {"cx": 8, "p": 2, "u": 4, "unroll": 2}),
    ("stream", "box-125", ODD, {"cx": 16, "p": 4, "u": 3, "z": 16}),
    ("stream", "iso3dfd", (17, 8, 64), {"cx": 9, "p": 2, "u": 1, "at": "index"}),
    ("stream", "cns", (17, 4, 18), {"cx": 9, "p": 2, "u": 1, "z": 8, "at": "index", "k": 2}),
    ("stream", "cond", (33, 5, 6), {"cx": 10, "p": 1, "u": 2, "z": 32, "y": 2}),
    *(("trans", row, ODD, trans.configs(row)[k % 4]) for k, row in enumerate(ROWS) if row != "cns"),
    ("trans", "box-125", EVEN, {"b": "4x4x32", "w": 2, "o": 0}),
    ("trans", "star-19", EVEN, {"b": "4x4x16", "w": 1, "o": 0}),
    ("trans", "cns", ODD, {"b": "4x4x32", "w": 4, "o": 0}),
]


@pytest.mark.parametrize(
    ("variant", "row", "shape", "config"), CASES, ids=[f"{v}-{r}-{k}" for k, (v, r, *_) in enumerate(CASES)]
)
def test_values(variant, row, shape, config):
    baseline = generator(variant)(row, shape, config)
    assert check.max_error(baseline) <= TOLERANCE


def test_a_wrong_coefficient_is_seen():
    baseline = arr.generate("star-13", ODD)
    wrong = re.sub(r"0\.07 \*", "0.0700001 *", baseline.source, count=1)
    assert wrong != baseline.source
    assert check.max_error(type(baseline)(**{**vars(baseline), "source": wrong})) > TOLERANCE


def test_a_write_outside_is_seen():
    baseline = arr.generate("star-7", ODD)
    wrong = baseline.source.replace("z >= 19", "z >= 20")
    with pytest.raises(AssertionError, match="values written"):
        check.max_error(type(baseline)(**{**vars(baseline), "source": wrong}))


def test_bricks_may_be_numbered_at_random():
    baseline = trans.generate("box-27", ODD)
    got = run_on_host(baseline, check.fields(baseline), order=5)
    (want,) = check.expected(baseline)
    assert np.abs(got[0] - want).max() <= TOLERANCE * np.abs(want).max()


@pytest.mark.parametrize("brick", trans.BRICKS)
def test_bricks_keep_every_cell(brick):
    shape, halo = (9, 10, 35), (2, 1, 4)
    cells = np.random.default_rng(1).uniform(size=tuple(n + 2 * h for n, h in zip(shape, halo, strict=True)))
    grid = BrickGrid(shape, brick, order=2)
    buffer = grid.pack(cells, halo, np)
    assert buffer.shape == (grid.elements,)
    lo = tuple(-h for h in halo)
    assert np.array_equal(grid.unpack(buffer, lo, cells.shape, np), cells)
    assert np.isfinite(buffer).sum() == cells.size
    assert np.array_equal(grid.unpack(buffer, (3, 2, 7), (4, 5, 6), np), cells[5:9, 3:8, 11:17])


def test_adjacency_lists_the_neighbours():
    grid = BrickGrid((16, 8, 24), (8, 8, 8), order=9)
    brick = grid.ids[2, 1, 3]
    near = grid.adjacency[brick].reshape(3, 3, 3)
    assert np.array_equal(near, grid.ids[1:4, 0:3, 2:5])
    assert near[1, 1, 1] == brick


@pytest.mark.parametrize(
    ("brick", "message"), [("8x8x64", "fold"), ("8x2x8", "fold"), ("2x8x8", "too small for radius")]
)
def test_bricks_that_cannot_be(brick, message):
    with pytest.raises(ValueError, match=message):
        trans.generate("star-25", ODD, {"b": brick, "w": 1, "o": 0})


def test_configurations_that_cannot_be_launched():
    with pytest.raises(ValueError, match="1024"):
        arr.generate("star-7", ODD, {"b": "64x8x4"})
    with pytest.raises(ValueError, match="u at most"):
        stream.generate("star-7", ODD, {"u": 9})


def test_elementwise_operation_of_cupy():
    shape = (4, 3, 5)
    like = arr.generate("cond", shape)
    layout = Layout.padded(shape, like.halo, "float64")
    # What CuPy generates around the operation: a loop over the interior's cells in row-major order.
    sx, sy, _ = layout.strides
    cell = f"result[{layout.offset} + i / 15 * {sx} + i / 5 % 3 * {sy} + i % 5] ="
    body = cupy_kernels.operation(model("cond"), layout).replace("out =", cell)
    source = f"""extern "C" __global__ void elementwise(const double* u, double* result) {{
  const ptrdiff_t i = blockIdx.x;
  {body}
}}"""
    launch = type(like.launches[0])("elementwise", (60, 1, 1), (1, 1, 1), ("u", "out"))
    assert check.max_error(type(like)(**{**vars(like), "source": source, "launches": (launch,)})) <= TOLERANCE


def run_ceiling(made):
    arrays = {name: np.zeros(count) for name, count in made.elements.items()}
    rng = np.random.default_rng(4)
    for name in made.args[:-1]:
        arrays[name][:] = rng.uniform(1.0, 2.0, arrays[name].shape)
    library = emulate.Library(made.source, [made.kernel])
    library.launch(made.kernel, made.grid, made.block, [arrays[name] for name in made.args])
    return arrays


def test_copy_and_triad_move_everything():
    made = ceilings.copy(1024)
    arrays = run_ceiling(made)
    assert np.array_equal(arrays["b"], arrays["a"])
    assert made.amount == 2 * 1024 * 8
    arrays = run_ceiling(ceilings.triad(1024))
    assert np.allclose(arrays["c"], arrays["a"] + 3.0 * arrays["b"], rtol=1e-15)
    with pytest.raises(ValueError, match="512"):
        ceilings.copy(1000)


def test_l1_reads_what_it_counts():
    made = ceilings.l1(1, rounds=4)
    arrays = run_ceiling(made)
    words = arrays["a"].view(np.uint32).reshape(2, -1, 4)  # two blocks
    found = np.bitwise_xor.reduce(words, axis=2)
    lane = np.arange(1024)
    want = np.zeros((2, 1024), dtype=np.uint32)
    for block, step, k in np.ndindex(2, 4, 4):
        want[block] ^= found[block, (lane + 96 * step) % 1024 + 256 * k]
    assert np.array_equal(arrays["out"].reshape(2, 1024), want)
    assert made.amount == 2 * 1024 * 4 * 4 * 16


@pytest.mark.parametrize("passes", [1, 2])
def test_l2_reads_the_whole_buffer_in_every_pass(passes):
    made = ceilings.l2(2, footprint=1 << 18, passes=passes)  # 8 blocks of 2048 words: one pass a round
    arrays = run_ceiling(made)
    found = np.bitwise_xor.reduce(arrays["a"].view(np.uint32))
    out = np.bitwise_xor.reduce(arrays["out"].astype(np.uint32))
    assert out == (found if passes == 1 else 0)  # what is read twice cancels
    assert made.amount == passes * (1 << 18)


def test_fma_chains_reach_their_limit():
    made = ceilings.fma(1, rounds=200, chains=8)
    arrays = run_ceiling(made)
    assert np.allclose(arrays["out"], 8 * 2 * arrays["a"], rtol=1e-13)
    assert made.amount == 4 * 512 * 200 * 8
