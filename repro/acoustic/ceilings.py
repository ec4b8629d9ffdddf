"""What the device does at best in float32: a triad over data that is more or less random, and multiply-adds.

The triad shows whether a device compresses its memory: of every 128 elements that are read some are random and the
rest the same number. Where bandwidth does not depend on how many, nothing is compressed.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from stencil_dsl.testing import RandomField
from stencil_dsl.testing.question import Prepared, Target, Variant

RUN = 128
"""Elements in a row of which a share is random."""

SHARES = tuple(Fraction(1, 2**k) for k in range(7, -1, -1))
"""1/128, 1/64, ... 1: the paper's."""

ELEMENTS = 1 << 28
_ROW = 1 << 18
SCALE = 3.0
THREADS, PER_THREAD = 256, 4
STILL = 0.5
"""What is not random."""

TRIAD = f"""
struct alignas(16) Four {{ float x, y, z, w; }};

extern "C" __global__ void __launch_bounds__({THREADS})
triad(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {{
  const long long i = (long long)blockIdx.x * {THREADS} + threadIdx.x;
  const Four p = reinterpret_cast<const Four*>(a)[i], q = reinterpret_cast<const Four*>(b)[i];
  const float s = {SCALE}f;
  reinterpret_cast<Four*>(c)[i] = Four{{p.x + s * q.x, p.y + s * q.y, p.z + s * q.z, p.w + s * q.w}};
}}
"""

CHAINS, ROUNDS, FMA_THREADS = 8, 4096, 512
FMA = "\n".join(
    [
        f'extern "C" __global__ void __launch_bounds__({FMA_THREADS})',
        "multiply_adds(const float* __restrict__ a, float* __restrict__ out) {",
        f"  const int i = blockIdx.x * {FMA_THREADS} + threadIdx.x;",
        "  const float add = a[i];",
        *(f"  float x{k} = {k}.0f;" for k in range(CHAINS)),
        f"  for (int round = 0; round < {ROUNDS}; ++round) {{",
        *(f"    x{k} = x{k} * 0.5f + add;" for k in range(CHAINS)),
        "  }",
        f"  out[i] = {' + '.join(f'x{k}' for k in range(CHAINS))};",
        "}",
        "",
    ]
)
OPTIONS = ("-std=c++17",)


def share_name(share: Fraction) -> str:
    """A test id: "random-1-of-128"."""
    return f"random-{share.numerator}-of-{share.denominator}"


class PartlyRandom:
    """A field along one axis, a share of whose elements is random and the rest `STILL`."""

    def __init__(self, seed: int, share: Fraction) -> None:
        self.random, self.count = RandomField(seed), int(share * RUN)

    def __call__(self, lo: Any, shape: Any, xp: Any) -> Any:
        first, end = lo[0], lo[0] + shape[0]
        # Coordinates of a random field have 20 bits an axis: an index is two of them.
        cuts = [first, *range((first // _ROW + 1) * _ROW, end, _ROW), end]
        parts = [self.random((a // _ROW, a % _ROW), (1, b - a), xp)[0] for a, b in zip(cuts, cuts[1:], strict=False)]
        return xp.where(xp.arange(first, end) % RUN < self.count, xp.concatenate(parts), STILL).astype("float32")


class TriadVariant(Variant):
    """c = a + 3 b with a share of random elements in all three."""

    def __init__(self, share: Fraction, elements: int = ELEMENTS) -> None:
        if elements % (THREADS * PER_THREAD):
            raise ValueError(f"the triad moves whole blocks of {THREADS * PER_THREAD} elements, not {elements}")
        self.share, self.elements, self.id = share, elements, share_name(share)

    def compile_facts(self, target: Target) -> dict[str, Any]:
        return {"schedule": f"{self.share} random", "amount": 12 * self.elements, "share": float(self.share)}

    def prepare(self, bench: Any) -> Prepared:
        kernel = bench.device.load_cuda(TRIAD, "triad", OPTIONS)
        a, b = (filled(PartlyRandom(seed, self.share), self.elements, bench.xp) for seed in (0, 1))
        c = bench.xp.empty_like(a)
        blocks = self.elements // (THREADS * PER_THREAD)

        def read(k: int, lo: tuple[int, ...], shape: tuple[int, ...]) -> Any:
            """1 and the error over what was added, so that one reference serves all shares."""
            first, second = (PartlyRandom(seed, self.share)(lo, shape, np).astype("float64") for seed in (0, 1))
            error = bench.device.download(c[lo[0] : lo[0] + shape[0]]) - (first + SCALE * second)
            return bench.xp.asarray(1.0 + error / (abs(first) + SCALE * abs(second)))

        return Prepared(lambda stream: kernel((blocks,), (THREADS,), (a, b, c), stream), read=read)


class MultiplyAdds(Variant):
    """Independent chains of float32 multiply-adds."""

    id = "multiply-adds"

    def compile_facts(self, target: Target) -> dict[str, Any]:
        return {"schedule": f"{CHAINS} chains a thread"}

    def prepare(self, bench: Any) -> Prepared:
        kernel = bench.device.load_cuda(FMA, "multiply_adds", OPTIONS)
        blocks = 4 * bench.xp.cuda.Device().attributes["MultiProcessorCount"]
        a = bench.xp.ones(blocks * FMA_THREADS, "float32")
        out = bench.xp.empty_like(a)
        flops = 2 * blocks * FMA_THREADS * ROUNDS * CHAINS
        return Prepared(
            lambda stream: kernel((blocks,), (FMA_THREADS,), (a, out), stream), checked=False, facts={"flops": flops}
        )


def filled(source: PartlyRandom, elements: int, xp: Any, part: int = 1 << 24) -> Any:
    """The field on a device, some elements at a time: they are made in 64 bits."""
    found = xp.empty(elements, "float32")
    for at in range(0, elements, part):
        size = min(part, elements - at)
        found[at : at + size] = source((at,), (size,), xp)
    return found
