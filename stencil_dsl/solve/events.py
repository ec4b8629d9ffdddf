"""What happens between steps: callbacks, snapshots, the guard against NaN, progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stencil_dsl.errors import StencilError
from stencil_dsl.solve.ghosts import array_module

if TYPE_CHECKING:
    from stencil_dsl.runtime.arrays import PaddedArray
    from stencil_dsl.solve.loop import TimeLoop

PROGRESS_AFTER = 2.0
"""Seconds before the first sign of progress; where output is no terminal, a line follows every tenfold."""


@dataclass(frozen=True)
class Event:
    """A call after every `every`-th step, counted from step 0 of the simulation."""

    every: int
    call: Callable[[TimeLoop], Any]

    def next(self, step: int) -> int:
        """The first step after `step` that the event is due at."""
        return (step // self.every + 1) * self.every


def check_finite(name: str, array: PaddedArray, step: int, first: Sequence[int]) -> str:
    """What is wrong with a field that is not finite everywhere: field, step and the first such cell; "" if it is.

    Args:
        first: the array's first cell in the whole interior.
    """
    xp = array_module(array)
    finite = xp.isfinite(array.interior)
    if bool(finite.all()):
        return ""
    cell = tuple(int(i) for i in np.unravel_index(int(xp.argmin(finite)), array.shape))
    value = float(array.interior[cell])
    place = tuple(i + o for i, o in zip(cell, first, strict=True))
    return (
        f"{name!r} is {value} in cell {place} after step {step}, and {int((~finite).sum())} cells in all are not"
        " finite; is the step too long for the method?"
    )


class Listening:
    """What a loop does besides stepping.

    Attributes:
        snapshots: copies of fields, by step, that `record` asked for.
    """

    snapshots: list[tuple[int, dict[str, np.ndarray]]]
    _events: list[Event]

    if TYPE_CHECKING:  # of the loop that this is part of

        @property
        def fields(self) -> tuple[str, ...]: ...

        @property
        def lasting(self) -> tuple[str, ...]: ...

    def every(self, steps: int, call: Callable[[TimeLoop], Any]) -> None:
        """Call a function with the loop after every so many steps."""
        if steps < 1:
            raise StencilError(f"an event takes place every 1 or more steps, got {steps}")
        self._events.append(Event(steps, call))

    def record(self, steps: int, *names: str) -> None:
        """Keep copies of fields (all, if none is named) in `snapshots` after every so many steps."""
        chosen = names or self.fields
        self.every(steps, lambda loop: loop.snapshots.append((loop.step, {n: loop.to_numpy(n) for n in chosen})))

    def guard(self, steps: int) -> None:
        """Stop with an error when a field is no longer finite; looked at after every so many steps."""
        changing = [name for name in self.fields if name not in self.lasting]

        def look(loop: TimeLoop) -> None:
            found = [check_finite(n, loop[n], loop.step, [lo for lo, _ in loop.domain.box]) for n in changing]
            bad = [text for texts in loop.ranks.transport.allgather(found) for text in texts if text]
            if bad:
                raise StencilError(bad[0])

        self.every(steps, look)


class Progress:
    """A bar on a terminal, a line now and then elsewhere; nothing for short runs."""

    def __init__(self, total: int, label: str) -> None:
        self.total, self.label = total, label
        self.begin = self.last = time.monotonic()
        self.terminal = sys.stderr.isatty()

    def show(self, done: int) -> None:
        now = time.monotonic()
        pause = 0.2 if self.terminal else 10 * PROGRESS_AFTER
        if now - self.begin < PROGRESS_AFTER or (now - self.last < pause and done < self.total):
            return
        self.last = now
        left = (now - self.begin) * (self.total - done) / max(done, 1)
        text = f"{self.label}: step {done} of {self.total}, {done / (now - self.begin):.3g} steps/s, {left:.0f} s left"
        if self.terminal:
            filled = 30 * done // self.total
            print(f"\r[{'#' * filled}{'.' * (30 - filled)}] {text} ", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.terminal and self.last > self.begin:
            print(file=sys.stderr, flush=True)
