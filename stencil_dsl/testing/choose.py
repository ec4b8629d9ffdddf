"""Where random choices come from: a seeded generator, or hypothesis, which can shrink them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Choose(Protocol):
    """Two kinds of choice are enough; whoever offers them listed or counted the simplest first."""

    def integer(self, low: int, high: int) -> int:
        """An integer of [low, high]."""

    def one_of(self, items: Sequence[T]) -> T:
        """One of the items."""


class Seeded:
    """Choices that depend on a seed only, the same on every machine."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def one_of(self, items: Sequence[T]) -> T:
        return items[self.random.randrange(len(items))]


class Drawn:
    """Choices of hypothesis; `draw` is what `hypothesis.strategies.composite` hands over."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw

    def integer(self, low: int, high: int) -> int:
        from hypothesis import strategies

        return self.draw(strategies.integers(low, high))

    def one_of(self, items: Sequence[T]) -> T:
        return items[self.integer(0, len(items) - 1)]


def chance(choose: Choose, percent: int) -> bool:
    """True in `percent` of 100 cases; shrinks to False."""
    return choose.integer(0, 99) >= 100 - percent
