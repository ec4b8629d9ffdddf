"""The step by the stencil compiler: an inner box and six slabs in one sweep, u and v changing places.

The fields are a little longer along z than the cube, so that rows of the inner box start on a cache line. The
damping is a sum of three profiles, each stored along its own axis; slabs along y and x leave out the profiles that
are zero in them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from repro.acoustic.model import DT, RADIUS, VELOCITY, Box, C, Cube, profile, slope, wavelet
from stencil_dsl import stencil
from stencil_dsl.frontend import Field
from stencil_dsl.runtime.arrays import PaddedArray
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.runtime.specialize import Form
from stencil_dsl.runtime.tuning_store import TuningStore
from stencil_dsl.schedule.layout import LINE_BYTES, Layout, round_up
from stencil_dsl.schedule.schedule import Schedule
from stencil_dsl.solve import Dirichlet, Piece, Sweep, System, TimeLoop

STORE = Path(__file__).with_name("tuned.json")
"""Schedules that won a race on a device (`python -m repro.acoustic tune`); without an entry the model chooses."""

_LINE = LINE_BYTES // 4
_VECTOR = 4
"""Elements that a thread loads at once."""
HALO = ((RADIUS, RADIUS),) * 3


def ring(u, r, i, j, k):
    return u[i - r, j, k] + u[i + r, j, k] + u[i, j - r, k] + u[i, j + r, k] + u[i, j, k - r] + u[i, j, k + r]


def laplacian(u, i, j, k):
    return 3.0 * C[0] * u[i, j, k] + sum(C[r] * ring(u, r, i, j, k) for r in range(1, RADIUS + 1))


def damped(u, older, vp, phi, eta, change, i, j, k):
    force = vp[i, j, k] * (laplacian(u, i, j, k) + phi[i, j, k])
    new = ((2.0 - eta * eta + 2.0 * eta) * u[i, j, k] + force - older[i, j, k]) / (1.0 + 2.0 * eta)
    return new, (phi[i, j, k] - change) / (1.0 + eta)


@stencil
def wave(u, older, vp, i, j, k):
    return 2.0 * u[i, j, k] - older[i, j, k] + vp[i, j, k] * laplacian(u, i, j, k)


@stencil
def damped_x(u, older, vp, phi, ex: Field, sx: Field, i, j, k):
    change = sx[i] * (u[i + 1, j, k] - u[i - 1, j, k])
    return damped(u, older, vp, phi, ex[i], change, i, j, k)


@stencil
def damped_y(u, older, vp, phi, ex: Field, sx: Field, ey: Field, sy: Field, i, j, k):
    change = sx[i] * (u[i + 1, j, k] - u[i - 1, j, k]) + sy[j] * (u[i, j + 1, k] - u[i, j - 1, k])
    return damped(u, older, vp, phi, ex[i] + ey[j], change, i, j, k)


@stencil
def damped_z(u, older, vp, phi, ex: Field, sx: Field, ey: Field, sy: Field, ez: Field, sz: Field, i, j, k):
    change = (
        sx[i] * (u[i + 1, j, k] - u[i - 1, j, k])
        + sy[j] * (u[i, j + 1, k] - u[i, j - 1, k])
        + sz[k] * (u[i, j, k + 1] - u[i, j, k - 1])
    )
    return damped(u, older, vp, phi, ex[i] + ey[j] + ez[k], change, i, j, k)


STENCILS = {"x": damped_x, "y": damped_y, "z": damped_z}
AXES = {"ex": 0, "sx": 0, "ey": 1, "sy": 1, "ez": 2, "sz": 2}
"""Profiles and the axis each of them varies along."""


def shift(cube: Cube) -> int:
    """Cells of the fields before the cube along z: with them rows of the inner box start on a cache line."""
    return -cube.layer % _LINE


def shape(cube: Cube) -> tuple[int, int, int]:
    """Extents of the fields."""
    return cube.n, cube.n, round_up(shift(cube) + cube.n, _VECTOR)


def pieces(cube: Cube) -> list[tuple[str, Any, Box]]:
    """Name, stencil and box (in the fields' own cells) of each launch of a step.

    Along z the boxes are those of `Cube`, widened to whole vectors: where the damping and its slope are zero, the
    damped equation is the plain one, and around the cube, where the velocity is zero too, it leaves zeros.
    """
    by, n = shift(cube), cube.n
    high = (by + n - cube.layer) // _VECTOR * _VECTOR
    along_z = {"z_low": (0, by + cube.layer), "z_high": (high, shape(cube)[2])}
    boxes = {"inner": cube.inner, **cube.slabs}
    found = []
    for name, box in boxes.items():
        f = wave if name == "inner" else STENCILS[name[0]]
        found.append((name, f, (*box[:2], along_z.get(name, (by + cube.layer, high)))))
    return found


def system(cube: Cube, inplace: bool = True) -> System:
    """The step. A field that no kernel reads keeps u from being overwritten in place, where that is asked.

    In place, loads and stores of a kernel keep their order, for which its blocks wait at every plane.
    """
    gives = {wave: ["u_new"]}
    made = [Piece(f, box, gives.get(f, ["u_new", "phi_new"])) for _, f, box in pieces(cube)]
    spare = {"spare": "older"} if not inplace else {}
    return System(
        [Sweep(made, onto={"phi_new": "phi"})], advance={"u": "u_new", "older": "u", "phi": "phi_new", **spare}
    )


def profiles(cube: Cube) -> dict[str, np.ndarray]:
    """Values of every profile over the fields' cells and halo along its axis."""
    found = {}
    for name, axis in AXES.items():
        values = profile(cube)[1:-1] if name[0] == "e" else slope(cube)
        before = shift(cube) if axis == 2 else 0
        found[name] = np.pad(values, (RADIUS + before, RADIUS + shape(cube)[axis] - cube.n - before))
    return found


def simulation(cube: Cube, device: str | None = None, vp: Any = None, inplace: bool = True, **options: Any) -> TimeLoop:
    """A loop at rest with the source in the middle.

    Args:
        vp: (velocity dt)^2, a number or an array over the cube; None for the constant velocity.
        inplace: the new u overwrites the oldest, see `system`.
        options: of `TimeLoop`; by default schedules are those of `schedules` for the target.
    """
    options.setdefault("schedule", schedules(cube, options.get("target", "sm_90"), inplace))
    loop = TimeLoop(
        system(cube, inplace),
        shape(cube),
        {"u": Dirichlet(0.0)},
        dtype="float32",
        device=device,  # type: ignore[arg-type]
        profiles=profiles(cube),
        **options,
    )
    cells(loop, cube, "vp")[...] = (VELOCITY * DT) ** 2 if vp is None else vp
    centre = cube.centre
    loop.source("u", (centre, centre, centre + shift(cube)), wavelet)
    return loop


def cells(loop: TimeLoop, cube: Cube, name: str) -> Any:
    """The cube's part of a field, a view."""
    return within(loop[name], cube)


def within(array: PaddedArray, cube: Cube) -> Any:
    """The cube's part of an array, a view."""
    return array.interior[:, :, shift(cube) : shift(cube) + cube.n]


# -- the kernels by themselves, for compiling without the memory of a loop


@dataclass(frozen=True)
class Part:
    """One kernel of the step: its launch's name, its stencil, and the form that the loop binds it in."""

    name: str
    definition: Definition
    form: Form


@cache
def _definition(f: Any) -> Definition:
    return Definition.of(f, "float32")


def inner_cells(cube: Cube) -> int:
    """Cells that the kernel of the inner box computes: up to three fewer along z than the box has."""
    return prod(hi - lo for lo, hi in pieces(cube)[0][2])


def parts(cube: Cube, inplace: bool = True) -> Iterator[Part]:
    """All kernels of a step, in its order."""
    base = Layout.padded(shape(cube), HALO, "float32")
    for name, f, box in pieces(cube):
        definition = _definition(f)
        fields = tuple(_profile_layout(cube, AXES[n]) if n in AXES else base for n in definition.fields)
        inputs = tuple(layout.part(box) for layout in fields)
        outputs = (base.part(box),) * len(definition.outputs)
        yield Part(name, definition, Form(inputs[0].shape, inputs, outputs, inplace=inplace or f is not wave))


def _profile_layout(cube: Cube, axis: int) -> Layout:
    """The layout of `stencil_dsl.solve.views.profile` along one axis."""
    kept = {axis, 2}
    stored = tuple(n if a in kept else 1 for a, n in enumerate(shape(cube)))
    base = Layout.padded(stored, tuple(HALO[a] if a in kept else (0, 0) for a in range(3)), "float32")
    width = {a: n + 2 * RADIUS for a, n in enumerate(shape(cube))}
    return replace(
        base,
        shape=shape(cube),
        origin=tuple(o if a in kept else RADIUS for a, o in enumerate(base.origin)),
        extents=tuple(e if a in kept else width[a] for a, e in enumerate(base.extents)),
        strides=tuple(s if a in kept else 0 for a, s in enumerate(base.strides)),
    )


LAYER = dict.fromkeys(("damped_x", "damped_y", "damped_z"), Schedule(tile=(1, 4, 32), order="fast"))
"""The layer's kernels where no race was stored: a slab has few blocks, and marching through its planes one by one takes
longer than loading each cell's neighbours. Raced on an H200 at 800^3, z: 0.240 ms, streaming 0.287 at best."""


@cache
def schedules(cube: Cube, arch: str, inplace: bool = True) -> dict[str, Schedule]:
    """Kernel name to its schedule: what won a race where one was stored, else `LAYER` or the model's choice."""
    from stencil_dsl.runtime.select import choose

    store, found = TuningStore(STORE), {}
    for part in parts(cube, inplace):
        d = part.definition
        if d.name in found:
            continue
        chosen = choose(d, part.form, "fast", "model", arch, None, None, store)
        stored = any(Schedule.from_json(e["schedule"]) == chosen for e in store.entries.values())
        found[d.name] = chosen if stored else LAYER.get(d.name, chosen)
    return found


def entries(
    cube: Cube, arch: str, toolkit: str | None = None, wanted: Collection[str] | None = None, inplace: bool = True
) -> dict[str, Any]:
    """Launch name (of those wanted) to cache entry, compiled where it is not there; strips have names behind it."""
    from stencil_dsl.runtime.partition import Partition

    chosen = schedules(cube, arch, inplace)
    found = {}
    for part in parts(cube, inplace):
        if wanted is not None and part.name not in wanted:
            continue
        partition = Partition(part.definition, part.form, chosen[part.definition.name], arch)
        main, *strips = partition.compile(arch, toolkit, None)
        found[part.name] = main
        found |= {f"{part.name} strip {n}": entry for n, entry in enumerate(strips, 1)}
    return found
