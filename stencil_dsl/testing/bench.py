"""What a variant gets to prepare itself on a device, and the check of its values."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from stencil_dsl.testing.device import Device
from stencil_dsl.testing.question import Prepared, Question, Target

#: Extents of the boxes in which a large output is compared with the host's reference: long along the contiguous axis,
#: so that a box crosses tiles.
_BOX, _BOX_LAST = 16, 160
#: Outputs up to this many elements are compared whole.
_WHOLE = 1 << 18
#: What lies around an output before a launch: a number that float32 holds exactly and no sweep gives. A NaN written
#: there would not be seen among NaN.
_AROUND = -(2.0**13 + 2.0**-8)


class Bench:
    """A device, a question and a target, with arrays that variants of the same layout share."""

    def __init__(self, device: Device, question: Question, target: Target, shared: dict[Any, Any]) -> None:
        self.device = device
        self.question = question
        self.target = target
        self._shared = shared

    @property
    def xp(self) -> Any:
        return self.device.xp

    def shared(self, key: Any, make: Callable[[], Any]) -> Any:
        """make() once for every key within a group: inputs and outputs are large, and timing needs one
        copy.
        """
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    def input(self, name: str, lo: Sequence[int] | None = None, shape: Sequence[int] | None = None) -> Any:
        """A contiguous device array with the values of an input on lo .. lo + shape (default: the
        question's box).
        """
        lo = tuple(lo) if lo is not None else (0,) * len(self.question.shape)
        shape = tuple(shape) if shape is not None else self.question.shape
        source = self.question.inputs[name]
        return self.shared(("input", name, lo, shape), lambda: self.xp.ascontiguousarray(source(lo, shape, self.xp)))

    def output(self, k: int = 0, shape: Sequence[int] | None = None, dtype: str | None = None) -> Any:
        """A device array for output k."""
        shape = tuple(shape) if shape is not None else self.question.shape
        dtype = dtype or self.question.dtype
        return self.shared(("output", k, shape, dtype), lambda: self.xp.empty(shape, dtype=dtype))


def check_values(device: Device, question: Question, prepared: Prepared) -> dict[str, Any] | None:
    """Poisons the outputs with NaN and what is around them with a number, launches once and compares. None for a
    variant that computes nothing.

    Returns ``{"ok", "max_rel_err", "how", "why", "bits"}``; the error is relative to the largest expected magnitude,
    bits is a hash of the values that were compared.
    """
    if not prepared.checked or question.reference is None:
        return None
    for array in prepared.guards:
        array[...] = _AROUND
    for array in prepared.outputs:
        array[...] = float("nan")
    device.synchronize()
    device.launch(prepared.enqueue)
    device.synchronize()
    problem = _unwritten_or_overwritten(device, prepared)
    digest = hashlib.sha256()
    worst, where = compare(question, lambda k, lo, shape: _read(device, prepared, k, lo, shape), digest)
    if not problem and not worst <= question.tolerance:
        problem = f"relative error {worst:.3g} at {where} exceeds {question.tolerance:.3g}"
    how = "device, whole" if len(boxes(question.shape)) == 1 else f"device, {len(boxes(question.shape))} boxes"
    bits = digest.hexdigest()[:16]
    return {"ok": not problem, "max_rel_err": worst, "how": how, "why": problem, "bits": bits}


def compare(
    question: Question, read: Callable[[int, tuple[int, ...], tuple[int, ...]], Any], digest: Any = None
) -> tuple[float, str]:
    """(largest relative error, where) of read(k, lo, shape) against the reference; NaN counts as infinite.

    The values read go into `digest` (an object of hashlib) where one is given.
    """
    import numpy as np

    assert question.reference is not None
    worst, where = 0.0, ""
    for lo, shape in boxes(question.shape):
        for k, want in enumerate(question.reference(lo, shape)):
            values = np.ascontiguousarray(read(k, lo, shape))
            if digest is not None:
                digest.update(values.tobytes())
            got = values.astype(np.float64)
            difference = np.abs(got - want.astype(np.float64))
            difference[~np.isfinite(difference)] = np.inf
            if got.shape != want.shape:
                raise ValueError(f"output {k}: read {got.shape}, reference {want.shape}")
            error = float(difference.max() / max(float(np.abs(want).max()), np.finfo(np.float64).tiny))
            if error > worst:
                at = np.unravel_index(int(difference.argmax()), difference.shape)
                worst, where = error, f"output {k}, {tuple(int(a) + o for a, o in zip(at, lo, strict=True))}"
    return worst, where


def boxes(shape: tuple[int, ...]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Where values are compared, as (lo, extents): everything if it is small, else every corner and
    three inner boxes.

    The inner boxes straddle the middle and positions that no usual tile size divides.
    """
    total = 1
    for extent in shape:
        total *= extent
    if total <= _WHOLE:
        return [((0,) * len(shape), shape)]
    edge = (*(min(_BOX, extent) for extent in shape[:-1]), min(_BOX_LAST, shape[-1]))
    corners = product(*({0, extent - e} for extent, e in zip(shape, edge, strict=True)))
    inner = [
        tuple(min(extent - e, max(0, int(extent * part) - e // 2)) for extent, e in zip(shape, edge, strict=True))
        for part in (0.5, 0.317, 0.731)
    ]
    return [(lo, edge) for lo in dict.fromkeys([*sorted(corners), *inner])]


def _read(device: Device, prepared: Prepared, k: int, lo: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    if prepared.read is not None:
        return device.download(prepared.read(k, lo, shape))
    window = tuple(slice(start, start + extent) for start, extent in zip(lo, shape, strict=True))
    return device.download(prepared.outputs[k][window])


def _unwritten_or_overwritten(device: Device, prepared: Prepared) -> str:
    """Scans whole outputs on the device: cells that were not written, and cells outside that were."""
    xp = device.xp
    for k, output in enumerate(prepared.outputs):
        left = int(xp.isnan(output).sum())
        if prepared.read is None and left:
            return f"output {k}: {left} of {output.size} values are NaN (not written?)"
        if k < len(prepared.guards):
            whole = prepared.guards[k]
            untouched = int((whole == _AROUND).sum()) - int((output == _AROUND).sum())
            outside = int(whole.size - output.size - untouched)
            if outside:
                return f"output {k}: {outside} values outside the interior were written"
    return ""
