"""Acoustic waves in a cube that lets them out: eighth order in space, an absorbing layer, a source in the middle.

    u_tt = v^2 lap u,  damped by eta in a layer along all faces, where phi corrects for the change of eta

The interior is cut into an inner box, which computes the plain wave equation, and six slabs, which compute the damped
one; the newest field overwrites the oldest. The layer's damping is the sum of three profiles, each of which varies
along one axis only. This is the problem of the Minimod proxy application, in float32; `examples/acoustic_3d.py N STEPS`
runs it at any size.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from stencil_dsl import stencil
from stencil_dsl.frontend import Field
from stencil_dsl.solve import Dirichlet, Piece, Sweep, System, TimeLoop

DX = 20.0
"""Spacing in metres."""

VMAX, COURANT, FMAX = 4500.0, 0.8, 25.0
WEIGHTS = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)
C = tuple(w / DX**2 for w in WEIGHTS)
DT = 2 * COURANT / (VMAX * np.sqrt(3 * abs(C[0]) + 6 * sum(map(abs, C[1:]))))
"""Step in seconds."""

SIGMA = 0.6 * FMAX


def ring(u, r, i, j, k):
    return u[i - r, j, k] + u[i + r, j, k] + u[i, j - r, k] + u[i, j + r, k] + u[i, j, k - r] + u[i, j, k + r]


def laplacian(u, i, j, k):
    return 3.0 * C[0] * u[i, j, k] + sum(C[r] * ring(u, r, i, j, k) for r in range(1, 5))


@stencil
def wave(u, older, vp, i, j, k):
    return 2.0 * u[i, j, k] - older[i, j, k] + vp[i, j, k] * laplacian(u, i, j, k)


@stencil
def damped(u, older, vp, phi, ex: Field, ey: Field, ez: Field, i, j, k):
    eta = ex[i] + ey[j] + ez[k]
    force = vp[i, j, k] * (laplacian(u, i, j, k) + phi[i, j, k])
    new = ((2.0 - eta * eta + 2.0 * eta) * u[i, j, k] + force - older[i, j, k]) / (1.0 + 2.0 * eta)
    change = (
        (ex[i + 1] - ex[i - 1]) * (u[i + 1, j, k] - u[i - 1, j, k])
        + (ey[j + 1] - ey[j - 1]) * (u[i, j + 1, k] - u[i, j - 1, k])
        + (ez[k + 1] - ez[k - 1]) * (u[i, j, k + 1] - u[i, j, k - 1])
    )
    return new, (phi[i, j, k] - change / (4.0 * DX**2)) / (1.0 + eta)


def slabs(layer: int) -> list[list[tuple[int, int]]]:
    """The six boxes of the layer: whole faces along z, then what they leave along y, then along x."""
    every, inner = (0, 0), (layer, -layer)
    ends = ((0, layer), (-layer, 0))
    return (
        [[every, every, end] for end in ends]
        + [[every, end, inner] for end in ends]
        + [[end, inner, inner] for end in ends]
    )


def damping(n: int, layer: int, halo: int = 4) -> np.ndarray:
    """The damping along one axis: it grows with the square of the depth in the layer; ghost cells included."""
    strength = 3 * DT * VMAX * np.log(1000.0) / (2 * layer * DX)
    depth = np.maximum(layer - np.arange(n), layer - np.arange(n)[::-1]).clip(0)
    inside = strength * (depth / layer) ** 2
    ghost = strength * ((layer + 1) / layer) ** 2
    return np.concatenate([np.full(halo, ghost), inside, np.full(halo, ghost)])


def wavelet(step: int) -> float:
    """What the source adds in a step."""
    x = 8.0 * (SIGMA * DT * step - 1.0) ** 2
    return float(-16.0 * SIGMA * (SIGMA - 2.0 * SIGMA * x) * np.exp(-x))


@dataclass(frozen=True)
class Model:
    """Extent of the cube in cells, width of the layer, and the velocity in metres a second (a number or an array).

    With `cubes` above 1 the box is so many cubes long along the first axis.
    """

    n: int = 100
    layer: int = 27
    velocity: float | np.ndarray = 2000.0
    cubes: int = 1

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.cubes * self.n, self.n, self.n


def simulation(model: Model, device: str | None = None, **options) -> TimeLoop:
    """A loop at rest, with the source in the middle."""
    inner = [(model.layer, -model.layer)] * 3
    pieces = [Piece(wave, inner, ["u_new"])]
    pieces += [Piece(damped, box, ["u_new", "phi_new"]) for box in slabs(model.layer)]
    system = System([Sweep(pieces, onto={"phi_new": "phi"})], advance={"u": "u_new", "older": "u", "phi": "phi_new"})
    eta = {f"e{axis}": damping(n, model.layer) for axis, n in zip("xyz", model.shape, strict=True)}
    loop = TimeLoop(
        system,
        model.shape,
        {"u": Dirichlet(0.0)},
        dtype="float32",
        device=device,
        profiles=eta,
        **options,
    )
    loop.set("vp", (np.asarray(model.velocity) * DT) ** 2)
    loop.source("u", [n // 2 for n in model.shape], wavelet)
    return loop


def picture(axes) -> None:
    loop = simulation(Model(64, 16, 3500.0), "cpu", engine="reference")
    loop.run(100)
    field = loop.to_numpy("u")[32]
    axes.imshow(field, cmap="gray", vmin=-np.abs(field).max() / 2, vmax=np.abs(field).max() / 2)
    axes.set(title="pressure in a plane through the source, step 100")


if __name__ == "__main__":
    n, steps = (int(a) for a in (sys.argv[1:] + ["24", "20"][len(sys.argv) - 1 :]))
    loop = simulation(Model(n, min(27, n // 4)))
    loop.guard(200)
    loop.run(steps, progress=True)
    print(f"{n}^3 cells, step {steps}: pressure {loop.minimum('u'):.6f} to {loop.maximum('u'):.6f}")
