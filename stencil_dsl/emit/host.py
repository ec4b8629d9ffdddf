"""The parts of an emitted file around its kernel: what it is, annotations, and the host function."""

from __future__ import annotations

from stencil_dsl.schedule.problem import Lowered, Problem
from stencil_dsl.schedule.schedule import Schedule


def header_lines(problem: Problem, schedule: Schedule, lowered: Lowered) -> list[str]:
    what = "any shape" if problem.shape is None else "x".join(map(str, problem.shape))
    lines = [
        f'"""Stencil {problem.name} on {what} {problem.dtype} cells.',
        "",
        f"Schedule: {schedule}.",
        "Fields are full arrays with halo and padding; outputs are views of the interior.",
        '"""',
        "",
    ]
    if schedule.static_shape:
        lines += ["from typing import Annotated", ""]
    lines += ["import cuda.tile as ct"]
    if schedule.static_shape:
        lines.append("")
        for name, rank in _static_types(problem, lowered):
            dims = tuple(range(rank))
            lines += [
                f"{name} = Annotated[",
                f"    ct.Array, ct.ArrayAnnotation(static_shape_dims={dims}, static_stride_dims={dims})",
                "]",
            ]
    return lines


def _static_types(problem: Problem, lowered: Lowered) -> list[tuple[str, int]]:
    if lowered.pair > 1:
        return [("Static", problem.ndim + 1), ("StaticOut", problem.ndim)]
    return [("Static", problem.ndim)]


def host_lines(problem: Problem, lowered: Lowered) -> list[str]:
    """`launch_NAME(stream, *fields, *outputs, *scalars)`: every distinct array once."""
    outputs = list(dict.fromkeys(p.index for p in lowered.params if p.kind == "output"))
    out_names = {i: "out" if len(outputs) == 1 else f"{problem.outputs[i]}_out" for i in outputs}
    args = [*problem.fields, *(out_names[i] for i in outputs), *problem.scalars]
    lines = [f"def launch_{problem.name}(stream, {', '.join(args)}):"]
    doc = "Enqueue one sweep on a stream; arrays are CuPy's, fields start at their first halo cell."
    lines.append(f'    """{doc}"""')
    passed = []
    if any(p.kind == "scalar" for p in lowered.params):
        lines += ["    import numpy", ""]
    if problem.shape is not None:
        lines += ["    import cupy", ""]
    for p in lowered.params:
        if p.kind == "scalar":
            wide = problem.dtype == "float64"
            passed.append(f"int(numpy.{problem.dtype}({p.name}).view(numpy.{'int64' if wide else 'int32'}))")
        elif p.kind == "field" and p.shape is not None:
            layout = problem.inputs[p.index]
            shape, strides = paired(p.shape, layout.strides, 1 if p.single else lowered.pair)
            field = problem.fields[p.index]
            lines.append(
                f"    {p.name} = cupy.ndarray({shape}, {field}.dtype, {field}.data,"
                f" {tuple(s * problem.itemsize for s in strides)})"
            )
            passed.append(p.name)
        else:
            passed.append(out_names[p.index] if p.kind == "output" else p.name)
    grid = str(lowered.grid) if lowered.grid is not None else _dynamic_grid(lowered, out_names[outputs[0]])
    lines += [
        f"    grid = {grid}",
        f"    ct.launch(stream, grid, {problem.name}, ({', '.join(passed)},))",
    ]
    return lines


def _dynamic_grid(lowered: Lowered, out: str) -> str:
    counts = [f"ct.cdiv({out}.shape[{a}], {lowered.blocks_of[a]})" for a in lowered.grid_axes]
    return f"({', '.join(counts + ['1'] * (3 - len(counts)))})"


def paired(shape: tuple[int, ...], strides: tuple[int, ...], pair: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides of an array seen as (..., n / pair, pair)."""
    if pair == 1:
        return shape, strides
    return (
        (*shape[:-1], -(-shape[-1] // pair), pair),
        (*strides[:-1], strides[-1] * pair, strides[-1]),
    )
