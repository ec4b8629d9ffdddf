"""Kernels with many parameters.

Claim 20: an array of rank N is 1 + 2 N parameters (pointer, extents, strides); from 32 on a launch through CUDA.jl
costs about 15 us more on the host. Source: 002, Julia. Here: the host's time for launches of a cubin, one after
another, by the number of 3-D arrays. A launch outside a graph takes as long as the host needs to enqueue it.

Last measured:
- claim 20, code, sm_90, 13.5.37: cannot be tested here. only times decide, run with --gpu; the code: 2 arrays (14
  parameters) 64 B, 4 arrays (28 parameters) 128 B, 5 arrays (35 parameters) 160 B, 16 arrays (112 parameters) 512 B
- claim 20, time, nvidia-h200, 13.5.37: weaker. arrays-5 / arrays-4 1.124 (1.104..1.183); arrays-2 8.2 us, arrays-4
  11.7 us, arrays-5 13.2 us, arrays-16 30.8 us
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from probes.judging import fact, judged, needs_times, tie, together
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

FILE = Path(__file__).parent / "kernels/parameters.py"
ARRAYS = (2, 4, 5, 16)
CLAIM = Claim(
    20,
    "from 32 kernel parameters on (five 3-D arrays) a launch costs more on the host",
    "002: CUDA.jl, 15 us and 430 allocations more; not a property of the driver",
)


@dataclass(frozen=True)
class Counted(FunctionVariant):
    """Adds the kernel's parameters to its facts."""

    def compile_facts(self, target) -> dict[str, Any]:
        return super().compile_facts(target) | {"parameter_bytes": parameter_bytes(self.build(target).cubin)}


def parameter_bytes(cubin: bytes) -> int:
    """Size of the parameters: EIATTR_PARAM_CBANK (0x0a) of the kernel's .nv.info holds it in its last 16 bits."""
    import io

    from elftools.elf.elffile import ELFFile

    for section in ELFFile(io.BytesIO(cubin)).iter_sections():
        if section.name.startswith(".nv.info."):
            data, at = section.data(), 0
            while at + 4 <= len(data):
                form, attribute = data[at], data[at + 1]
                size = int.from_bytes(data[at + 2 : at + 4], "little")
                if form == 0x04 and attribute == 0x0A:
                    return int.from_bytes(data[at + 4 + size - 2 : at + 4 + size], "little")
                at += 4 + (size if form == 0x04 else 0)
    raise ValueError("the cubin does not say how large its parameters are")


def first(lo, shape):
    import numpy as np

    return [RandomField(0)(lo, shape, np)]


def launches() -> Question:
    """Copies of one tile by kernels with 2, 4, 5 and 16 arrays: 14, 28, 35 and 112 parameters."""
    of = Problem((1, 1, 128), {"u": RandomField(0)}, first, (1, 1, 128))

    def call(n: int):
        return lambda shape: Call((1,), (*[In("u")] * (n - 1), Out()))

    return of.ask(
        "parameters",
        [
            Counted(f"arrays-{n}", of, kernel_text(FILE, f"arrays_{n}"), f"arrays_{n}", call(n), capturable=False)
            for n in ARRAYS
        ],
        "arrays-4",
    )


@pytest.mark.parametrize("variant", [f"arrays-{n}" for n in ARRAYS])
@asks(launches)
def test_launch(variant, result):
    result.check()


def test_claim(answers, claim):
    found = answers(launches)
    claim(CLAIM, judged(parameters, found), together(jumps(found)))


def parameters(found) -> Finding:
    """Only times decide; the code shows how many bytes of parameters a launch passes."""
    words = ", ".join(
        f"{n} arrays ({7 * n} parameters) {fact(found[f'arrays-{n}'], 'parameter_bytes')} B" for n in ARRAYS
    )
    return needs_times(words)


def jumps(found) -> list[Finding | None]:
    """Reversed (no jump) when 35 parameters cost what 28 do."""
    step = tie(found, "arrays-4", "arrays-5")
    if step is None:
        return []
    swapped = {"holds": "reversed", "reversed": "holds"}.get(step.verdict, step.verdict)
    cost = ", ".join(f"{name} {r.time.median * 1e3:.1f} us" for name, r in found.items())
    return [Finding(swapped, f"{step.why.replace(', claimed equal', '')}; {cost}", "time")]
