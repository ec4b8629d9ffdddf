"""Occupancy and latency hints.

Claim 23: occupancy 2 makes a GEMM up to 1.12 times faster where the grid has two blocks an SM; latency hints on loads
do nothing. Claim 24: bits depend on hints: kernels compiled with other hints differ by an ulp here and there, because
they sum in another order. Source: 002, RTX 4080 SUPER (Ada), tileiras 13.3.

Last measured:
- claim 23, code, sm_90, 13.5.37: weaker. GEMM hint-none 255 registers, GEMM occupancy-2 128 registers, GEMM
  occupancy-4 64 registers; other code with GEMM latency-1, GEMM latency-10, sweep latency-1, sweep latency-4, sweep
  latency-10
- claim 23, time, nvidia-h200, 13.5.37: weaker. hint-none / occupancy-2 1.20 (1.17..1.21), claimed 1.1; latency-1 /
  hint-none 0.990 (0.989..0.990), claimed equal; latency-4 / hint-none 0.966 (0.965..0.967), claimed equal; latency-10
  / hint-none 0.972 (0.971..0.974), claimed equal; latency-1 / hint-none 1.232 ...
- claim 24, code, sm_90, 13.5.37: cannot be tested here. bits are read on a device; 5 of 5 sets of hints have code of
  their own
- claim 24, values, nvidia-h200, 13.5.37: weaker. 1 different results under 5 sets of hints
"""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.judging import Untestable, fact, gain, judged, tie, together
from repro.stencils import star_13
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
    sweep_question,
)

FILE = Path(__file__).parent / "kernels/products.py"
GEMMS = {
    "hint-none": (None, 0),
    "occupancy-2": (2, 0),
    "occupancy-4": (4, 0),
    "latency-1": (None, 1),
    "latency-10": (None, 10),
}
SWEEPS = {"hint-none": None, "latency-1": 1, "latency-4": 4, "latency-10": 10}
INPUTS = {"a": RandomField(1, "float16"), "b": RandomField(2, "float16")}
N = 2048
EFFECT = Claim(
    23,
    "occupancy bounds registers and may pay; latency hints do nothing",
    "002: prefill GEMM up to 1.12x with occupancy 2, no effect of latency; RTX 4080, tileiras 13.3",
)
BITS = Claim(
    24,
    "bit-exactness depends on the hints",
    "002: attention with occupancy 3 or 4 differs by one BF16 ulp in a few outputs; RTX 4080, tileiras 13.3",
)


def product(lo, shape):
    import numpy as np

    a = INPUTS["a"]((lo[0], 0), (shape[0], N), np).astype(np.float64)
    b = INPUTS["b"]((0, lo[1]), (N, shape[1]), np).astype(np.float64)
    return [a @ b]


def gemms() -> Question:
    """A product of half-precision matrices under five sets of hints."""
    of = Problem((N, N), INPUTS, product, (64, 64), 1e-5, "float32", bytes=8 * N * N)

    def call(near: int):
        def launch(shape):
            a, b = In("a", None, (shape[0], N)), In("b", None, (N, shape[1]))
            return Call((shape[0] // 64, shape[1] // 64), (a, b, Out(), near))

        return launch

    return of.ask(
        "gemm-hints",
        [
            FunctionVariant(name, of, kernel_text(FILE, "gemm", occupancy=occupancy), "gemm", call(near))
            for name, (occupancy, near) in GEMMS.items()
        ],
    )


def sweeps() -> Question:
    """The streamed 13-point star with latency hints on its loads."""
    from stencil_dsl import Schedule

    base = Schedule(kind="streaming", tile=(1, 1, 128), pair=2, rows=2, chunk=64, occupancy=4, order="fast")
    schedules = {name: base.with_(latency=latency) for name, latency in SWEEPS.items()}
    return sweep_question("star-13-latency", star_13, (512,) * 3, schedules, copy=False, baseline="hint-none")


@pytest.mark.parametrize("variant", [*GEMMS])
@asks(gemms)
def test_gemm(variant, result):
    result.check()


@pytest.mark.parametrize("variant", [*SWEEPS])
@asks(sweeps)
def test_sweep(variant, result):
    result.check()


def test_claim(answers, claim):
    products, stencils = answers(gemms), answers(sweeps)
    times = [gain(products, "occupancy-2", "hint-none", 1.1)]
    times += [tie(stencils, "hint-none", name) for name in SWEEPS if name != "hint-none"]
    times += [tie(products, "hint-none", name) for name in ("latency-1", "latency-10")]
    claim(EFFECT, judged(codes, products, stencils), together(times))
    claim(BITS, judged(codes_of_hints, products), bits(products))


def codes(products, stencils) -> Finding:
    """Holds when occupancy lowers the GEMM's registers and latency leaves all code alone, weaker when it does not."""
    registers = {name: fact(products[name], "registers") for name in GEMMS}
    changed = [f"GEMM {n}" for n in ("latency-1", "latency-10") if differs(products, n)]
    changed += [f"sweep {n}" for n in SWEEPS if n != "hint-none" and differs(stencils, n)]
    words = ", ".join(f"GEMM {n} {registers[n]} registers" for n in ("hint-none", "occupancy-2", "occupancy-4"))
    words += f"; other code with {', '.join(changed) or 'no latency'}"
    bounded = registers["occupancy-4"] < registers["occupancy-2"] < registers["hint-none"]
    return Finding("reversed" if not bounded else "weaker" if changed else "holds", words)


def differs(found, name: str) -> bool:
    return fact(found[name], "text_hash") != fact(found["hint-none"], "text_hash")


def codes_of_hints(found) -> Finding:
    """Only bits decide."""
    codes = len({fact(r, "text_hash") for r in found.values()})
    raise Untestable(f"bits are read on a device; {codes} of {len(found)} sets of hints have code of their own")


def bits(found) -> Finding | None:
    """Holds when two kernels with different hints give different bits on a device; weaker when all agree."""
    digests = {name: (r.values or {}).get("bits") for name, r in found.items()}
    if not all(digests.values()):
        return None
    kinds = len(set(digests.values()))
    words = f"{kinds} different results under {len(found)} sets of hints"
    return Finding("holds" if kinds > 1 else "weaker", words, "values")
