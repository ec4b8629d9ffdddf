"""What a CuPy user writes: an ElementwiseKernel over the interior, or plain slices.

*elementwise* reads neighbours through ``raw`` arrays and finds its cell from the linear index, as CuPy's
documentation shows it. *slices* is the NumPy expression: one kernel and one temporary an operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from repro.baselines.base import Shape, literal
from repro.baselines.model import Model, Offset, model
from stencil_dsl.schedule.layout import Layout

VERSIONS = ("elementwise", "slices")


def operation(m: Model, layout: Layout) -> str:
    """The body of the ElementwiseKernel: ``i`` counts the cells of the interior."""
    _, ny, nz = layout.shape
    sx, sy, _ = layout.strides
    lines = [f"const ptrdiff_t at = {layout.offset} + i / {ny * nz} * {sx} + i / {nz} % {ny} * {sy} + i % {nz};"]

    def read(field: str, offset: Offset) -> str:
        value = f"{field}[at + {offset[0] * sx + offset[1] * sy + offset[2]}]"
        return f"max({value}, 0.0)" if m.relu else value

    for output, terms in zip(m.outputs, m.sums, strict=True):
        parts = [f"{literal(t.coefficient)} * {' * '.join(read(f, t.offset) for f in t.product)}" for t in terms]
        centre = {f: f"{f}[at]" for f in m.finish_fields}
        lines.append(f"const double {output}_s = " + "\n    + ".join(parts) + ";")
        lines.append(f"{output} = {m.finish.format(s=output + '_s', **centre)};")
    return "\n".join(lines)


def elementwise(row: str, shape: Shape, inputs: Mapping[str, Any], outputs: Sequence[Any]) -> Callable[[], None]:
    """A function that computes one sweep on CuPy's current stream.

    Args:
        inputs: field name to the flat buffer of a padded array.
        outputs: interior views, of the given shape.
    """
    import cupy

    m = model(row)
    layout = Layout.padded(shape, tuple((r, r) for r in m.radius), "float64")
    kernel = cupy.ElementwiseKernel(
        ", ".join(f"raw float64 {f}" for f in m.fields),
        ", ".join(f"float64 {o}" for o in m.outputs),
        operation(m, layout),
        f"elementwise_{row.replace('-', '_')}",
    )
    arguments = [*(inputs[f] for f in m.fields), *outputs]

    def sweep() -> None:
        kernel(*arguments)

    return sweep


def slices(row: str, shape: Shape, inputs: Mapping[str, Any], outputs: Sequence[Any], xp: Any) -> Callable[[], None]:
    """The same by slicing; inputs are views of interior and halo of the row's radius."""
    m = model(row)

    def read(field: str, offset: Offset) -> Any:
        box = (slice(r + d, r + d + n) for r, d, n in zip(m.radius, offset, shape, strict=True))
        return inputs[field][tuple(box)]

    def sweep() -> None:
        for target, value in zip(outputs, m.evaluate(read, xp), strict=True):
            target[...] = value

    return sweep
