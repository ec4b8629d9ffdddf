"""Kernels that do one thing as fast as the device can: what no sweep can be faster than.

Each says how much it does in one launch; amount / time is a ceiling of the floors in the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Ceiling:
    """A kernel and what one launch of it amounts to.

    Attributes:
        id: "copy", "triad", "l1", "l2" or "fma".
        args: names of its arguments; each is a float64 array of `elements`.
        amount: bytes read and written, or fused multiply-adds, in one launch.
        unit: "byte" or "fma".
    """

    id: str
    source: str = field(repr=False)
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: tuple[str, ...]
    elements: dict[str, int]
    amount: int
    unit: str = "byte"


def copy(elements: int) -> Ceiling:
    """b = a; 16 bytes a thread, elements a multiple of 512."""
    body = "b2[i] = a2[i];"
    return _sweep("copy", ("a", "b"), body, elements)


def triad(elements: int) -> Ceiling:
    """c = a + 3 b, as STREAM's; elements a multiple of 512."""
    body = "const double2 p = a2[i], q = b2[i]; c2[i] = make_double2(p.x + 3.0 * q.x, p.y + 3.0 * q.y);"
    return _sweep("triad", ("a", "b", "c"), body, elements)


def _sweep(name: str, arrays: tuple[str, ...], body: str, elements: int) -> Ceiling:
    if elements % 512:
        raise ValueError(f"{name} moves whole blocks of 512 elements, not {elements}")
    reads, write = arrays[:-1], arrays[-1]
    lines = [f'extern "C" __global__ void __launch_bounds__(256) ceiling_{name}(']
    lines.append(", ".join([f"const double* __restrict__ {r}" for r in reads] + [f"double* __restrict__ {write}"]))
    lines += [") {", "  const long long i = (long long)blockIdx.x * 256 + threadIdx.x;"]
    lines += [f"  const double2* {r}2 = reinterpret_cast<const double2*>({r});" for r in reads]
    lines += [f"  double2* {write}2 = reinterpret_cast<double2*>({write});", f"  {body}", "}", ""]
    return Ceiling(
        name,
        "\n".join(lines),
        f"ceiling_{name}",
        (elements // 512, 1, 1),
        (256, 1, 1),
        arrays,
        dict.fromkeys(arrays, elements),
        8 * elements * len(arrays),
    )


# The position goes through an empty asm statement: without it the compiler would see that every round reads
# the same values. Integers, because on many devices float64 additions would be the slower part.
_READ = """extern "C" __global__ void __launch_bounds__({threads}) ceiling_{name}(
    const double* __restrict__ a, double* __restrict__ out) {{
  const uint4* data = reinterpret_cast<const uint4*>(a);
  unsigned at = {start};
  unsigned found = 0;
  for (int round = 0; round < {rounds}; ++round) {{
    const uint4* here = data + {base};
#pragma unroll
    for (int k = 0; k < {unroll}; ++k) {{
      const uint4 v = {load};
      found ^= v.x ^ v.y ^ v.z ^ v.w;
    }}
    asm("" : "+r"(at));
    at = {advance};
  }}
  out[blockIdx.x * {threads} + threadIdx.x] = found;
}}
"""


def l1(sms: int, rounds: int = 1024) -> Ceiling:
    """Every block reads its own 28 KiB again and again: L1 read bandwidth, 16 bytes a lane.

    ``out`` gets the exclusive or of all 32-bit words a thread read.
    """
    threads, unroll, step = 1024, 4, 256
    words = threads + (unroll - 1) * step
    source = _READ.format(
        name="l1",
        threads=threads,
        unroll=unroll,
        rounds=rounds,
        start="threadIdx.x",
        base=f"(blockIdx.x * {words} + at)",
        load=f"here[k * {step}]",
        # Three warps on, around the block: no warp reads the same lines twice in a row.
        advance=f"(at + 96) & {threads - 1}u",
    )
    blocks = 2 * sms
    bytes_read = blocks * threads * rounds * unroll * 16
    sizes = {"a": blocks * words * 2, "out": blocks * threads}
    return Ceiling("l1", source, "ceiling_l1", (blocks, 1, 1), (threads, 1, 1), ("a", "out"), sizes, bytes_read)


def l2(sms: int, footprint: int = 16 << 20, passes: int = 64) -> Ceiling:
    """All blocks read a buffer that fits L2, past L1: L2 read bandwidth.

    Args:
        footprint: bytes, a power of two; well below the L2 of the device, larger than all L1 together where
            that can be had.
        passes: how often the buffer is read in all.
    """
    threads, unroll, words = 512, 4, footprint // 16
    if footprint & (footprint - 1):
        raise ValueError(f"the footprint is a power of two, not {footprint}")
    blocks = 4 * sms
    rounds = max(1, passes * words // (blocks * threads * unroll))
    source = _READ.format(
        name="l2",
        threads=threads,
        unroll=unroll,
        rounds=rounds,
        start=f"blockIdx.x * {threads * unroll} + threadIdx.x",
        base="0",
        load=f"__ldcg(here + ((at + k * {threads}) & {words - 1}u))",
        advance=f"at + {blocks * threads * unroll}",
    )
    bytes_read = blocks * threads * unroll * rounds * 16
    sizes = {"a": words * 2, "out": blocks * threads}
    return Ceiling("l2", source, "ceiling_l2", (blocks, 1, 1), (threads, 1, 1), ("a", "out"), sizes, bytes_read)


def fma(sms: int, rounds: int = 2048, chains: int = 8) -> Ceiling:
    """Independent chains of float64 multiply-adds: ``x = 0.5 x + a``, whose limit is 2 a."""
    threads = 512
    lines = [
        f'extern "C" __global__ void __launch_bounds__({threads})',
        "ceiling_fma(const double* __restrict__ a, double* __restrict__ out) {",
        f"  const int i = blockIdx.x * {threads} + threadIdx.x;",
        "  const double add = a[i];",
        *(f"  double x{k} = {k}.0;" for k in range(chains)),
        f"  for (int round = 0; round < {rounds}; ++round) {{",
        *(f"    x{k} = x{k} * 0.5 + add;" for k in range(chains)),
        "  }",
        f"  out[i] = {' + '.join(f'x{k}' for k in range(chains))};",
        "}",
        "",
    ]
    blocks = 4 * sms
    sizes = dict.fromkeys(("a", "out"), blocks * threads)
    amount = blocks * threads * rounds * chains
    return Ceiling(
        "fma",
        "\n".join(lines),
        "ceiling_fma",
        (blocks, 1, 1),
        (threads, 1, 1),
        ("a", "out"),
        sizes,
        amount,
        "fma",
    )


#: With the device's number of SMs: L1, L2 and multiply-add ceilings.
ON_CHIP: dict[str, Callable[[int], Ceiling]] = {"l1": l1, "l2": l2, "fma": fma}
