"""Interleaved timing of a group: every variant once a round, the order reversed each round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from stencil_dsl.testing.device import Device
from stencil_dsl.testing.question import Prepared

#: Every throttled round may be repeated, up to this many extra rounds per asked round.
_EXTRA = 1.0


def orders(names: list[str], rounds: int) -> Iterator[list[str]]:
    """The order of each round: as given, reversed, as given, ... so that drift hits both ends alike."""
    for r in range(rounds):
        yield list(names) if r % 2 == 0 else list(reversed(names))


def flushes_l2(device: Device, nbytes: int) -> bool:
    """Small questions would otherwise be timed out of a warm L2, which no sweep over a large array sees."""
    return 0 < nbytes < 2 * device.l2_bytes


def sample(
    device: Device,
    prepared: dict[str, Prepared],
    rounds: int,
    *,
    nbytes: int = 0,
    announce: Callable[[str, str], None] = lambda name, stage: None,
) -> dict[str, Any]:
    """Times all variants in `rounds` clean rounds.

    announce(name, stage) is called before each step, so that a fault can be laid to a variant.
    Returns ``{"l2", "dropped", "throttled", "samples": {name: [sample, ...]}}``; a sample holds its
    round, place in the order, ms, clocks, power and throttle reasons, and whether it counts (``used``).
    Throttled rounds are repeated; when even so fewer than half are clean, all count and ``throttled``
    says so.
    """
    flush = flushes_l2(device, nbytes)
    timers = {}
    for name, variant in prepared.items():
        announce(name, "warm-up")
        timers[name] = device.timer(variant.enqueue, capturable=variant.capturable, flush=flush)
        device.synchronize()
    samples: dict[str, list[dict[str, Any]]] = {name: [] for name in prepared}
    clean = 0
    for number, order in enumerate(orders(list(prepared), rounds + int(_EXTRA * rounds))):
        throttled = False
        for place, name in enumerate(order):
            announce(name, "round")
            ms = timers[name]()
            state = device.state()
            throttled = throttled or bool(state.get("throttle"))
            samples[name].append({"round": number, "place": place, "ms": ms, **state})
        for name in order:
            samples[name][-1]["used"] = not throttled
        clean += not throttled
        if clean == rounds or (number + 1 == rounds and not clean):
            break  # a card that throttles all the time does so in extra rounds too
    total = number + 1
    mostly_throttled = clean < max(1, rounds // 2)
    if mostly_throttled:
        for rows in samples.values():
            for row in rows:
                row["used"] = True
    return {
        "l2": "flushed" if flush else "warm",
        "dropped": 0 if mostly_throttled else total - clean,
        "throttled": mostly_throttled,
        "samples": samples,
    }


def used_times(samples: list[dict[str, Any]]) -> list[float]:
    """Milliseconds of the rounds that count, in order of rounds."""
    return [row["ms"] for row in samples if row["used"]]
