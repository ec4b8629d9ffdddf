"""How far a reassociated result may be from the one in source order.

For every value v of a stencil two numbers are kept: a magnitude M, the sum of the magnitudes of everything that
is added up to v, and a count n of the operations behind it. Whatever order sums are taken in, whatever factors
are multiplied out, and whether multiply-add is contracted or not, the result is within n u M of the exact one to
first order, where u is the unit roundoff; so two such results differ by at most 2 n u M.

    add, sub      M = M_a + M_b          n = n_a + n_b + 1
    mul           M = M_a M_b            n = n_a + n_b + 1
    a / b         M = M_a M_b / b^2      n = n_a + n_b + 2   (a reciprocal may be multiplied instead)
    neg, abs      M = M_a                n = n_a
    min, max      M = max(M_a, M_b)      n = max(n_a, n_b) + 3   (max(x, 0) may be (x + |x|) / 2)
    select        M of the chosen side, n of the larger one; conditions must not depend on rounding
    sqrt          M = M_a / sqrt(a)      n = n_a + 1

Not covered: functions that jump (floor) and those of a library.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith, math, stencil
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from stencil_dsl.errors import StencilError
from stencil_dsl.transforms import analysis
from stencil_dsl.transforms.meaning import NUMPY_COMPARISON, NUMPY_FUNCTION

UNIT_ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24}

Entry = tuple[np.ndarray, np.ndarray, int]
"""Value, magnitude, count; conditions carry their truth values and nothing else."""


def reassociation_bound(
    module: ModuleOp,
    fields: Sequence[np.ndarray],
    origins: Sequence[tuple[int, ...]],
    shape: tuple[int, ...],
    scalars: Sequence[float] = (),
) -> list[np.ndarray]:
    """Per output the largest difference, cell by cell, between two orders of evaluation.

    Arguments are those of `reference.numpy_eval.evaluate`.

    Raises:
        StencilError: for an operation that has no bound.
    """
    apply = analysis.the_apply(module)
    unit = UNIT_ROUNDOFF[analysis.dtype_name(apply)]
    known: dict[SSAValue, Entry] = {}
    views = dict(zip(analysis.field_arguments(apply), zip(fields, origins, strict=True), strict=True))
    for argument, value in zip(analysis.scalar_arguments(apply), scalars, strict=True):
        known[argument] = _exact(np.float64(value))
    with np.errstate(all="ignore"):
        for op in apply.region.block.ops:
            if isinstance(op, stencil.ReturnOp):
                entries = [known[operand] for operand in op.operands]
                return [np.broadcast_to(2 * (n + 1) * unit * m, shape) for _, m, n in entries]
            if isinstance(op, stencil.AccessOp):
                array, origin = views[op.temp]
                corner = [o + d for o, d in zip(origin, analysis.offset_of(op), strict=True)]
                box = tuple(slice(c, c + n) for c, n in zip(corner, shape, strict=True))
                known[op.results[0]] = _exact(array[box].astype(np.float64))
            else:
                known[op.results[0]] = _entry(op, [known[o] for o in op.operands])
    raise StencilError("a stencil.apply ends in stencil.return")


def _exact(value: np.ndarray | np.float64) -> Entry:
    return np.asarray(value), np.abs(value), 0


def _entry(op: Operation, args: list[Entry]) -> Entry:
    if isinstance(op, arith.ConstantOp):
        if isinstance(op.value, FloatAttr):
            # The constant itself may be rounded, or be a product of several after reassociation.
            value = np.float64(op.value.value.data)
            return np.asarray(value), np.abs(value), 1
        assert isinstance(op.value, IntegerAttr)
        return _exact(np.asarray(bool(op.value.value.data)))
    values = [v for v, _, _ in args]
    if isinstance(op, arith.CmpfOp):
        predicate = arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data]
        return _exact(getattr(np, NUMPY_COMPARISON[predicate])(*values))
    value = getattr(np, NUMPY_FUNCTION[op.name])(*values)
    if value.dtype == bool:
        return _exact(value)
    return value, *_magnitude(op, values, [m for _, m, _ in args], [n for _, _, n in args])


def _magnitude(op: Operation, v: list[np.ndarray], m: list[np.ndarray], n: list[int]) -> tuple[np.ndarray, int]:
    match op:
        case arith.AddfOp() | arith.SubfOp():
            return m[0] + m[1], sum(n) + 1
        case arith.MulfOp():
            return m[0] * m[1], sum(n) + 1
        case arith.DivfOp():
            return m[0] * m[1] / v[1] ** 2, sum(n) + 2
        case arith.NegfOp() | math.AbsFOp():
            return m[0], n[0]
        case arith.MaximumfOp() | arith.MinimumfOp():
            return np.maximum(m[0], m[1]), max(n) + 3
        case arith.SelectOp():
            return np.where(v[0], m[1], m[2]), max(n[1:])
        case math.SqrtOp():
            return m[0] / np.sqrt(v[0]), n[0] + 1
    raise StencilError(f"the effect of rounding on {op.name} is not bounded here")
