"""Device functions called from tile kernels.

Claim 34: a library function is inlined: no CALL, no local memory; a call that is ordered among memory operations costs
one barrier at two or more warps. Claim 36: a fragmap (which elements a thread is handed) that does not match the layout
that loads give goes through shared memory. Source: 004 and ours, H200, CUDA 13.5. Needs tileiras 13.5.

Last measured:
- claim 34, code, sm_90, 13.5.37: holds. 0 CALL, 0 B of local memory; barriers: calls-1-warps-4 2, calls-2-warps-4 3,
  calls-3-warps-4 4, calls-3-warps-4-pure 0, calls-1-warps-1 0, calls-3-warps-1 0
- claim 36, code, sm_90, 13.5.37: holds. row-256-by-2 0 LDS/STS, row-256-by-1 6 LDS/STS, row-256-by-4 10 LDS/STS,
  row-128-by-1 0 LDS/STS, row-128-by-2 6 LDS/STS
"""

from __future__ import annotations

import pytest

from probes.judging import Untestable, checked, count, fact, judged, through_shared
from stencil_dsl.testing import Call, Claim, Finding, FunctionVariant, In, Out, Problem, Question, RandomField, asks
from stencil_dsl.testing.older import lacking

#: Variant -> (warps, calls, whether they need no order).
CALLS = {
    "calls-1-warps-4": (4, 1, False),
    "calls-2-warps-4": (4, 2, False),
    "calls-3-warps-4": (4, 3, False),
    "calls-3-warps-4-pure": (4, 3, True),
    "calls-1-warps-1": (1, 1, False),
    "calls-3-warps-1": (1, 3, False),
}
#: Variant -> (row, elements a thread of the fragmap, elements a thread of the loaded layout), four warps.
FRAGMAPS = {
    "row-256-by-2": (256, 2, 2),
    "row-256-by-1": (256, 1, 2),
    "row-256-by-4": (256, 4, 2),
    "row-128-by-1": (128, 1, 1),
    "row-128-by-2": (128, 2, 1),
}
LENGTH = 1 << 20
INLINED = Claim(
    34,
    "a library function is inlined: no CALL, no local memory; one barrier an ordered call at two or more warps",
    "004 and ours: sm_90, 13.5.37",
)
MATCHED = Claim(
    36,
    "a fragmap that does not match the loaded layout goes through shared memory",
    "004 and ours: sm_90, 13.5.37",
)


def library(size: int, footprint: int):
    """One function, max(x, 0), whose threads are handed `footprint` neighbours of each 32 * footprint."""
    from stencil_dsl.tilelib import Code, Export, Parameter, TileLibrary
    from stencil_dsl.tilelib.layouts import warpwise
    from stencil_dsl.tilelib.nvvm import FunctionBuilder

    fragmap = warpwise(size, footprint)
    x = Parameter("x", "float64", "in", (size,), fragmap)
    out = Parameter("out", "float64", "out", (size,), fragmap)
    export = Export("positive", "positive_impl", (x, out), "warp").check()
    builder = FunctionBuilder(export)
    for element in range(x.footprint):
        builder.write(1, element, builder.op("max", builder.read(0, element), builder.constant(0.0, "double")))
    return TileLibrary("positives", (export,), (Code("nvvm", builder.text()),))


def text(of, size: int, warps: int, calls: int, pure: bool) -> str:
    """A kernel that calls the function on a tile, as often as asked."""
    return f'''import cuda.tile as ct
from stencil_dsl.tilelib.preview import Tilelib, foreign_call

LIBRARY = Tilelib("positives.tilelib", "{of.digest}")


@ct.kernel(num_worker_warps={warps})
def positives(u, out):
    b = ct.bid(0)
    x = ct.load(u, (b,), ({size},), check_bounds=False, allow_tma=False)
    slot = ct.zeros(({size},), ct.float64)
    for i in range({calls}):
        (x,) = foreign_call((LIBRARY,), "positive", (), (x, slot), ((ct.float64, ({size},)),), pure={pure})
    ct.store(out, (b,), x, check_bounds=False, allow_tma=False)
'''


def expected(lo, shape):
    import numpy as np

    return [np.maximum(RandomField(0)(lo, shape, np), 0.0)]


def variant(name: str, of: Problem, size: int, footprint: int, warps: int, calls: int, pure: bool) -> FunctionVariant:
    def call(shape):
        return Call((shape[0] // size,), (In("u"), Out()))

    functions = library(size, footprint)
    source = text(functions, size, warps, calls, pure)
    return FunctionVariant(name, of, source, "positives", call, libraries=(functions,))


def problem() -> Problem:
    return Problem((LENGTH,), {"u": RandomField(0)}, expected, (512,), 0.0, bytes=16 * LENGTH)


def calls() -> Question:
    """max(x, 0) once, twice and three times, by one warp and by four."""
    of = problem()
    made = [variant(name, of, 32 * warps, 1, warps, n, pure) for name, (warps, n, pure) in CALLS.items()]
    return of.ask("tile-library-calls", made)


def fragmaps() -> Question:
    """max(x, 0) of rows, handed to threads as loads lay them out, and otherwise."""
    of = problem()
    made = [variant(name, of, row, handed, 4, 1, True) for name, (row, handed, _) in FRAGMAPS.items()]
    return of.ask("tile-library-fragmaps", made)


@pytest.mark.parametrize("variant", [*CALLS])
@asks(calls)
def test_calls(variant, result):
    checked(result)


@pytest.mark.parametrize("variant", [*FRAGMAPS])
@asks(fragmaps)
def test_fragmap(variant, result):
    checked(result)


def test_claim(answers, claim):
    claim(INLINED, judged(inlined, answers(calls)))
    claim(MATCHED, judged(converted, answers(fragmaps)))


def available(found) -> None:
    failure = next((r.failure for r in found.values() if r.failure), None)
    if failure:
        raise Untestable(lacking(failure) or failure.splitlines()[0])


def inlined(found) -> Finding:
    """Holds when there is no CALL and no local memory, and each ordered call more of four warps is a barrier more."""
    available(found)
    called = sum(count(r, "CALL") for r in found.values())
    local = sum(fact(r, "stack_bytes") + fact(r, "spill_bytes") for r in found.values())
    barriers = {name: fact(r, "barriers") for name, r in found.items()}
    steps = [barriers[f"calls-{n + 1}-warps-4"] - barriers[f"calls-{n}-warps-4"] for n in (1, 2)]
    words = f"{called} CALL, {local} B of local memory; barriers: "
    words += ", ".join(f"{name} {n}" for name, n in barriers.items())
    if called or local:
        return Finding("reversed", words)
    one_each = steps == [1, 1] and barriers["calls-3-warps-1"] == barriers["calls-3-warps-4-pure"] == 0
    return Finding("holds" if one_each else "weaker", words)


def converted(found) -> Finding:
    """Holds when exactly the fragmaps that differ from the loaded layout have shared-memory instructions."""
    available(found)
    shared = {name: through_shared(r) for name, r in found.items()}
    right = [(n > 0) == (FRAGMAPS[name][1] != FRAGMAPS[name][2]) for name, n in shared.items()]
    words = ", ".join(f"{name} {n} LDS/STS" for name, n in shared.items())
    return Finding("holds" if all(right) else "weaker" if any(right) else "reversed", words)
