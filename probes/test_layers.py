"""Inner region and absorbing layers.

Claim 32: separate kernels for the inner region and the six layers avoid a branch at their boundary; running the six
layers concurrently gains nothing, because the inner kernel alone fills the GPU. Source: 003, acoustic wave with layers
of 27 cells, Intel B580. Here with layers of 32 cells and fourth-order differences.

Last measured:
- claim 32, code, sm_90, 13.5.37: holds. one damped kernel 23 registers, 210 instructions; with a branch 27 and 227;
  seven kernels at most 24 registers
- claim 32, time, nvidia-h200, 13.5.37: weaker. branch / seven-kernels 0.95 (0.95..0.95), claimed 1.03;
  seven-concurrent / seven-kernels 0.983 (0.980..0.985), claimed equal
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from probes.judging import fact, gain, judged, tie, together
from probes.older import function_variant
from probes.series import FunctionSeries
from stencil_dsl.testing import (
    Call,
    Claim,
    Finding,
    FunctionVariant,
    In,
    Out,
    Problem,
    Question,
    RandomField,
    asks,
    kernel_text,
)

FILE = Path(__file__).parent / "kernels/layers.py"
SHAPE, SMALL = (512, 512, 512), (3, 12, 96)
TILE = (1, 4, 32)
U, V = RandomField(0, "float32"), RandomField(1, "float32")
VARIANTS = ("all-damped", "branch", "seven-kernels", "seven-concurrent")
CLAIM = Claim(
    32,
    "separate kernels for inner and absorbing regions beat one with a branch; concurrent layers gain nothing",
    "003: Intel B580, layers of 27 cells",
)


@dataclass(frozen=True)
class Damping:
    """Grows quadratically into the layers of a box, from zero."""

    shape: tuple[int, int, int]
    dtype: str = "float32"

    def __call__(self, lo, shape, xp):
        depth = xp.zeros((1,) * 3)
        for axis, (start, n) in enumerate(zip(lo, shape, strict=True)):
            at, width = xp.arange(start, start + n), wide(self.shape)[axis] * TILE[axis]
            inside = xp.maximum(xp.maximum(width - at, at - (self.shape[axis] - 1 - width)), 0) / width
            depth = xp.maximum(depth, inside.reshape([n if a == axis else 1 for a in range(3)]))
        return (0.125 * depth * depth).astype(self.dtype)


def blocks_of(shape) -> tuple[int, int, int]:
    nx, ny, nz = (n // t for n, t in zip(shape, TILE, strict=True))
    return nx, ny, nz


def wide(shape) -> tuple[int, int, int]:
    """Blocks of a layer along each axis: a sixteenth, which is 32 cells of 512."""
    x, y, z = (max(1, n // 16) for n in blocks_of(shape))
    return x, y, z


def damped(eta: Damping):
    return lambda lo, shape: [step(eta, lo, shape)]


def step(eta: Damping, lo, shape):
    import numpy as np

    reach = 2
    u = U(tuple(a - reach for a in lo), tuple(n + 2 * reach for n in shape), np).astype(np.float64)
    v, e = V(lo, shape, np).astype(np.float64), eta(lo, shape, np).astype(np.float64)

    def at(*shift):
        return u[tuple(slice(reach + s, reach + s + n) for s, n in zip(shift, shape, strict=True))]

    here = at(0, 0, 0)
    lap = -5.625 * here
    for axis in range(3):
        for s, w in ((-2, -0.0625), (-1, 1.0), (1, 1.0), (2, -0.0625)):
            lap = lap + w * at(*(s if a == axis else 0 for a in range(3)))
    new = 2 * here + 0.125 * lap
    return (new - e * e * here + 2 * e * here - v) / (1 + 2 * e)


def regions(shape) -> list[tuple[str, tuple[int, int, int], tuple[int, int, int]]]:
    """(kernel, first block, number of blocks) of the inner region and six layers that together are everything."""
    (nx, ny, nz), (wx, wy, wz) = blocks_of(shape), wide(shape)
    ix, iy, iz = nx - 2 * wx, ny - 2 * wy, nz - 2 * wz
    return [
        ("inner", (wx, wy, wz), (ix, iy, iz)),
        ("layer", (0, 0, 0), (nx, ny, wz)),
        ("layer", (0, 0, nz - wz), (nx, ny, wz)),
        ("layer", (0, 0, wz), (nx, wy, iz)),
        ("layer", (0, ny - wy, wz), (nx, wy, iz)),
        ("layer", (0, wy, wz), (wx, iy, iz)),
        ("layer", (nx - wx, wy, wz), (wx, iy, iz)),
    ]


def launches(shape) -> dict[str, tuple[FunctionVariant, ...]]:
    """The launches of each variant on a box."""
    eta = Damping(shape)
    inputs = {"u": U, "v": V, "eta": eta}
    of = Problem(shape, inputs, damped(eta), shape, 1e-5, "float32", bytes=16 * shape[0] * shape[1] * shape[2])
    u = In("u", (-2, -2, -32), tuple(n + h for n, h in zip(shape, (4, 4, 64), strict=True)))

    def part(kernel: str, first, count) -> FunctionVariant:
        made = Call(tuple(reversed(count)), (u, In("v"), In("eta"), Out(), *first))
        return function_variant(kernel, of, kernel_text(FILE, kernel), kernel, lambda _: made)

    seven = tuple(part(*region) for region in regions(shape))
    return {
        "all-damped": (part("layer", (0, 0, 0), blocks_of(shape)),),
        "branch": (part("branch", wide(shape), blocks_of(shape)),),
        "seven-kernels": seven,
        "seven-concurrent": seven,
    }


def waves() -> Question:
    """One step of the damped wave by one kernel, by one with a branch, and by seven."""
    large, small = launches(SHAPE), launches(SMALL)
    made = [FunctionSeries(v, large[v], v == "seven-concurrent", small[v]) for v in VARIANTS]
    return large["branch"][0].problem.ask("layers", made, "seven-kernels")


@pytest.mark.parametrize("variant", VARIANTS)
@asks(waves)
def test_layers(variant, result):
    result.check()


def test_claim(answers, claim):
    found = answers(waves)
    times = [gain(found, "seven-kernels", "branch", 1.03), tie(found, "seven-kernels", "seven-concurrent")]
    claim(CLAIM, judged(cost, found), together(times))


def cost(found) -> Finding:
    """Holds when the kernel with a branch needs more registers or instructions than the inner one; else weaker."""
    whole, both = found["all-damped"], found["branch"]
    words = f"one damped kernel {fact(whole, 'registers')} registers, {fact(whole, 'instructions')} instructions; "
    words += f"with a branch {fact(both, 'registers')} and {fact(both, 'instructions')}; "
    words += f"seven kernels at most {fact(found['seven-kernels'], 'registers')} registers"
    heavier = fact(both, "instructions") > fact(whole, "instructions")
    return Finding("holds" if heavier else "weaker", words)
