"""Neighbouring rows from one tall tile, from shifted loads, or from rows held in registers.

Claim 11: a tall tile whose rows are taken out by ``ct.extract`` and put together by ``ct.cat`` needs 9 loads instead
of 27, but its re-layout goes through shared memory and costs what it saves: a tie on the 27-point box, 1.4 times
slower on the 125-point one. Source: 000, RTX PRO 4000 Blackwell, CUDA 13.2. ``ct.insert`` is new since; register rows
(several row tiles a block, each loaded once) are a third way.

Last measured:
- claim 11, code, sm_90, 13.5.37: holds. shifted: 27 loads a cell, 0 LDS/STS, 64 registers; fold-cat: 15 loads a cell,
  89 LDS/STS, 64 registers; fold-insert: 15 loads a cell, 89 LDS/STS, 64 registers; register-rows: 18 loads a cell, 0
  LDS/STS, 88 registers
- claim 11, time, nvidia-h200, 13.5.37: holds. fold-cat / shifted 4.62 (4.62..4.72), claimed 1; shifted /
  register-rows 1.15 (1.15..1.16), claimed 1.1
"""

from __future__ import annotations

import struct
from itertools import product

import pytest

from probes import linear
from probes.judging import count, fact, gain, judged, through_shared, together
from probes.linear import Sweep
from probes.older import function_variant
from probes.sweeps import STENCILS, problem
from stencil_dsl.testing import Call, Claim, Finding, In, Out, Question, asks

TERMS = STENCILS["box-27"]
FOLDS = ("fold-cat", "fold-insert", "register-rows")
CLAIM = Claim(
    11,
    "a row fold (tall load, extract, cat) goes through shared memory and gains nothing; register rows do neither",
    "000: 27-point box 1.39 against 1.41 ms, 30 LDS/STS; RTX PRO 4000, CUDA 13.2",
)


def text(kind: str) -> str:
    """Two rows of output a block, from four rows of input."""
    classes = sorted({(abs(x), abs(z), dy): c for (x, dy, z), c in TERMS}.items())
    names = {c: f"c{n}" for n, c in enumerate(dict.fromkeys(c for _, c in classes))}
    coefficient = {offset: names[c] for offset, c in TERMS}
    lines = ["import cuda.tile as ct\n\n", "@ct.kernel", f"def fold(u, out{', out_1' * (kind == FOLDS[2])}):"]
    lines += [
        "    nx, ny, nz = out.shape[0], out.shape[1], out.shape[2]",
        "    z, y, x = ct.bid(0), ct.bid(1), ct.bid(2)",
    ]
    for c, name in names.items():
        bits = struct.unpack("<q", struct.pack("<d", c))[0]
        lines.append(f"    {name} = ct.bitcast(ct.full((1, 1, 1), {bits}, dtype=ct.int64), ct.float64)")
    lines += _register_rows(coefficient) if kind == FOLDS[2] else _fold(coefficient, kind)
    return "\n".join(lines) + "\n"


def _view(dx: int, dz: int) -> str:
    return f"u.slice(0, {1 + dx}, {1 + dx} + nx).slice(2, {16 + dz}, {16 + dz} + nz)"


def _fold(coefficient: dict, kind: str) -> list[str]:
    lines, total = [], []
    for n, (dx, dz) in enumerate(product((-1, 0, 1), (-1, 0, 1))):
        lines.append(f"    v{n} = {_view(dx, dz)}.slice(1, y * 2, y * 2 + 4)")
        lines.append(f"    t{n} = ct.load(v{n}, (x, 0, z), (1, 4, 64), check_bounds=False, allow_tma=False)")
        for dy in (-1, 0, 1):
            rows = [f"ct.extract(t{n}, (0, {1 + dy + row}, 0), (1, 1, 64))" for row in (0, 1)]
            pair = f"ct.cat(({rows[0]}, {rows[1]}), 1)"
            if kind == "fold-insert":
                first = f"ct.insert(ct.zeros((1, 2, 64), ct.float64), (0, 0, 0), {rows[0]})"
                pair = f"ct.insert({first}, (0, 1, 0), {rows[1]})"
            total.append(f"{coefficient[dx, dy, dz]} * {pair}")
    lines.append(f"    ct.store(out, (x, y, z), {' + '.join(total)}, check_bounds=False, allow_tma=False)")
    return lines


def _register_rows(coefficient: dict) -> list[str]:
    lines, sums = [], [[], []]
    for n, (dx, dz) in enumerate(product((-1, 0, 1), (-1, 0, 1))):
        for row in range(4):
            lines.append(
                f"    t{n}_{row} = ct.load({_view(dx, dz)}.slice(1, {row}, {row} + ny - 1), (x, y * 2, z), "
                "(1, 1, 128), check_bounds=False, allow_tma=False)"
            )
        for out, dy in product((0, 1), (-1, 0, 1)):
            sums[out].append(f"{coefficient[dx, dy, dz]} * t{n}_{1 + out + dy}")
    for out, terms in enumerate(sums):
        # One parameter a row: the two stores need no order between them.
        array = "out" if out == 0 else "out_1.slice(1, 1, ny)"
        lines.append(f"    ct.store({array}, (x, y * 2, z), {' + '.join(terms)}, check_bounds=False, allow_tma=False)")
    return lines


def call(kind: str):
    def launch(shape):
        nx, ny, nz = shape
        u = In("u", (-1, -1, -16), (nx + 2, ny + 2, nz + 32))
        width = 128 if kind == FOLDS[2] else 64
        return Call((nz // width, ny // 2, nx), (u, Out(), *((Out(),) if kind == FOLDS[2] else ())))

    return launch


def folds() -> Question:
    """27 shifted loads, nine tall ones put together in two ways, and 36 rows for two rows of output."""
    of = problem("box-27")
    made = [linear.variant("shifted", of, TERMS, Sweep())]
    made += [function_variant(kind, of, text(kind), "fold", call(kind)) for kind in FOLDS]
    return of.ask("box-27-fold", made)


@pytest.mark.parametrize("variant", ["shifted", *FOLDS])
@asks(folds)
def test_fold(variant, result):
    result.check()


def test_claim(answers, claim):
    found = answers(folds)
    times = [gain(found, "shifted", "fold-cat", 1.0), gain(found, "register-rows", "shifted", 1.1)]
    claim(CLAIM, judged(layout, found), together(times))


def layout(found) -> Finding:
    """Holds when folds go through shared memory and register rows do not; weaker when insert avoids it too."""
    shared = {name: through_shared(r) for name, r in found.items()}
    # Register rows have two cells a thread and two rows of output; the others one.
    cells = {name: 2 if name == "register-rows" else 1 for name in found}
    words = "; ".join(
        f"{name}: {count(r, 'LDG') / cells[name]:g} loads a cell, {shared[name]} LDS/STS, {fact(r, 'registers')} "
        "registers"
        for name, r in found.items()
    )
    if not shared["fold-cat"] or shared["register-rows"]:
        return Finding("reversed", words)
    return Finding("holds" if shared["fold-insert"] else "weaker", words)
