"""The NumPy meaning of a level-2 module: each operation of the body, in order, on whole arrays.

The reference rounds where the stencil rounds: every operation is done in the element type, constants and
scalars are converted to it once, and nothing is reassociated or contracted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from xdsl.dialects import arith, stencil
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from stencil_dsl.errors import StencilError
from stencil_dsl.transforms import analysis
from stencil_dsl.transforms.meaning import NUMPY_COMPARISON, NUMPY_FUNCTION

# Points of one slab: intermediate arrays of about this size stay in a core's cache. The interior is
# evaluated slab by slab along the first axis, so that a large grid needs no large temporaries.
SLAB_POINTS = 1 << 16

Values = dict[SSAValue, Any]
Step = Callable[[Values, int, int], Any]


class Inputs(NamedTuple):
    """What `evaluate` needs beside the module and the shape."""

    fields: list[np.ndarray]
    origins: list[tuple[int, ...]]
    scalars: list[float]


def random_inputs(
    module: ModuleOp,
    shape: tuple[int, ...],
    halo: Sequence[tuple[int, int]] | None = None,
    seed: int = 0,
    dtype: str | None = None,
) -> Inputs:
    """Fields and scalars for a stencil: uniform in [-1, 1), so of both signs and practically never zero.

    Args:
        shape: extents of the interior, one per axis.
        halo: per axis (low, high) widths in points; the module's own by default.
        seed: the same seed gives the same numbers in both dtypes, up to their rounding.
        dtype: "float64" or "float32"; the module's element type by default.
    """
    apply = analysis.the_apply(module)
    widths = analysis.halo(module) if halo is None else tuple(halo)
    if len(shape) != apply.get_rank() or len(widths) != apply.get_rank():
        raise StencilError(
            f"the stencil has {apply.get_rank()} dimensions: shape {tuple(shape)} and halo {widths} must too"
        )
    rng = np.random.default_rng(seed)
    full = tuple(n + lo + hi for n, (lo, hi) in zip(shape, widths, strict=True))
    element = np.dtype(dtype or analysis.dtype_name(apply))
    fields = [rng.uniform(-1.0, 1.0, full).astype(element, copy=False) for _ in analysis.field_arguments(apply)]
    scalars = [float(rng.uniform(-1.0, 1.0)) for _ in analysis.scalar_arguments(apply)]
    return Inputs(fields, [tuple(lo for lo, _ in widths)] * len(fields), scalars)


def evaluate(
    module: ModuleOp,
    fields: Sequence[np.ndarray],
    origins: Sequence[tuple[int, ...]],
    shape: tuple[int, ...],
    scalars: Sequence[float] = (),
) -> list[np.ndarray]:
    """The stencil's outputs on the interior, one new array of `shape` per output.

    Args:
        fields: one array per field of the module, in its order and element type, halo included.
        origins: per field the index of interior point (0, 0, 0) in its array.
        shape: extents of the interior, one per axis, at least 1 each.
        scalars: values of the run-time scalars, in order; converted to the element type once.

    Raises:
        StencilError: wrong number of fields or scalars, wrong dtype or rank, an array that does not hold
            the halo which the stencil reads, or an operation without a NumPy meaning.
    """
    return prepare(module, fields, origins, shape)(scalars)


def prepare(
    module: ModuleOp, fields: Sequence[np.ndarray], origins: Sequence[tuple[int, ...]], shape: tuple[int, ...]
) -> Callable[[Sequence[float]], list[np.ndarray]]:
    """`evaluate` for repeated use on the same arrays: a function of the scalars. Arguments and errors as there."""
    apply = analysis.the_apply(module)
    names = _argument_names(module, apply)
    _check_inputs(apply, names, fields, origins, shape)
    dtype = np.dtype(analysis.dtype_name(apply))
    arguments = analysis.scalar_arguments(apply)
    views = dict(zip(analysis.field_arguments(apply), zip(fields, origins, strict=True), strict=True))
    steps = list(_steps(apply, views, shape, dtype))
    terminator = apply.region.block.last_op
    assert terminator is not None
    rows = max(1, SLAB_POINTS // math.prod(shape[1:]))

    def run(scalars: Sequence[float]) -> list[np.ndarray]:
        if len(scalars) != len(arguments):
            raise StencilError(f"the stencil takes {len(arguments)} scalars, got {len(scalars)}")
        results = [np.empty(shape, dtype) for _ in apply.res]
        with np.errstate(all="ignore"):
            start: Values = dict(zip(arguments, map(dtype.type, scalars), strict=True))
            for first in range(0, shape[0], rows):
                last = min(first + rows, shape[0])
                values = dict(start)
                for result, step, dead in steps:
                    values[result] = step(values, first, last)
                    for value in dead:
                        values.pop(value, None)
                for out, value in zip(results, terminator.operands, strict=True):
                    out[first:last] = values[value]
        return results

    return run


def _argument_names(module: ModuleOp, apply: stencil.ApplyOp) -> list[str]:
    """Field names for messages; positions where the module carries no names."""
    count = len(analysis.field_arguments(apply))
    try:
        names = list(analysis.field_names(module))
    except StencilError:
        names = []
    return names if len(names) == count else [f"field {i}" for i in range(count)]


def _check_inputs(
    apply: stencil.ApplyOp,
    names: Sequence[str],
    fields: Sequence[np.ndarray],
    origins: Sequence[tuple[int, ...]],
    shape: tuple[int, ...],
) -> None:
    rank, dtype = apply.get_rank(), analysis.dtype_name(apply)
    if len(fields) != len(names) or len(origins) != len(names):
        raise StencilError(
            f"the stencil takes {len(names)} fields ({', '.join(names)}): "
            f"got {len(fields)} arrays and {len(origins)} origins"
        )
    if len(shape) != rank or min(shape) < 1:
        raise StencilError(f"the interior of a {rank}-dimensional stencil cannot have the shape {shape}")
    for name, array, origin, box in zip(names, fields, origins, analysis.footprint(apply), strict=True):
        if array.dtype != dtype:
            raise StencilError(f"{name} has dtype {array.dtype}, the stencil works in {dtype}")
        if array.ndim != rank or len(origin) != rank:
            raise StencilError(f"{name} needs {rank} axes, got array {array.shape} with origin {origin}")
        for axis, (lo, hi) in enumerate(zip(*box, strict=True) if box else ()):
            before, after = origin[axis], array.shape[axis] - origin[axis] - shape[axis]
            if before < -lo or after < hi:
                raise StencilError(
                    f"{name} is too small along axis {axis}: "
                    f"offsets {lo} to {hi} around {shape[axis]} points "
                    f"need {max(0, -lo)} points before and {max(0, hi)} after the interior, "
                    f"the array has {before} and {after}"
                )


def _steps(
    apply: stencil.ApplyOp,
    views: dict[SSAValue, tuple[np.ndarray, tuple[int, ...]]],
    shape: tuple[int, ...],
    dtype: np.dtype,
) -> Iterator[tuple[SSAValue, Step, list[SSAValue]]]:
    """Per operation: its result, how to compute it for rows [first, last), and which values die with it."""
    last_user: dict[SSAValue, Operation] = {}
    for op in apply.region.block.ops:
        last_user.update(dict.fromkeys(op.operands, op))
    for op in apply.region.block.ops:
        if isinstance(op, stencil.ReturnOp):
            return
        step = _access(op, views, shape) if isinstance(op, stencil.AccessOp) else _step(op, dtype)
        # A value without users dies at once; scalars of the stencil are kept, they are not arrays.
        dead = [o for o in {*op.operands} if last_user[o] is op and isinstance(o.owner, Operation)]
        dead += [r for r in op.results if r not in last_user]
        yield op.results[0], step, dead


def _access(
    op: stencil.AccessOp,
    views: dict[SSAValue, tuple[np.ndarray, tuple[int, ...]]],
    shape: tuple[int, ...],
) -> Step:
    array, origin = views[op.temp]
    corner = [o + d for o, d in zip(origin, analysis.offset_of(op), strict=True)]
    inner = tuple(slice(c, c + n) for c, n in zip(corner[1:], shape[1:], strict=True))
    return lambda values, first, last: array[(slice(corner[0] + first, corner[0] + last), *inner)]


def _step(op: Operation, dtype: np.dtype) -> Step:
    if isinstance(op, arith.ConstantOp):
        constant = _constant(op, dtype)
        return lambda values, first, last: constant
    if isinstance(op, arith.CmpfOp):
        predicate = arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data]
        name, what = NUMPY_COMPARISON.get(predicate), f"arith.cmpf {predicate}"
    else:
        name, what = NUMPY_FUNCTION.get(op.name), op.name
    if name is None or op.regions or len(op.results) != 1:
        raise StencilError(f"{what} has no meaning in a stencil body; allowed are {_allowed()}")
    function = getattr(np, name)
    operands = tuple(op.operands)
    return lambda values, first, last: function(*[values[o] for o in operands])


def _constant(op: arith.ConstantOp, dtype: np.dtype) -> Any:
    if isinstance(op.value, FloatAttr):
        return dtype.type(op.value.value.data)
    if isinstance(op.value, IntegerAttr):
        return np.bool_(op.value.value.data)
    raise StencilError(f"the constant {op.value} is neither a number of the element type nor a truth value")


def _allowed() -> str:
    return ", ".join([*NUMPY_FUNCTION, *(f"arith.cmpf {p}" for p in NUMPY_COMPARISON)])
