"""A loop over the planes of a wide stencil.

Claim 16: a run-time loop over the planes that a cell reads is unrolled and its loads are hoisted: nothing is gained.
Source: 000, RTX PRO 4000 Blackwell, CUDA 13.2. Marching over planes and scattering each into the outputs that are
still open reverses this: every plane is loaded once.

Last measured:
- claim 16, code, sm_90, 13.5.37: reversed. loads: 125 written out, 125 in a loop of 5, 150 in one of n trips, 15 a
  cell streaming; still loops: loop-runtime
- claim 16, time, nvidia-h200, 13.5.37: reversed. loop / written-out 1.446 (1.444..1.448), claimed equal; streaming /
  written-out 0.21 (0.21..0.21), claimed 1.03
"""

from __future__ import annotations

from functools import cache

import pytest

from probes import linear
from probes.judging import count, fact, gain, judged, tie, together
from probes.linear import Sweep
from probes.older import function_variant
from probes.sweeps import CHECK, SHAPE
from stencil_dsl import stencil
from stencil_dsl.testing import Call, Claim, Finding, In, KernelVariant, Out, Question, Scalar, asks

#: A box with one coefficient, which float32 holds exactly: a loop over planes needs no table of coefficients.
WEIGHT = 1 / 128
TERMS = tuple(((x, y, z), WEIGHT) for x in range(-2, 3) for y in range(-2, 3) for z in range(-2, 3))
CLAIM = Claim(
    16,
    "a run-time loop over the planes a cell reads is unrolled and hoisted and gains nothing",
    "000: 125-point box, RTX PRO 4000, CUDA 13.2",
)


@stencil
def mean(u, i, j, k):
    return sum(WEIGHT * u[i + a, j + b, k + c] for a in range(-2, 3) for b in range(-2, 3) for c in range(-2, 3))


def text(bound: str) -> str:
    """A loop over five planes; `bound` is a number, or a parameter."""
    views = [(y, z) for y in range(-2, 3) for z in range(-2, 3)]
    lines = ["import cuda.tile as ct\n\n", "@ct.kernel", f"def sweep(u, out{'' if bound.isdigit() else ', ' + bound}):"]
    lines += [
        "    nx, ny, nz = out.shape[0], out.shape[1], out.shape[2]",
        "    z, y, x = ct.bid(0), ct.bid(1), ct.bid(2)",
    ]
    for n, (dy, dz) in enumerate(views):
        lines.append(f"    v{n} = u.slice(1, {2 + dy}, {2 + dy} + ny).slice(2, {16 + dz}, {16 + dz} + nz)")
    lines += ["    total = ct.zeros((1, 2, 64), ct.float64)", f"    for p in range({bound}):"]
    load = "ct.load(v{}, (x + p, y, z), (1, 2, 64), check_bounds=False, allow_tma=False)"
    lines.append(f"        total = total + ({' + '.join(load.format(n) for n in range(len(views)))})")
    lines.append(f"    ct.store(out, (x, y, z), total * {WEIGHT!r}, check_bounds=False, allow_tma=False)")
    return "\n".join(lines) + "\n"


def call(*scalars: Scalar):
    def launch(shape):
        nx, ny, nz = shape
        return Call((nz // 64, ny // 2, nx), (In("u", (-2, -2, -16), (nx + 4, ny + 4, nz + 32)), Out(), *scalars))

    return launch


@cache
def streamed(arch: str, toolkit: str | None):
    import stencil_dsl

    how = stencil_dsl.Schedule(kind="streaming", tile=(1, 1, 128), rows=2, chunk=64, occupancy=4, order="fast")
    return stencil_dsl.compile(mean, arch, shape=SHAPE, schedule=how, toolkit=toolkit)


def loops() -> Question:
    """All loads written out, a loop of five trips, a loop of as many as an argument says, and streaming."""
    of = linear.problem(TERMS, SHAPE, CHECK)
    return of.ask(
        "mean-125-planes",
        [
            linear.variant("written-out", of, TERMS, Sweep()),
            function_variant("loop", of, text("5"), "sweep", call()),
            function_variant("loop-runtime", of, text("planes"), "sweep", call(Scalar(5))),
            KernelVariant("streaming", lambda target: streamed(target.arch, target.toolkit), ("u",)),
        ],
    )


@pytest.mark.parametrize("variant", ["written-out", "loop", "loop-runtime", "streaming"])
@asks(loops)
def test_loop(variant, result):
    result.check()


def test_claim(answers, claim):
    found = answers(loops)
    times = [tie(found, "written-out", "loop"), gain(found, "written-out", "streaming", 1.03)]
    claim(CLAIM, judged(unrolled, found), together(times))


def unrolled(found) -> Finding:
    """Holds when loops have as many loads a cell as the text without one, and streaming too; reversed when streaming
    has fewer; weaker when only loops stay loops.
    """
    loads = {name: count(r, "LDG") for name, r in found.items()}
    kept = [name for name in ("loop", "loop-runtime") if fact(found[name], "loop_instructions")]
    # Streaming: two rows of output a trip.
    streaming = count(found["streaming"], "LDG", loop=True) / 2
    words = (
        f"loads: {loads['written-out']} written out, {loads['loop']} in a loop of 5, {loads['loop-runtime']} in one "
    )
    words += f"of n trips, {streaming:g} a cell streaming; still loops: {', '.join(kept) or 'none'}"
    if streaming < loads["written-out"]:
        return Finding("reversed", words)
    return Finding("weaker" if kept else "holds", words)
