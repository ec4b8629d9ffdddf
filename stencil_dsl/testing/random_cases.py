"""One random case: a stencil, a schedule, an interior and data, and what has to hold for it.

A case is plain data. It can be written to a file on a machine that compiles and run on one that has a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stencil_dsl.reference.numpy_eval import evaluate
from stencil_dsl.runtime.arrays import PaddedArray, empty
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.runtime.devices import require_cupy
from stencil_dsl.runtime.kernel import Kernel, Options
from stencil_dsl.schedule.layout import Halo
from stencil_dsl.schedule.schedule import Schedule
from stencil_dsl.testing.choose import Choose, chance
from stencil_dsl.testing.error_bound import reassociation_bound
from stencil_dsl.testing.random_schedules import random_interior, random_schedule
from stencil_dsl.testing.random_stencils import RandomStencil, random_stencil
from stencil_dsl.transforms.analysis import set_periodic_rows, the_apply

if TYPE_CHECKING:
    from stencil_dsl.toolchain import KernelCache

POISON = {"float64": 0x7FF8_DEAD_BEEF_F00D, "float32": 0x7FC0_F00D}
"""Bits of a NaN that no arithmetic makes: what is not written still holds it."""

_BITS = {"float64": "int64", "float32": "int32"}
ORDINARY, ZEROS, ANYTHING = 0, 1, 2
"""Data: uniform in [-1, 1); with zeros of both signs and repeated numbers; with infinities and NaN too."""


@dataclass(frozen=True)
class Case:
    """What to compute, how, and on which data.

    Attributes:
        data: ORDINARY, ZEROS or ANYTHING.
        extra: cells of halo that arrays have beyond what the stencil reads.
        own_halo: each field has the halo that it needs itself; otherwise all have the widest.
        inplace: the first output is written over the first field, which has to be read at the cell itself only.
        periodic: rows of all fields are periodic, and their ghost cells at both ends hold the poison.
    """

    stencil: RandomStencil
    dtype: str
    schedule: Schedule
    shape: tuple[int, ...]
    seed: int
    data: int = ORDINARY
    extra: int = 0
    own_halo: bool = False
    inplace: bool = False
    periodic: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"schedule": self.schedule.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Case:
        s = data["stencil"]
        known: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in s.items()}
        stencil = RandomStencil(**known)
        rest = {k: data[k] for k in ("dtype", "seed", "data", "extra", "own_halo", "inplace", "periodic")}
        return cls(stencil, schedule=Schedule.from_json(data["schedule"]), shape=tuple(data["shape"]), **rest)

    def kernel(self, static: bool = False, target: str = "sm_90", cache: KernelCache | None = None) -> Kernel:
        """The kernel; with `static` of this shape and layout, otherwise of whatever arrays it will be given."""
        definition = Definition.of(self.stencil.stencil(), self.dtype)
        if self.periodic:
            set_periodic_rows(the_apply(definition.stencil), [True] * len(definition.fields))
        return Kernel(definition, self.shape if static else None, self.schedule, Options(target, cache=cache))

    def on_rings(self) -> Case:
        """The same on periodic rows, which are made long enough for the stencil and for pairs."""
        reach = max(w for lo_hi in self.kernel().halo[-1:] for w in lo_hi)
        pair = self.schedule.pair
        cells = -(-max(self.shape[-1], reach) // pair) * pair
        schedule = self.schedule.with_(static_shape=True)
        return replace(self, schedule=schedule, shape=(*self.shape[:-1], cells), periodic=True)


def random_case(
    choose: Choose, order: Literal["source", "fast"], kind: str | None = None, **stencil_options: Any
) -> Case:
    """A case for the interpreter; options as for `random_stencil`."""
    f = random_stencil(choose, fast=order == "fast", **stencil_options)
    dtype = choose.one_of(("float64", "float32"))
    schedule = random_schedule(choose, f.ndim, dtype, order, kind)
    shape = random_interior(choose, schedule)
    data = choose.one_of((ORDINARY, ZEROS) if order == "fast" else (ORDINARY, ZEROS, ANYTHING))
    extra, own = choose.integer(0, 2), chance(choose, 30)
    return Case(f, dtype, schedule, shape, choose.integer(0, 999), data, extra, own)


# -- data


def random_values(shape: Sequence[int], dtype: str, rng: np.random.Generator, data: int) -> np.ndarray:
    """Values for a whole array."""
    values = rng.uniform(-1, 1, shape).astype(dtype)
    if data >= ZEROS:
        special = [0.0, -0.0, 1.0, -1.0, 0.5] + [np.inf, -np.inf, np.nan] * (data >= ANYTHING)
        where = rng.random(shape) < 0.3
        values[where] = rng.choice(special, int(where.sum())).astype(dtype)
    return values


def widened(halo: Halo, extra: int) -> Halo:
    return tuple((lo + extra, hi + extra) for lo, hi in halo)


def poisoned(shape: Sequence[int], halo: Halo, dtype: str, device: Any = "cpu") -> PaddedArray:
    """An array whose every element, padding included, holds the poison."""
    array = empty(shape, halo, dtype, device)
    array.buffer.view(_BITS[dtype]).fill(POISON[dtype])
    return array


def random_scalars(case: Case, rng: np.random.Generator) -> dict[str, float]:
    """Values that the element type holds, away from zero: stencils divide by them."""
    values = rng.uniform(0.5, 1.5, len(case.stencil.scalars)) * rng.choice([-1.0, 1.0], len(case.stencil.scalars))
    return dict(zip(case.stencil.scalars, (float(np.dtype(case.dtype).type(v)) for v in values), strict=True))


@dataclass
class Arguments:
    """Host values, and the arrays made of them."""

    values: list[np.ndarray]
    fields: list[PaddedArray]
    outs: list[PaddedArray]
    scalars: dict[str, float]


def make_arguments(case: Case, kernel: Kernel, device: Literal["cpu", "gpu"] = "cpu") -> Arguments:
    """Random fields with their halo, poison around it and in the outputs."""
    rng = np.random.default_rng(case.seed)
    wide = widened(kernel.halo, case.extra)
    full = tuple(n + lo + hi for n, (lo, hi) in zip(case.shape, kernel.halo, strict=True))
    values = [random_values(full, case.dtype, rng, case.data) for _ in case.stencil.fields]
    if case.periodic:
        values = [_periodic(v, kernel.halo[-1], case.shape[-1]) for v in values]
    union = (kernel.halo,) * len(values)
    halos = kernel.definition.field_halos if case.own_halo else union
    fields = [poisoned(case.shape, widened(halo, case.extra), case.dtype, device) for halo in halos]
    for field, data, halo in zip(fields, values, halos, strict=True):
        read = tuple(
            slice(most - own, n - most_hi + own_hi)
            for n, (most, most_hi), (own, own_hi) in zip(full, kernel.halo, halo, strict=True)
        )
        inside, whole = data[read], field.with_halo(halo)
        if case.periodic:
            (lo, hi), n = halo[-1], inside.shape[-1]
            inside, whole = inside[..., lo : n - hi], whole[..., lo : n - hi]
        whole[...] = require_cupy().asarray(inside) if device == "gpu" else inside
    halo = wide if case.extra != 1 else ((0, 0),) * len(case.shape)
    outs = [poisoned(case.shape, halo, case.dtype, device) for _ in kernel.definition.outputs]
    if case.inplace:
        outs[0] = fields[0]
    return Arguments(values, fields, outs, random_scalars(case, rng))


def _periodic(values: np.ndarray, halo: tuple[int, int], cells: int) -> np.ndarray:
    """Values with a halo along the last axis that continues the row."""
    row = values[..., halo[0] : halo[0] + cells]
    return np.pad(row, [(0, 0)] * (values.ndim - 1) + [halo], mode="wrap")


# -- what has to hold


def expected(case: Case, kernel: Kernel, a: Arguments) -> list[np.ndarray]:
    """The reference's results, in source order."""
    origins = [tuple(lo for lo, _ in kernel.halo)] * len(a.values)
    return evaluate(kernel.definition.stencil, a.values, origins, case.shape, list(a.scalars.values()))


def bounds(case: Case, kernel: Kernel, a: Arguments) -> list[np.ndarray]:
    """How far results may be from the reference where the order of operations is free."""
    origins = [tuple(lo for lo, _ in kernel.halo)] * len(a.values)
    return reassociation_bound(kernel.definition.stencil, a.values, origins, case.shape, list(a.scalars.values()))


def host(array: Any) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.get()


def same_bits(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Cells that agree bit for bit; any NaN equals any other."""
    kind = _BITS[want.dtype.name]
    return (np.ascontiguousarray(got).view(kind) == want.view(kind)) | (np.isnan(got) & np.isnan(want))


def stray_writes(array: PaddedArray, before: np.ndarray | None = None) -> int:
    """Elements outside the interior that no longer hold what they held before (by default, the poison)."""
    kind, layout = _BITS[array.dtype], array.layout
    flat = host(array.buffer).view(kind)
    changed = flat != (POISON[array.dtype] if before is None else before.view(kind))
    full = changed[: int(np.prod(layout.extents))].reshape(layout.extents)
    full[tuple(slice(o, o + n) for o, n in zip(layout.origin, layout.shape, strict=True))] = False
    return int(changed.sum())


def unwritten(array: PaddedArray) -> int:
    """Cells of the interior that still hold the poison."""
    inner = np.ascontiguousarray(host(array.interior)).view(_BITS[array.dtype])
    return int((inner == POISON[array.dtype]).sum())


def check_results(case: Case, kernel: Kernel, a: Arguments, exact: bool) -> str:
    """What is wrong with the outputs, or ""."""
    wants = expected(case, kernel, a)
    allowed = [np.zeros(case.shape)] * len(wants) if exact else bounds(case, kernel, a)
    for n, (name, out, want, limit) in enumerate(zip(kernel.definition.outputs, a.outs, wants, allowed, strict=True)):
        before = make_arguments(case, kernel).fields[0].buffer if case.inplace and n == 0 else None
        if count := unwritten(out):
            return f"{name}: {count} cells were not written"
        if count := stray_writes(out, before):
            return f"{name}: {count} elements outside the interior were written"
        got = host(out.interior)
        with np.errstate(all="ignore"):
            right = same_bits(got, want)
            if not exact:
                right |= np.abs(got.astype("f8") - want.astype("f8")) <= limit
        if not right.all():
            cell = tuple(int(c) for c in np.argwhere(~right)[0])
            return (
                f"{name}: {int((~right).sum())} of {right.size} cells differ, first at {cell}: got {got[cell]!r},"
                f" expected {want[cell]!r}, allowed difference {float(limit[cell]):.3g}"
            )
    return ""


def check_case(case: Case, exact: bool, device: Literal["cpu", "gpu"] = "cpu", **options: Any) -> str:
    """Run a case on padded arrays; what is wrong, or ""."""
    kernel = case.kernel(**options)
    a = make_arguments(case, kernel, device)
    kernel(*a.fields, *a.outs, **a.scalars)
    return check_results(case, kernel, a, exact)
