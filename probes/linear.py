"""Hand-made kernels of one sweep of a linear stencil, in every way of writing it that a claim is about.

The DSL's own schedules are the choices that won; these kernels also write down what lost.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Any, Literal

from probes.older import function_variant
from stencil_dsl.testing import Call, FunctionVariant, In, Out, Problem, RandomField

#: First lines of a kernel whose blocks walk z first.
PLACE = [
    "    nx, ny, nz = out.shape[0], out.shape[1], out.shape[2]",
    "    z, y, x = ct.bid(0), ct.bid(1), ct.bid(2)",
]

Offset = tuple[int, int, int]
Terms = tuple[tuple[Offset, float], ...]


def star(coefficients: Sequence[float]) -> Terms:
    """Centre, then one coefficient a distance on all axes and sides."""
    terms = [((0, 0, 0), coefficients[0])]
    for r, c in enumerate(coefficients[1:], start=1):
        terms += [(tuple(s * r * (a == axis) for a in range(3)), c) for axis in range(3) for s in (-1, 1)]
    return tuple(terms)


def box(classes: dict[str, float], radius: int) -> Terms:
    """One coefficient a class of offsets, the class being the sorted absolute offsets ("012")."""
    r = range(-radius, radius + 1)
    return tuple((o, classes["".join(map(str, sorted(map(abs, o))))]) for o in product(r, r, r))


def spatial(terms: Terms) -> Terms:
    """Terms by offset: x, then y, then z."""
    return tuple(sorted(terms))


def by_coefficient(terms: Terms) -> Terms:
    """Terms with one coefficient next to each other, as a person writes classes down."""
    order = list(dict.fromkeys(c for _, c in terms))
    return tuple(sorted(terms, key=lambda term: order.index(term[1])))


def widths(terms: Terms) -> tuple[tuple[int, int], ...]:
    """(before, behind) cells that the accesses reach, per axis."""
    return tuple((-min(o[a] for o, _ in terms), max(o[a] for o, _ in terms)) for a in range(3))


@dataclass(frozen=True)
class Sweep:
    """How a sweep is written.

    Attributes:
        tile: extents of one block's tile.
        options: of ``@ct.kernel``.
        inline: loads stand where they are used; else all come first.
        checked: loads and the store are checked against the array's bounds.
        static: shape and strides are compiled in.
        blocks: which axis consecutive blocks walk first.
        halo_z: cells before the interior's rows; 16 float64 cells are 128 bytes. None: as few as the stencil needs.
        offsets: y and x offsets are slices with constant bounds ("views"), or added to the tile's index ("index").
        constants: how a float64 coefficient gets into the kernel.
        tma: the compiler may use the tensor memory accelerator where it sees fit.
    """

    tile: tuple[int, int, int] = (1, 2, 64)
    options: tuple[tuple[str, Any], ...] = ()
    inline: bool = True
    checked: bool = False
    static: bool = True
    blocks: Literal["z", "y", "x"] = "z"
    halo_z: int | None = 16
    offsets: Literal["views", "index"] = "views"
    constants: Literal["bits", "literal", "array", "split"] = "bits"
    tma: bool = False

    @property
    def hint(self) -> str:
        """Last argument of loads and stores."""
        return "" if self.tma else ", allow_tma=False"

    def with_(self, **changes: Any) -> Sweep:
        return replace(self, **changes)


def text(terms: Terms, sweep: Sweep) -> str:
    """The kernel's Python file."""
    before = _before(terms, sweep)
    names, prologue = _constants(terms, sweep)
    order = {"z": (2, 1, 0), "y": (1, 2, 0), "x": (0, 1, 2)}[sweep.blocks]
    bids = [f"    {'xyz'[axis]} = ct.bid({place})" for place, axis in enumerate(order)]
    loads = {offset: _load(offset, before, sweep) for offset, _ in terms}
    lines = []
    if not sweep.inline:
        lines = [f"    t{n} = {load}" for n, load in enumerate(loads.values())]
        loads = {offset: f"t{n}" for n, offset in enumerate(loads)}
    total = " + ".join(_product(names[c], loads[offset]) for offset, c in terms)
    options = f"({', '.join(f'{k}={v!r}' for k, v in sweep.options)})" if sweep.options else ""
    table = ", table" if sweep.constants == "array" else ""
    return "\n".join(
        [
            "import cuda.tile as ct\n\n",
            f"@ct.kernel{options}",
            f"def sweep(u{table}, out):",
            "    nx, ny, nz = out.shape[0], out.shape[1], out.shape[2]",
            *bids,
            *prologue,
            *lines,
            f"    ct.store(out, (x, y, z), {total}, check_bounds={sweep.checked}{sweep.hint})\n",
        ]
    )


def _before(terms: Terms, sweep: Sweep) -> tuple[int, int, int]:
    (x, _), (y, _), (z, _) = widths(terms)
    return x, y, z if sweep.halo_z is None else max(z, sweep.halo_z)


def _load(offset: Offset, before: tuple[int, ...], sweep: Sweep) -> str:
    start = [b + o for b, o in zip(before, offset, strict=True)]
    index = ["x", "y", "z"]
    view = "u"
    for axis, extent in enumerate(("nx", "ny", "nz")):
        if sweep.offsets == "index" and axis < 2:
            if sweep.tile[axis] != 1:
                raise ValueError("an index counts tiles: offsets can be added to it where the tile has extent 1")
            index[axis] += f" + {start[axis]}" if start[axis] else ""
        else:
            view += f".slice({axis}, {start[axis]}, {start[axis]} + {extent})"
    # Unchecked loads may leave the view of a shape that no tile divides; the arrays have whole tiles behind them.
    bounds = "" if sweep.checked else ", check_bounds=False"
    return f"ct.load({view}, ({', '.join(index)}), {sweep.tile}{bounds}{sweep.hint})"


def _constants(terms: Terms, sweep: Sweep) -> tuple[dict[float, list[str]], list[str]]:
    """Coefficient -> the factors whose sum it is, and the lines that make them."""
    names: dict[float, list[str]] = {}
    lines = []
    for n, c in enumerate(dict.fromkeys(c for _, c in terms)):
        match sweep.constants:
            case "bits":
                bits = struct.unpack("<q", struct.pack("<d", c))[0]
                lines.append(f"    c{n} = ct.bitcast(ct.full((1, 1, 1), {bits}, dtype=ct.int64), ct.float64)")
                names[c] = [f"c{n}"]
            case "literal":
                names[c] = [repr(c)]
            case "array":
                lines.append(f"    c{n} = ct.reshape(ct.load(table, ({n},), (1,)), (1, 1, 1))")
                names[c] = [f"c{n}"]
            case "split":
                names[c] = [repr(part) for part in split(c)]
    return names, lines


def _product(factors: list[str], load: str) -> str:
    if len(factors) == 1:
        return f"{factors[0]} * {load}"
    return f"({' + '.join(f'{factor} * {load}' for factor in factors)})"


def split(c: float) -> list[float]:
    """Numbers that float32 holds exactly, and whose sum is c: three parts of 24 bits cover float64's 53."""
    parts, left = [], c
    while left:
        part = struct.unpack("<f", struct.pack("<f", left))[0]
        parts.append(part)
        left -= part
    return parts


@dataclass(frozen=True)
class _Launch:
    """The launch of a sweep, for any extents."""

    terms: Terms
    sweep: Sweep

    def __call__(self, shape: tuple[int, ...]) -> Call:
        before = _before(self.terms, self.sweep)
        behind = [b for _, b in widths(self.terms)]
        covered = [-(-n // t) * t for n, t in zip(shape, self.sweep.tile, strict=True)]
        if self.sweep.halo_z is not None:  # rows stay multiples of a line
            behind[2] = -(-behind[2] // 16) * 16
        extents = tuple(b + c + a for b, c, a in zip(before, covered, behind, strict=True))
        order = {"z": (2, 1, 0), "y": (1, 2, 0), "x": (0, 1, 2)}[self.sweep.blocks]
        grid = tuple(covered[axis] // self.sweep.tile[axis] for axis in order)
        u = In("u", tuple(-b for b in before), extents, static=self.sweep.static)
        count = len(dict.fromkeys(c for _, c in self.terms))
        table = (In("table", (0,), (count,), static=self.sweep.static),) if self.sweep.constants == "array" else ()
        return Call(grid, (u, *table, Out(static=self.sweep.static)))


@dataclass(frozen=True)
class Table:
    """The distinct coefficients as an input."""

    values: tuple[float, ...]
    dtype: str = "float64"

    def __call__(self, lo: tuple[int, ...], shape: tuple[int, ...], xp: Any) -> Any:
        return xp.asarray(self.values)[lo[0] : lo[0] + shape[0]]


@dataclass(frozen=True)
class Expected:
    """The sum over shifted windows, with NumPy."""

    terms: Terms
    source: Any = field(default=RandomField(0))

    def __call__(self, lo: tuple[int, ...], shape: tuple[int, ...]) -> list[Any]:
        import numpy as np

        reach = widths(self.terms)
        start = tuple(at - b for at, (b, _) in zip(lo, reach, strict=True))
        values = self.source(start, tuple(n + b + a for n, (b, a) in zip(shape, reach, strict=True)), np)
        total = np.zeros(shape)
        for offset, c in self.terms:
            cut = tuple(slice(b + o, b + o + n) for o, n, (b, _) in zip(offset, shape, reach, strict=True))
            total += c * values[cut]
        return [total]


def problem(terms: Terms, shape: tuple[int, int, int], check: tuple[int, int, int]) -> Problem:
    """The sweep as a problem: 16 bytes a cell."""
    coefficients = tuple(dict.fromkeys(c for _, c in terms))
    inputs: dict[str, Callable[..., Any]] = {"u": RandomField(0), "table": Table(coefficients)}
    return Problem(shape, inputs, Expected(terms), check, bytes=16 * prod(shape))


def variant(name: str, of: Problem, terms: Terms, sweep: Sweep, **options: Any) -> FunctionVariant:
    """A way of writing the sweep as a contestant; toolkits that always check bounds get it with checks."""
    return function_variant(name, of, text(terms, sweep), "sweep", _Launch(terms, sweep), **options)
