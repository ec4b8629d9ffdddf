"""What does not matter.

Claim 26: helper functions and closures, a third axis, and axes of extent 1 do not change the machine code or its
speed, so kernels may be written to be read. Source: 002, RTX 4080 SUPER (Ada), tileiras 13.3.

Last measured:
- claim 26, code, sm_90, 13.5.37: holds. 4 of 4 styles have the same machine code; axis of extent 1: same code; third
  axis: 410 instructions, 2-D 459
- claim 26, time, nvidia-h200, 13.5.37: holds. helper / written-out 1.000 (1.000..1.000), claimed equal; closure /
  written-out 1.000 (0.999..1.000), claimed equal; unit-axes / written-out 1.000 (1.000..1.000), claimed equal;
  axis-third / axis-last 1.040 (1.039..1.044), claimed equal
"""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.judging import fact, judged, tie, together
from probes.test_layout_of_reductions import SAME, axes, layouts
from stencil_dsl.testing import (
    Call,
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

FILE = Path(__file__).parent / "kernels/style.py"
KERNELS = {"written-out": "written_out", "helper": "helper", "closure": "closure", "unit-axes": "unit_axes"}
INPUTS = {"u": RandomField(1, "float32"), "v": RandomField(2, "float32")}


def bent(lo, shape):
    import numpy as np

    u, v = (INPUTS[name](lo, shape, np) for name in ("u", "v"))
    return [np.where(u > 0, u, u * np.float32(0.25)) + np.where(v > 0, v, v * np.float32(0.25))]


def styles() -> Question:
    """One elementwise function in four styles."""
    of = Problem((1 << 25,), INPUTS, bent, (1024,), 1e-6, "float32", bytes=12 << 25)

    def call(shape):
        return Call((shape[0] // 128,), (In("u"), In("v"), Out()))

    return of.ask(
        "style", [FunctionVariant(v, of, kernel_text(FILE, kernel), kernel, call) for v, kernel in KERNELS.items()]
    )


@pytest.mark.parametrize("variant", [*KERNELS])
@asks(styles)
def test_style(variant, result):
    result.check()


def test_claim(answers, claim):
    found, reductions = answers(styles), answers(layouts)
    times = [tie(found, "written-out", name) for name in KERNELS if name != "written-out"]
    times.append(tie(reductions, "axis-last", "axis-third"))
    claim(SAME, together([judged(one_code, found), judged(axes, reductions)]), together(times))


def one_code(found) -> Finding:
    """Holds when all four styles have one code section; weaker when one of them has another."""
    codes = [fact(r, "text_hash") for r in found.values()]
    same = sum(code == codes[0] for code in codes)
    words = f"{same} of {len(codes)} styles have the same machine code"
    return Finding("holds" if same == len(codes) else "weaker" if same == len(codes) - 1 else "reversed", words)
