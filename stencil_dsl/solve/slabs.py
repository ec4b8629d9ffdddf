"""Elementwise operations on slabs of an array, one by one with NumPy or CuPy, or many in one launch on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from stencil_dsl.solve.device_code import compiled

THREADS = 128
MOST = 2**31
"""Elements that one launch fills at most: their places have 32 bits."""

FIELDS = 18
"""Numbers that describe one slab to the kernel: end, sign, three addresses, three extents, nine strides, and how many
slabs share the elements up to the end (both of two have the same end)."""


@dataclass(frozen=True)
class Slab:
    """`dst = sign * src + add`; views of the same rank, the sources broadcast.

    Attributes:
        src: None where the sign is 0.
        add: None for nothing.
    """

    dst: Any
    src: Any = None
    add: Any = None
    sign: int = 1

    def action(self, xp: Any) -> Callable[[], Any]:
        """The operation with a module's own functions; it allocates nothing."""
        if self.sign == 0:
            return partial(xp.copyto, self.dst, self.add)
        if self.add is not None:
            return partial(xp.add if self.sign > 0 else xp.subtract, self.add, self.src, out=self.dst)
        if self.sign < 0:
            return partial(xp.negative, self.src, out=self.dst)
        return partial(xp.copyto, self.dst, self.src)


def independent(slabs: Sequence[Slab]) -> bool:
    """Whether no slab reads another one's target, as far as layers that were resolved one by one tell."""
    return all(s.src is not s.dst for s in slabs)


def actions_of(slabs: Sequence[Slab], xp: Any) -> list[Callable[[], Any]]:
    """What carries out the slabs: on a GPU one launch for all, where they are independent."""
    if xp is np or not slabs or not independent(slabs) or sum(s.dst.size for s in slabs) >= MOST:
        return [s.action(xp) for s in slabs]
    table, total = describe(slabs, lambda a: a.data.ptr)
    dtype, device = slabs[0].dst.dtype.name, slabs[0].dst.device.id
    kernel = compiled("fill_slabs", dtype, device)
    arguments = (xp.asarray(table), np.uint32(total))
    return [partial(_launch, kernel, -(-total // THREADS), arguments, list(slabs))]


def _launch(kernel: Any, blocks: int, arguments: tuple[Any, ...], keep: Sequence[Slab]) -> None:
    """Launch; `keep` are the arrays that the table points to."""
    kernel((blocks,), (THREADS,), arguments)


def describe(slabs: Sequence[Slab], address: Callable[[Any], int]) -> tuple[np.ndarray, int]:
    """The table that the kernel reads, and how many elements there are to write."""
    rows: list[list[int]] = []
    end, left = 0, list(slabs)
    while left:
        together = left[: 2 if len(left) > 1 and left[0].dst.shape == left[1].dst.shape else 1]
        left = left[len(together) :]
        end += sum(s.dst.size for s in together)
        rows += [_row(s, end, len(together), address) for s in together]
    return np.array(rows, "int64"), end


def _row(s: Slab, end: int, together: int, address: Callable[[Any], int]) -> list[int]:
    row = [end, s.sign, *(0 if a is None else address(a) for a in (s.dst, s.src, s.add))]
    pad = 3 - s.dst.ndim
    row += [1] * pad + list(s.dst.shape)
    for a in (s.dst, s.src, s.add):
        row += [0] * 3 if a is None else [0] * pad + _steps(a, s.dst.shape)
    row.append(together)
    assert len(row) == FIELDS
    return row


def _steps(a: Any, shape: Sequence[int]) -> list[int]:
    """Strides in elements, 0 along axes that are broadcast."""
    return [0 if n == 1 and m != 1 else s // a.itemsize for n, s, m in zip(a.shape, a.strides, shape, strict=True)]
