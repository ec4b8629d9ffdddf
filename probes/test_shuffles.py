"""Neighbours along the contiguous axis from other lanes.

Claim 35: with shuffles in a tile library every row is loaded once instead of once a shift: fewer loads, fewer
registers, no shared memory, less time; 2-D 5-point 1.139 ms instead of 1.336, 3-D 7-point 0.578 instead of 0.603.
Source: 004 and ours, H200, CUDA 13.5. Needs tileiras 13.5.

Last measured:
- claim 35, code, sm_90, 13.5.37: holds. 3-D: shuffled 2.5 loads a cell, 0 LDS/STS, 118 registers, loaded 7 loads a
  cell, 0 LDS/STS, 202 registers, loaded-256 4.5 loads a cell, 30 LDS/STS, 200 registers, 16 shuffles in the loop;
  2-D: shuffled 1.5 loads a cell, 0 LDS/STS, 164 registers, loaded 3 loads a cell, 0 ...
- claim 35, time, nvidia-h200, 13.5.37: weaker. loaded / shuffled 1.40 (1.40..1.40), claimed 1.1; loaded / shuffled
  0.87 (0.87..0.87), claimed 1.1
"""

from __future__ import annotations

import pytest

from probes.judging import (
    Untestable,
    checked,
    count,
    fact,
    gain,
    judged,
    loads_per_store,
    through_shared,
    together,
)
from repro.stencils import star_13
from stencil_dsl import stencil
from stencil_dsl.testing import Claim, Finding, Question, asks, sweep_question
from stencil_dsl.testing.older import lacking

CLAIM = Claim(
    35,
    "lane shuffles replace shifted loads: fewer loads, no shared memory, less time",
    "004 and ours: 2-D 5-point 1.139 against 1.336 ms, 3-D 13-point 0.621 against 0.728 ms; H200, 13.5.37",
)
BASE = {"rows": 2, "chunk": 64, "occupancy": 2, "order": "fast"}
SPACE = {
    "shuffled": BASE | {"kind": "shuffle", "tile": (1, 1, 32), "pair": 2, "warps": 1},
    "loaded": BASE | {"kind": "streaming", "tile": (1, 1, 128)},
    "loaded-256": BASE | {"kind": "streaming", "tile": (1, 1, 256)},
}
PLANE = {
    "shuffled": BASE | {"kind": "shuffle", "tile": (1, 32), "pair": 2, "warps": 1, "rows": 1},
    "loaded": BASE | {"kind": "streaming", "tile": (1, 128), "rows": 1},
    "loaded-256": BASE | {"kind": "streaming", "tile": (1, 256), "rows": 1},
}


@stencil
def cross(u, i, j):
    return 0.5 * u[i, j] + 0.1 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


def space() -> Question:
    """The 13-point star."""
    return question("shuffle-3d", star_13, (512, 512, 512), SPACE)


def plane() -> Question:
    """Five points in two dimensions."""
    return question("shuffle-2d", cross, (16384, 16384), PLANE)


def question(name: str, function, shape, forms) -> Question:
    from stencil_dsl import Schedule

    schedules = {v: Schedule(**form) for v, form in forms.items()}
    return sweep_question(name, function, shape, schedules, copy=False, baseline="loaded")


@pytest.mark.parametrize("variant", [*SPACE])
@asks(space)
def test_space(variant, result):
    checked(result)


@pytest.mark.parametrize("variant", [*PLANE])
@asks(plane)
def test_plane(variant, result):
    checked(result)


def test_claim(answers, claim):
    found = {"3-D": answers(space), "2-D": answers(plane)}
    claim(CLAIM, judged(loads, found), together(gain(of, "shuffled", "loaded", 1.1) for of in found.values()))


def loads(found) -> Finding:
    """Holds when shuffles have fewer loads a cell than one load a shift and no shared memory, in both dimensions."""
    words, good = [], []
    for where, of in found.items():
        if of["shuffled"].failure:
            raise Untestable(lacking(of["shuffled"].failure) or of["shuffled"].failure.splitlines()[0])
        cells = {"shuffled": 2, "loaded": 1, "loaded-256": 2}
        each = {name: loads_per_store(r) / cells[name] for name, r in of.items()}
        shared = {name: through_shared(r) for name, r in of.items()}
        good.append(each["shuffled"] < each["loaded"] and not shared["shuffled"] and count(of["shuffled"], "SHFL") > 0)
        parts = [f"{n} {each[n]:g} loads a cell, {shared[n]} LDS/STS, {fact(of[n], 'registers')} registers" for n in of]
        words.append(f"{where}: {', '.join(parts)}, {count(of['shuffled'], 'SHFL', loop=True)} shuffles in the loop")
    return Finding("holds" if all(good) else "weaker" if any(good) else "reversed", "; ".join(words))
