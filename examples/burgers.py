"""Burgers' equation with a shock: limited slopes, Godunov's flux, three stages (SSP-RK3) a step.

    u_t + (u^2 / 2)_x = 0

Slopes, both fluxes, the difference and the sum of the stage are one kernel. The scheme keeps the sum of u, does not add
to its total variation, and moves the shock between 1 and 0 at the speed 1/2.
"""

from __future__ import annotations

import numpy as np

from stencil_dsl import stencil
from stencil_dsl.solve import Integrate, Outflow, Periodic, TimeLoop


def minmod(a, b):
    """The smaller of two slopes of one sign, else zero."""
    return min(abs(a), abs(b)) * (0.5 if a > 0 else -0.5) + min(abs(a), abs(b)) * (0.5 if b > 0 else -0.5)


def godunov(left, right):
    """Flux between two states."""
    return max(0.5 * max(left, 0.0) ** 2, 0.5 * min(right, 0.0) ** 2)


def through(u, i, r):
    """Flux through the face before cell i + r."""
    left = u[i + r - 1] + 0.5 * minmod(u[i + r - 1] - u[i + r - 2], u[i + r] - u[i + r - 1])
    right = u[i + r] - 0.5 * minmod(u[i + r] - u[i + r - 1], u[i + r + 1] - u[i + r])
    return godunov(left, right)


@stencil
def rate(u, inverse, i):
    return inverse * (through(u, i, 0) - through(u, i, 1))


def line(start: np.ndarray, rules, device: str | None = None, **options) -> TimeLoop:
    loop = TimeLoop(Integrate([rate], ["u"], "ssp-rk3"), start.shape, {"u": rules}, device=device, **options)
    loop.set("u", start)
    return loop


def shock(cells: int, time: float = 0.4, device: str | None = None) -> tuple[TimeLoop, float]:
    """The shock that starts near x = 0.3, at a given time, and where it should be."""
    ones = round(0.3 * cells)
    loop = line(np.where(np.arange(cells) < ones, 1.0, 0.0), Outflow(), device)
    steps = round(2 * time * cells)
    loop.run(steps, dt=time / steps, inverse=float(cells))
    return loop, ones / cells + time / 2


def wave(cells: int, time: float, device: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """A sine before it breaks, numerical and exact (by its characteristics)."""
    x = (np.arange(cells) + 0.5) / cells
    loop = line(np.sin(2 * np.pi * x) / (2 * np.pi), Periodic(), device)
    steps = round(2 * time * cells)
    loop.run(steps, dt=time / steps, inverse=float(cells))
    exact = np.zeros(cells)
    for _ in range(200):
        exact = np.sin(2 * np.pi * (x - exact * time)) / (2 * np.pi)
    return loop.to_numpy("u"), exact


def picture(axes) -> None:
    x = (np.arange(128) + 0.5) / 128
    loop = line(0.5 + 0.5 * np.sin(2 * np.pi * x), Periodic())
    for steps in (0, 40, 120):
        loop.run(until=steps, dt=0.5 / 128, inverse=128.0)
        axes.plot(x, loop.to_numpy("u"), label=f"t = {steps * 0.5 / 128:.2f}")
    axes.set(xlabel="x", ylabel="u")
    axes.legend()


if __name__ == "__main__":
    loop, place = shock(64)
    u = loop.to_numpy("u")
    print(f"shock at {u.sum() / 64:.4f}, expected {place:.4f}; {np.abs(np.diff(u)).sum():.4f} of variation, it was 1")
