"""Loads through the cache, or by the tensor memory accelerator.

Claim 33: loading cache-first may be worse on NVIDIA than staging by TMA. Source: 003 (an open question there). Here:
where tileiras uses TMA at all when it is allowed to, for plain copies, products and shifted tiles.

Last measured:
- claim 33, code, sm_90, 13.5.37: reversed. none for the sweep: copy 0 TMA instructions, 7-point tiles 0 TMA
  instructions, product 9 TMA instructions; tileiras: base pointer not 16-byte aligned
- claim 33, time, nvidia-h200, 13.5.37: weaker. cache / tma 1.00 (1.00..1.00), claimed 1.03; cache / tma 1.00
  (1.00..1.00), claimed 1.03; cache / tma 5.17 (5.16..5.20), claimed 1.03
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest

from probes.judging import count, gain, judged, needs_times, together
from probes.linear import Sweep
from probes.sweeps import variants
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

FILE = Path(__file__).parent / "kernels/marching.py"
PRODUCTS = FILE.with_name("products.py")
HALVES = {"a": RandomField(1, "float16"), "b": RandomField(2, "float16")}
N = 2048
CLAIM = Claim(
    33,
    "loads through the cache against TMA, where tileiras uses it for tiles of a sweep",
    "003: an open question; cache-first on Intel, TMA proposed for NVIDIA",
)
CHOICES = {"tma": True, "cache": False}
#: A tile large enough to be worth a descriptor.
BLOCK = Sweep(tile=(1, 8, 64))


@dataclass(frozen=True)
class Remarked(FunctionVariant):
    """Adds what tileiras says about its loads to the facts."""

    def compile_facts(self, target) -> dict[str, Any]:
        remarks = self.build(target).remarks
        lines = [line for line in remarks.splitlines() if line.lstrip().startswith("- Reason")]
        words = {line.rsplit("): ", 1)[-1].strip(" '\"") for line in lines}  # without the place in the text
        return super().compile_facts(target) | {"reasons": sorted(words)}


def copied(lo, shape):
    import numpy as np

    return [RandomField(1, "float32")(lo, shape, np)]


def copies() -> Question:
    """Tiles of 64 x 64, copied with and without TMA."""
    shape = (8192, 8192)
    of = Problem(shape, {"u": RandomField(1, "float32")}, copied, (64, 128), 0.0, "float32", bytes=8 << 26)

    def call(tma: bool):
        return lambda shape: Call((shape[0] // 64, shape[1] // 64), (In("u"), Out(), tma))

    text = kernel_text(FILE, "copy_tiles")
    return of.ask("tma-copy", [Remarked(name, of, text, "copy_tiles", call(tma)) for name, tma in CHOICES.items()])


def product(lo, shape):
    import numpy as np

    a = HALVES["a"]((lo[0], 0), (shape[0], N), np).astype(np.float64)
    return [a @ HALVES["b"]((0, lo[1]), (N, shape[1]), np).astype(np.float64)]


def products() -> Question:
    """A product of half-precision matrices, its tiles loaded in both ways."""
    of = Problem((N, N), HALVES, product, (64, 64), 1e-5, "float32", bytes=8 * N * N)

    def call(tma: bool):
        def launch(shape):
            a, b = In("a", None, (shape[0], N)), In("b", None, (N, shape[1]))
            return Call((shape[0] // 64, shape[1] // 64), (a, b, Out(), tma))

        return launch

    text = kernel_text(PRODUCTS, "gemm_loads")
    return of.ask("tma-gemm", [Remarked(name, of, text, "gemm_loads", call(tma)) for name, tma in CHOICES.items()])


def tiles() -> Question:
    """The 7-point star in tiles of 8 rows of 64, with TMA allowed and not."""
    of, made = variants("star-7", {name: replace(BLOCK, tma=tma) for name, tma in CHOICES.items()})
    return of.ask("tma-star-7", [Remarked(**{f.name: getattr(v, f.name) for f in fields(v)}) for v in made])


@pytest.mark.parametrize("variant", [*CHOICES])
@asks(copies)
def test_copy(variant, result):
    result.check()


@pytest.mark.parametrize("variant", [*CHOICES])
@asks(products)
def test_product(variant, result):
    result.check()


@pytest.mark.parametrize("variant", [*CHOICES])
@asks(tiles)
def test_tiles(variant, result):
    result.check()


def test_claim(answers, claim):
    found = {"copy": answers(copies), "7-point tiles": answers(tiles), "product": answers(products)}
    claim(CLAIM, judged(used, found), together(gain(of, "tma", "cache", 1.03) for of in found.values()))


def used(found) -> Finding:
    """Reversed where tileiras uses TMA for no tile of the sweep although it may; else only times decide."""
    uses = {name: count(of["tma"], "UTMA", "UBLKCP") for name, of in found.items()}
    reasons = {reason for of in found.values() for reason in of["tma"].facts.get("reasons", ())}
    words = ", ".join(f"{name} {n} TMA instructions" for name, n in uses.items())
    if reasons:
        words += f"; tileiras: {'; '.join(sorted(reasons))}"
    return needs_times(words) if uses["7-point tiles"] else Finding("reversed", f"none for the sweep: {words}")
