"""Compare a kernel with the NumPy reference on random data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stencil_dsl.reference.numpy_eval import evaluate
from stencil_dsl.runtime.arrays import PaddedArray, empty
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.runtime.devices import gpu_available
from stencil_dsl.schedule.layout import Halo
from stencil_dsl.transforms.analysis import halo

if TYPE_CHECKING:
    from stencil_dsl.runtime.kernel import Kernel

INTERPRETED_CELLS = 60_000
"""More cells than this are not interpreted: a smaller interior with the same tails is taken instead."""

TOLERANCE = {"float64": 1e-12, "float32": 1e-5}
"""Relative to the largest magnitude among results: what reassociation and contraction may cost."""

BOXES = 8
BOX_CELLS = 24


@dataclass(frozen=True)
class Validation:
    """Outcome of a comparison.

    Attributes:
        ok: all values within the tolerance, all cells written, nothing else written.
        max_rel_err: largest difference over the largest magnitude of the reference.
        exact: bit for bit equal.
        backend: "gpu" or "interpreter".
        shape: interior that was compared.
        message: what is wrong, or "".
    """

    ok: bool
    max_rel_err: float
    exact: bool
    backend: str
    shape: tuple[int, ...]
    message: str = ""

    def __bool__(self) -> bool:
        return self.ok


def small_shape(kernel: Kernel) -> tuple[int, ...]:
    """An interior small enough to interpret that still has several blocks and a tail along every axis."""
    if kernel.shape is not None and prod(kernel.shape) <= INTERPRETED_CELLS:
        return kernel.shape
    schedule, ndim = kernel.schedule, kernel.definition.ndim
    width = schedule.tile[-1] * schedule.pair
    x = 11 if schedule.kind == "streaming" else 2 * schedule.tile[0] + 1
    y = 2 * schedule.tile[1] * schedule.rows + 1 if ndim == 3 else 0
    extents = {1: (2 * width + 3,), 2: (x, width + 3), 3: (x, y, width + 3)}[ndim]
    if kernel.shape is None:
        return extents
    # Where the real extent divides evenly the small one does too: it takes the same code.
    z = 2 * width if kernel.shape[-1] % width == 0 else extents[-1]
    return tuple(min(a, b) for a, b in zip((*extents[:-1], z), kernel.shape, strict=True))


def random_field(shape: Sequence[int], widths: Halo, dtype: str, rng: np.random.Generator, device: Any) -> PaddedArray:
    """A field of values in [-1, 1), halo included; what lies outside the halo is NaN."""
    array = empty(shape, widths, dtype, device)
    array.fill(np.nan)
    if device == "gpu":
        from stencil_dsl.runtime.devices import require_cupy

        cupy = require_cupy()
        target = array.with_halo(widths)
        generator = cupy.random.default_rng(int(rng.integers(2**31)))
        target[...] = generator.random(target.shape, dtype=dtype) * 2 - 1
    else:
        target = array.with_halo(widths)
        target[...] = rng.uniform(-1, 1, target.shape).astype(dtype)
    return array


def validate(kernel: Kernel, seed: int, device: Literal["gpu", "cpu"] | None) -> Validation:
    """See `Kernel.validate`."""
    where = device or ("gpu" if gpu_available() else "cpu")
    d, rng = kernel.definition, np.random.default_rng(seed)
    shape = small_shape(kernel) if where == "cpu" or kernel.shape is None else kernel.shape
    run = kernel if kernel.shape in (None, shape) else kernel.for_shape(shape)
    fields = [random_field(shape, kernel.halo, d.dtype, rng, where) for _ in d.fields]
    outs = [empty(shape, kernel.halo, d.dtype, where) for _ in d.outputs]
    for out in outs:
        out.fill(np.nan)
    scalars = {name: float(np.dtype(d.dtype).type(rng.uniform(0.5, 1.5))) for name in d.scalars}
    run(*fields, *outs, **scalars)
    boxes = [tuple(slice(0, n) for n in shape)]
    if where == "gpu" and prod(shape) > INTERPRETED_CELLS:
        boxes = _boxes(shape, rng)
    return compare(kernel, fields, outs, [scalars[s] for s in d.scalars], boxes, where)


def _boxes(shape: Sequence[int], rng: np.random.Generator) -> list[tuple[slice, ...]]:
    """Sub-boxes of an interior: the first and last corner and random ones."""
    extents = [min(n, BOX_CELLS * (4 if axis == len(shape) - 1 else 1)) for axis, n in enumerate(shape)]
    starts = [[0] * len(shape), [n - e for n, e in zip(shape, extents, strict=True)]]
    starts += [[int(rng.integers(0, n - e + 1)) for n, e in zip(shape, extents, strict=True)] for _ in range(BOXES - 2)]
    return [tuple(slice(s, s + e) for s, e in zip(start, extents, strict=True)) for start in starts]


def _host(array: Any) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.get()


def compare(
    kernel: Kernel,
    fields: Sequence[PaddedArray],
    outs: Sequence[PaddedArray],
    scalars: Sequence[float],
    boxes: Sequence[tuple[slice, ...]],
    where: str,
) -> Validation:
    """Compare outputs with the reference inside boxes of the interior, and look for stray or missing writes."""
    d = kernel.definition
    worst, scale, exact = 0.0, 0.0, True
    for box in boxes:
        shape = tuple(s.stop - s.start for s in box)
        cut = tuple(slice(s.start, s.stop + lo + hi) for s, (lo, hi) in zip(box, kernel.halo, strict=True))
        inputs = [np.ascontiguousarray(_host(f.with_halo(kernel.halo)[cut])) for f in fields]
        expected = _expected(d, inputs, shape, scalars)
        for name, out, want in zip(d.outputs, outs, expected, strict=True):
            got = _host(out.interior[box])
            if not np.array_equal(np.isnan(got), np.isnan(want)):
                bad = np.argwhere(np.isnan(got) != np.isnan(want))[0]
                cell = tuple(int(b + s.start) for b, s in zip(bad, box, strict=True))
                return Validation(
                    False,
                    float("inf"),
                    False,
                    where,
                    outs[0].shape,
                    f"{name}: NaN or unwritten cell at {cell}",
                )
            finite = np.isfinite(want)
            exact &= bool(np.array_equal(got, want, equal_nan=True))
            if finite.any():
                scale = max(scale, float(np.abs(want[finite]).max()))
                worst = max(worst, float(np.abs(got[finite] - want[finite]).max()))
    message = next((m for out, n in zip(outs, d.outputs, strict=True) if (m := _stray(out, n))), "")
    error = worst / scale if scale else worst
    # The interpreter does not contract, so source order must give the reference's bits there.
    same_order = kernel.schedule.order == "source" and d.steps == 1
    limit = 0.0 if same_order and where == "cpu" else TOLERANCE[d.dtype]
    if error > limit and not message:
        message = f"largest relative error {error:.3g} exceeds {limit:.3g}"
    backend = "gpu" if where == "gpu" else "interpreter"
    return Validation(not message, error, exact, backend, outs[0].shape, message)


def _expected(
    d: Definition, inputs: list[np.ndarray], shape: tuple[int, ...], scalars: Sequence[float]
) -> list[np.ndarray]:
    """Results on an interior, from fields with the kernel's halo; several steps are taken one by one.

    They advance the first field; the others are the same in every step.
    """
    if d.single is None:
        return evaluate(d.stencil, inputs, [tuple(lo for lo, _ in d.halo)] * len(inputs), shape, scalars)
    one = halo(d.single)
    for left in range(d.steps - 1, -1, -1):
        extents = tuple(n + left * (lo + hi) for n, (lo, hi) in zip(shape, one, strict=True))
        inner = tuple(slice(lo, lo + n) for n, (lo, _) in zip(extents, one, strict=True))
        origins = [tuple(lo for lo, _ in one)] * len(inputs)
        inputs = [*evaluate(d.single, inputs, origins, extents, scalars), *(f[inner] for f in inputs[1:])]
    return inputs[:1]


def _stray(out: PaddedArray, name: str) -> str:
    """Complain about a write outside the interior; the array was filled with NaN before."""
    written = int((out.buffer == out.buffer).sum())
    expected = int((out.interior == out.interior).sum())
    return f"{name}: {written - expected} elements outside the interior were written" if written != expected else ""
