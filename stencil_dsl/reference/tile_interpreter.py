"""Runs an emitted cuTile Python file block by block on NumPy, and checks every access.

>>> import numpy as np
>>> from stencil_dsl.reference.tile_interpreter import ArrayArg, run
>>> source = '''import cuda.tile as ct
... @ct.kernel(occupancy=4)
... def double(u, out):
...     ct.store(out, (ct.bid(0),), ct.load(u, (ct.bid(0),), (4,)) * 2)
... '''
>>> u, out = np.arange(8.0), np.zeros(8)
>>> run(source, "double", (2,), [ArrayArg.of(u, "u"), ArrayArg.of(out, "out")]).stores
8
>>> out
array([ 0.,  2.,  4.,  6.,  8., 10., 12., 14.])

What it finds: unchecked accesses outside the allocation or the view, tiles entirely outside a view,
slices outside an array, elements stored twice with different values, loads of what another block
stores. What it cannot find: wrong code of the tile compiler, contraction of multiply and add, integer
overflow of an int32 index (block indices and integer parameters are Python ints here).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from inspect import signature
from typing import Any

import numpy as np

from stencil_dsl.reference.tile_arrays import Array
from stencil_dsl.reference.tile_dtypes import ConstantAnnotation, InterpreterError, dtype_of
from stencil_dsl.reference.tile_memory import DeviceBuffer, Memory, RunReport, foreign_writer
from stencil_dsl.reference.tile_module import Kernel, execute, stand_in
from stencil_dsl.reference.tile_values import Tile

__all__ = ["ArrayArg", "DeviceBuffer", "InterpreterError", "RunReport", "run"]


@dataclass(eq=False)
class ArrayArg:
    """An array parameter: a strided view of a flat allocation. Several may share one allocation.

    Attributes:
        buffer: the allocation, a 1-D contiguous array; stores change it.
        offset: first element of the view.
        shape, strides: extents and strides, in elements.
        name: for messages; empty means the parameter's own name.
    """

    buffer: np.ndarray
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    name: str = ""

    @classmethod
    def of(cls, array: np.ndarray, name: str = "") -> ArrayArg:
        """A NumPy array or view; its allocation is the array that owns the memory.

        Raises InterpreterError where the owner is not contiguous or has another element type.
        """
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if owner.dtype != array.dtype or not (owner.flags.c_contiguous or owner.flags.f_contiguous):
            raise InterpreterError(f"the memory behind {name or 'the array'} is no flat {array.dtype} allocation")
        flat = owner.reshape(-1, order="A")
        size = array.itemsize
        offset = (array.__array_interface__["data"][0] - flat.__array_interface__["data"][0]) // size
        return cls(flat, offset, array.shape, tuple(s // size for s in array.strides), name)


def run(
    source: str,
    function: str,
    grid: tuple[int, ...],
    args: Sequence[ArrayArg | float | int],
    *,
    strict_views: bool = True,
    allow_inplace: bool = False,
) -> RunReport:
    """Run kernel `function` of `source` over `grid`; stores change the buffers of `args`.

    Args:
        source: text of the emitted file.
        function: name of the ``@ct.kernel`` function in it.
        grid: one to three positive block counts; axis 0 is ``ct.bid(0)``, and runs fastest here.
        args: one entry a parameter. A Python float is a scalar of the first array's element type, a
            NumPy scalar keeps its own type; an int is exact. Parameters annotated ``ct.Constant``
            stay Python numbers.
        strict_views: refuse unchecked accesses outside the view, even where they stay in the allocation.
        allow_inplace: allow loads of elements that this run stores (the caller vouches for the order).

    Raises:
        InterpreterError: naming line, block, array and index of what is wrong or undefined.
    """
    if not 1 <= len(grid) <= 3 or any(not isinstance(n, int) or n < 1 for n in grid):
        raise InterpreterError(f"grid {grid} must hold one to three positive block counts")
    memory = Memory(strict_views, allow_inplace, max(1, len(args)))
    memory.grid = tuple(grid)
    filename = f"<emitted {function}>"
    module = stand_in(memory)
    try:
        found = execute(source, filename, module).get(function)
    except InterpreterError as error:
        raise _placed(error, source, filename, function, None) from error
    if not isinstance(found, Kernel):
        raise InterpreterError(f"the source has no @ct.kernel function named {function!r}")
    values, buffers, names = _bind(found, args, memory, source)
    body = found.function
    with np.errstate(all="ignore"):
        for number in range(math.prod(grid)):
            memory.block = number
            try:
                body(*values)
            except Exception as error:
                block = memory.block_index(number)
                raise _placed(error, source, filename, function, block) from error
            memory.report.blocks += 1
    if not allow_inplace:
        _check_reads(memory, buffers, names, source, function)
    return memory.report


def _bind(
    kernel: Kernel, args: Sequence[Any], memory: Memory, source: str
) -> tuple[list[Any], list[DeviceBuffer], list[str]]:
    """Parameter values, allocations and names, for one run."""
    parameters = list(signature(kernel.function).parameters.values())
    if len(parameters) != len(args):
        raise InterpreterError(
            f"kernel {kernel.function.__name__} takes {len(parameters)} arguments "
            f"({', '.join(p.name for p in parameters)}), {len(args)} were given"
        )
    names = [getattr(a, "name", "") or p.name for a, p in zip(args, parameters, strict=True)]
    stored = stored_parameters(source, kernel.function.__name__)
    buffers: dict[tuple[int, int], DeviceBuffer] = {}
    values: list[Any] = []
    element = next((a.buffer.dtype for a in args if isinstance(a, ArrayArg)), np.dtype(np.float32))
    for i, (arg, parameter) in enumerate(zip(args, parameters, strict=True)):
        if isinstance(arg, ArrayArg):
            buffer = _allocation(arg, names[i], buffers)
            buffer.names += (names[i],)
            buffer.may_be_stored |= stored is None or parameter.name in stored
            values.append(Array(memory, buffer, arg.offset, tuple(arg.shape), tuple(arg.strides), i, names))
        elif any(isinstance(m, ConstantAnnotation) for m in getattr(parameter.annotation, "__metadata__", ())):
            values.append(arg)
        elif isinstance(arg, np.floating | float) and not isinstance(arg, bool):
            dtype = dtype_of(arg.dtype if isinstance(arg, np.floating) else element)
            values.append(Tile(np.asarray(arg, dtype.np), dtype))
        elif isinstance(arg, int | np.integer):
            values.append(int(arg))
        else:
            raise InterpreterError(f"argument {names[i]!r} is a {type(arg).__name__}; give an ArrayArg or a number")
    return values, list(buffers.values()), names


def _allocation(arg: ArrayArg, name: str, known: dict[tuple[int, int], DeviceBuffer]) -> DeviceBuffer:
    """The allocation of an argument, shared with earlier arguments of the same memory."""
    flat = arg.buffer
    if flat.ndim != 1 or not flat.flags.c_contiguous:
        raise InterpreterError(f"the buffer of {name!r} must be a 1-D contiguous array")
    if len(arg.shape) != len(arg.strides) or any(n < 0 for n in arg.shape):
        raise InterpreterError(f"{name!r} has shape {arg.shape} and strides {arg.strides}")
    if all(arg.shape):
        reach = [(n - 1) * s for n, s in zip(arg.shape, arg.strides, strict=True)]
        low = arg.offset + sum(min(0, r) for r in reach)
        high = arg.offset + sum(max(0, r) for r in reach)
        if low < 0 or high >= flat.size:
            raise InterpreterError(
                f"{name!r} of shape {arg.shape} reaches elements {low}..{high} of an allocation of {flat.size}"
            )
    key = (flat.__array_interface__["data"][0], flat.nbytes)
    for other_key, other in known.items():
        if key != other_key and np.may_share_memory(flat, other.data):
            raise InterpreterError(f"{name!r} overlaps the allocation of {other.names[0]!r}; pass the same buffer")
    return known.setdefault(key, DeviceBuffer(flat, may_be_stored=False))


@lru_cache(maxsize=256)
def stored_parameters(source: str, function: str) -> frozenset[str] | None:
    """Parameters that a store may reach, from the text: stored names and all they are made from.

    None means all of them: helper functions are not followed.
    """
    tree = ast.parse(source)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.Lambda)]
    node = next((n for n in functions if getattr(n, "name", None) == function), None)
    helpers = {getattr(n, "name", "lambda") for n in functions} - {function}
    if node is None or "lambda" in helpers or _names(node) & helpers:
        return None
    every = {a.arg for a in node.args.posonlyargs + node.args.args}
    reached: set[str] = set()
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and _called(call) in ("store", "scatter"):
            receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
            targets = call.args[:1] + ([receiver] if receiver is not None else [])
            reached |= {name for t in targets for name in _names(t)}
    size = -1
    while size != len(reached):
        size = len(reached)
        for n in ast.walk(node):
            targets = getattr(n, "targets", None) or [getattr(n, "target", None)]
            made_from = getattr(n, "value", None) or getattr(n, "iter", None)
            if made_from is not None and any(t is not None and _names(t) & reached for t in targets):
                reached |= _names(made_from)
    return frozenset(reached & every)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _check_reads(memory: Memory, buffers: list[DeviceBuffer], names: list[str], source: str, function: str) -> None:
    """Loads that came before another block's store of the same element: a race too."""
    for buffer in buffers:
        if buffer.writer is None:
            continue
        for region, reader, line in buffer.reads:
            other = foreign_writer(buffer, region, reader)
            if other is not None:
                number, parameter = divmod(reader, memory.parameters)
                raise InterpreterError(
                    f"load of {names[parameter]} reads what {memory.name_writer(other, names)} "
                    "stores in this run; the order is undefined",
                    line=line,
                    text=_line(source, line),
                    kernel=function,
                    block=memory.block_index(number),
                )


def _placed(
    error: BaseException, source: str, filename: str, function: str, block: tuple[int, ...] | None
) -> InterpreterError:
    """The error with the line of the emitted file it comes from."""
    line = getattr(error, "line", None)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            line = trace.tb_lineno
        trace = trace.tb_next
    reason = error.reason if isinstance(error, InterpreterError) else f"{type(error).__name__}: {error}"
    return InterpreterError(reason, line=line, text=_line(source, line), kernel=function, block=block)


def _line(source: str, line: int | None) -> str:
    lines = source.splitlines()
    return lines[line - 1] if line is not None and 1 <= line <= len(lines) else ""
