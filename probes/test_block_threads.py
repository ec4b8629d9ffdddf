"""How many threads a block has.

Claim 17: every block has 128 threads, whatever its tile. Source: 000 and 002, CUDA 13.2 and 13.3. Since 13.3
``num_worker_warps`` changes that.
Claim 39: eight warps give a row of 256 one element a thread, and the trip through shared memory goes away. Source:
ours, H200, 13.5.

Last measured:
- claim 17, code, sm_90, 13.5.37: weaker. tile-64 128, tile-256 128, tile-1024 128, tile-4096 128; num_worker_warps 4:
  128, 8: 256 (refused: 1, 2, 16)
- claim 39, code, sm_90, 13.5.37: holds. star-13: 6 -> 0 LDS/STS, 64 -> 36 registers; box-27: 30 -> 0 LDS/STS, 92 ->
  64 registers
- claim 39, time, nvidia-h200, 13.5.37: weaker. four-warps / eight-warps 0.99 (0.99..0.99), claimed 1.1; four-warps /
  eight-warps 1.53 (1.52..1.60), claimed 1.1
"""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.judging import fact, gain, judged, recorded, through_shared, together
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

FILE = Path(__file__).parent / "kernels/blocks.py"
LENGTHS = (64, 256, 1024, 4096)
WARPS = (1, 2, 4, 8, 16)
TILES = {f"tile-{n}": (n, None) for n in LENGTHS} | {f"warps-{w}": (1024, w) for w in WARPS}
THREADS = Claim(17, "every block has 128 threads", "000 and 002: RTX PRO 4000 and RTX 4080, CUDA 13.2 and 13.3")
EIGHT = Claim(
    39,
    "eight warps beat four on a row of 256: one element a thread, no shared memory",
    "ours: H200, 13.5.37",
)
ROW = Sweep(tile=(1, 1, 256))
ROWS = {"four-warps": ROW, "eight-warps": ROW.with_(options=(("num_worker_warps", 8),))}
STENCILS = ("star-13", "box-27")


def doubled(lo, shape):
    import numpy as np

    return [2.0 * RandomField(1)(lo, shape, np)]


def blocks() -> Question:
    """The same loop over an array by tiles of several lengths and blocks of several warps."""
    of = Problem((1 << 20,), {"u": RandomField(1)}, doubled, (8192,), bytes=16 << 20)

    def call(n: int):
        return lambda shape: Call((shape[0] // n,), (In("u"), Out(), n))

    return of.ask(
        "block-threads",
        [
            FunctionVariant(name, of, kernel_text(FILE, "double", num_worker_warps=warps), "double", call(n))
            for name, (n, warps) in TILES.items()
        ],
        "tile-1024",
    )


def rows(stencil: str) -> Question:
    """Rows of 256 by four and by eight warps."""
    of, contestants = variants(stencil, ROWS)
    return of.ask(f"{stencil}-warps", contestants)


@pytest.mark.parametrize("variant", [*TILES])
@asks(blocks)
def test_block(variant, result):
    recorded(result)  # 1, 2 and 16 warps want bytecode 13.5


@pytest.mark.parametrize("variant", [*ROWS])
@pytest.mark.parametrize("stencil", STENCILS)
@asks(rows)
def test_row(stencil, variant, result):
    result.check()


def test_claim(answers, claim):
    claim(THREADS, judged(threads, answers(blocks)))
    found = {stencil: answers(rows, stencil=stencil) for stencil in STENCILS}
    claim(EIGHT, judged(shared, found), together(gain(of, "eight-warps", "four-warps", 1.1) for of in found.values()))


def threads(found) -> Finding:
    """Weaker when blocks of any tile have 128 threads but an option changes that; reversed when tiles differ."""
    by_tile = {name: fact(r, "threads") for name, r in found.items() if name.startswith("tile-")}
    by_warps = {w: fact(found[f"warps-{w}"], "threads") for w in WARPS if not found[f"warps-{w}"].failure}
    refused = [w for w in WARPS if w not in by_warps]
    ignored = [w for w in by_warps if found[f"warps-{w}"].facts.get("warnings")]
    words = ", ".join(f"{name} {n}" for name, n in by_tile.items()) + "; num_worker_warps "
    words += ", ".join(f"{w}: {n}" for w, n in by_warps.items())
    if refused:
        words += f" (refused: {', '.join(map(str, refused))})"
    if ignored:
        words += f" (ignored with a warning: {', '.join(map(str, ignored))})"
    if set(by_tile.values()) != {128}:
        return Finding("reversed", words)
    return Finding("holds" if set(by_warps.values()) == {128} else "weaker", words)


def shared(found) -> Finding:
    """Holds when eight warps need no shared memory where four do."""
    uses = {s: (through_shared(of["four-warps"]), through_shared(of["eight-warps"])) for s, of in found.items()}
    words = "; ".join(
        f"{s}: {four} -> {eight} LDS/STS, {fact(found[s]['four-warps'], 'registers')} -> "
        f"{fact(found[s]['eight-warps'], 'registers')} registers"
        for s, (four, eight) in uses.items()
    )
    better = [eight == 0 < four for four, eight in uses.values()]
    worse = [eight > four for four, eight in uses.values()]
    return Finding("holds" if all(better) else "reversed" if any(worse) else "weaker", words)
