"""Array kernels as one writes them by hand: one thread a point, every access a load, nothing shared.

This is the papers' *Arr* baseline in our own words. Addresses are one base and compile-time immediates, the
extents are compiled in, and there is no check where the block divides the extents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from repro.baselines.base import Baseline, Launch, Shape, ceil_div, literal, parameters, symbol
from repro.baselines.model import Model, Offset, Term, model
from stencil_dsl.schedule.layout import Layout

#: Block extents (z, y, x): the papers' shape first, then rows of rising length.
BLOCKS: tuple[Shape, ...] = (
    (8, 8, 8),
    (32, 4, 4),
    (32, 8, 1),
    (64, 2, 2),
    (64, 4, 1),
    (128, 1, 1),
    (16, 4, 4),
)
PAPER_BLOCK = BLOCKS[0]


def configs(row: str) -> list[dict[str, Any]]:
    """What is searched, the papers' block shape first."""
    return [{"b": "x".join(map(str, block))} for block in BLOCKS]


def generate(row: str, shape: Shape, config: Mapping[str, Any] | None = None) -> Baseline:
    """The array kernel of a row.

    Args:
        shape: extents of the interior.
        config: ``{"b": "8x8x8"}``, threads along z, y and x.
    """
    config = dict(config or configs(row)[0])
    bz, by, bx = (int(n) for n in str(config["b"]).split("x"))
    if bz * by * bx > 1024:
        raise ValueError(f"a block has at most 1024 threads, {config['b']} has {bz * by * bx}")
    m = model(row)
    layout = Layout.padded(shape, tuple((r, r) for r in m.radius), "float64")
    name = symbol(f"arr_{row}")
    source = _kernel(m, layout, name, (bz, by, bx))
    grid = tuple(ceil_div(n, b) for n, b in zip(reversed(shape), (bz, by, bx), strict=True))
    launch = Launch(name, grid, (bz, by, bx), (*m.fields, *m.outputs))  # type: ignore[arg-type]
    return Baseline(row, "arr", config, shape, source, (launch,))


def _kernel(m: Model, layout: Layout, name: str, block: Shape) -> str:
    (nx, ny, nz), (bz, by, bx) = layout.shape, block
    sx, sy, _ = layout.strides
    lines = [
        f'extern "C" __global__ void __launch_bounds__({bz * by * bx})',
        f"{name}({parameters(m.fields, m.outputs)}) {{",
        f"  const int z = blockIdx.x * {bz} + threadIdx.x;",
        f"  const int y = blockIdx.y * {by} + threadIdx.y;",
        f"  const int x = blockIdx.z * {bx} + threadIdx.z;",
    ]
    outside = [f"{c} >= {n}" for c, n, b in (("z", nz, bz), ("y", ny, by), ("x", nx, bx)) if n % b]
    if outside:
        lines.append(f"  if ({' || '.join(outside)}) return;")
    lines.append(f"  const long long at = {layout.offset}LL + (long long)x * {sx} + y * {sy} + z;")
    lines += [f"  {array} += at;" for array in (*m.fields, *m.outputs)]

    def read(field: str, offset: Offset) -> str:
        index = offset[0] * sx + offset[1] * sy + offset[2]
        value = f"{field}[{index}]"
        # A comparison, not fmax: that is how the row is usually written, and NaN does not occur.
        return f"({value} > 0.0 ? {value} : 0.0)" if m.relu else value

    for output, terms in zip(m.outputs, m.sums, strict=True):
        lines.append(f"  double {output}_s = 0.0;")
        lines += [f"  {output}_s += {text};" for text in _terms(terms, read)]
        centre = {f: f"{f}[0]" for f in m.finish_fields}
        lines.append(f"  {output}[0] = {m.finish.format(s=output + '_s', **centre)};")
    return "\n".join([*lines, "}", ""])


def _terms(terms: tuple[Term, ...], read: Any) -> list[str]:
    """Each access times its own coefficient; products of fields as differences, which is how they are written."""
    if all(len(t.product) == 1 for t in terms):
        return [f"{literal(t.coefficient)} * {read(t.product[0], t.offset)}" for t in _by_address(terms)]
    groups: dict[float, list[Term]] = {}
    for term in terms:
        groups.setdefault(abs(term.coefficient), []).append(term)
    texts = []
    for coefficient, members in groups.items():
        sign = members[0].coefficient
        parts = ""
        for term in members:
            factors = " * ".join(read(f, term.offset) for f in term.product)
            glue = ("+" if term.coefficient == sign else "-") if parts else ""
            parts += f" {glue} {factors}" if parts else factors
        texts.append(f"{literal(coefficient if sign > 0 else -coefficient)} * ({parts})")
    return texts


def _by_address(terms: tuple[Term, ...]) -> list[Term]:
    return sorted(terms, key=lambda t: t.offset)
