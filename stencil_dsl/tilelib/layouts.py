"""Layouts: nested shapes with strides, which say where an element of a tile is held.

A layout of three modes (invocation, participant, footprint) is a *fragmap*: it maps which call of a device function,
which of the threads that call together, and which of the elements that this thread is handed, to an index into the
tile. Tiles are indexed colexicographically: element (r, c) of a tile of R x C has index r + R * c.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Any

from stencil_dsl.tilelib.errors import TileLibraryError

Mode = Any
"""An int, or a tuple of modes."""


def _flat(mode: Mode) -> list[int]:
    return [n for m in mode for n in _flat(m)] if isinstance(mode, tuple) else [mode]


def _congruent(a: Mode, b: Mode) -> bool:
    if isinstance(a, tuple) != isinstance(b, tuple):
        return False
    return not isinstance(a, tuple) or (len(a) == len(b) and all(map(_congruent, a, b)))


def _tupled(mode: Any) -> Mode:
    return tuple(map(_tupled, mode)) if isinstance(mode, tuple | list) else int(mode)


@dataclass(frozen=True)
class Layout:
    """`shape:stride`, both tuples of modes of the same nesting; the first submode runs fastest."""

    shape: tuple[Mode, ...]
    stride: tuple[Mode, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", _tupled(self.shape))
        object.__setattr__(self, "stride", _tupled(self.stride))
        if not _congruent(self.shape, self.stride):
            raise TileLibraryError(f"layout {self}: shape and stride are nested differently")
        if any(n < 1 for n in _flat(self.shape)) or any(n < 0 for n in _flat(self.stride)):
            raise TileLibraryError(f"layout {self}: extents are positive and strides are not negative")

    def sizes(self) -> tuple[int, ...]:
        """Number of coordinates of each top-level mode."""
        return tuple(prod(_flat(m)) for m in self.shape)

    def offset(self, *coordinates: int) -> int:
        """Index of a coordinate, one number a top-level mode."""
        return sum(map(_offset, self.shape, self.stride, coordinates))

    def offsets(self) -> list[int]:
        """All indices, the first mode running fastest."""
        found = [0]
        for shape, stride in zip(self.shape, self.stride, strict=True):
            size = prod(_flat(shape))
            found = [base + _offset(shape, stride, n) for n in range(size) for base in found]
        return found

    def __str__(self) -> str:
        return f"{_text(self.shape)}:{_text(self.stride)}"

    @staticmethod
    def parse(text: str) -> Layout:
        """Read `(4, 32, 1):(32, 1, 0)`; raises TileLibraryError."""
        if not re.fullmatch(r"[\d\s,():]+", text) or text.count(":") != 1:
            raise TileLibraryError(f"{text!r} is no layout; write it like (4, 32, 1):(32, 1, 0)")
        shape, stride = (_read(half) for half in text.split(":"))
        return Layout(shape, stride)


def _offset(shape: Mode, stride: Mode, n: int) -> int:
    if not isinstance(shape, tuple):
        return n * stride
    total = 0
    for part, step in zip(shape, stride, strict=True):
        size = prod(_flat(part))
        total += _offset(part, step, n % size)
        n //= size
    return total


def _text(mode: Mode) -> str:
    return f"({', '.join(map(_text, mode))})" if isinstance(mode, tuple) else str(mode)


def _read(text: str) -> tuple[Mode, ...]:
    """A tuple as layouts write it: `(1)` is a tuple too."""
    stack: list[list[Any]] = [[]]
    for token in re.findall(r"\d+|[()]", text):
        if token == "(":
            stack.append([])
        elif token == ")":
            if len(stack) == 1:
                raise TileLibraryError(f"unbalanced parentheses in layout {text!r}")
            done = tuple(stack.pop())
            stack[-1].append(done)
        else:
            stack[-1].append(int(token))
    if len(stack) != 1 or len(stack[0]) != 1 or not isinstance(stack[0][0], tuple):
        raise TileLibraryError(f"unbalanced parentheses in layout {text!r}")
    return stack[0][0]


VALUE = Layout((), ())
"""Memory layout of what travels by value."""


def contiguous(count: int) -> Layout:
    """Memory layout of a thread's own elements behind a pointer."""
    return Layout((count,), (1,))


def elementwise(size: int, footprint: int = 1) -> Layout:
    """Fragmap of calls that each take `footprint` neighbouring elements, one thread at a time."""
    return Layout((size // footprint, 1, footprint), (footprint, 0, int(footprint > 1)))


def warpwise(size: int, footprint: int = 1) -> Layout:
    """Fragmap of calls by whole warps; lane k holds the k-th run of `footprint` elements."""
    chunk = 32 * footprint
    return Layout((size // chunk, 32, footprint), (chunk, footprint, int(footprint > 1)))
