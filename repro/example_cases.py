"""The programs of `examples/` at the size of a GPU, each with a solution to compare its values with."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from repro.loops import LoopVariant

EXAMPLES = Path(__file__).parents[1] / "examples"


@cache
def example(name: str) -> ModuleType:
    """A program of the folder as a module."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def host(loop: Any, name: str = "u") -> np.ndarray:
    return loop.to_numpy(name)


def off(got: np.ndarray, want: np.ndarray) -> float:
    """The largest difference over the largest value."""
    return float(np.abs(got - want).max() / np.abs(want).max())


def heat_1d() -> LoopVariant:
    """A sine that is an eigenfunction of the method too."""
    cells, mode, steps = 1 << 22, 1 << 17, 256
    model = example("heat_1d")
    sine = np.sin(np.pi * mode * (np.arange(cells) + 0.5) / cells)
    left = 1 - 4 * model.COURANT * np.sin(np.pi * mode / (2 * cells)) ** 2

    def make(device: str, arch: str) -> Any:
        loop = model.rod(cells, device, target=arch)
        loop.set("u", sine)
        return loop

    return LoopVariant(
        "heat_1d", make, steps, cells, lambda u: off(host(u), left**steps * sine), 1e-10, {"c": model.COURANT}
    )


def wave_2d() -> LoopVariant:
    """The standing wave of the grid."""
    cells, modes, steps, c2 = 8192, (40, 24), 128, 0.25
    angles = [2 * np.pi * m / cells for m in modes]
    second = sum((32 * (np.cos(t) - 1) - 2 * (np.cos(2 * t) - 1)) / 12 for t in angles)
    turn = np.arccos(1 + c2 * second / 2)

    def shape(i, j):
        return np.sin(angles[0] * i) * np.sin(angles[1] * j)

    def make(device: str, arch: str) -> Any:
        loop = example("wave_2d").square(cells, device, target=arch)
        if device == "gpu":
            loop.set("u", shape)
            loop.set("older", lambda i, j: np.cos(turn) * shape(i, j))
        return loop

    def error(loop: Any) -> float:
        return float(np.abs(host(loop) - np.cos(turn * loop.step) * shape(*np.ogrid[:cells, :cells])).max())

    return LoopVariant("wave_2d", make, steps, cells**2, error, 1e-9, {"c2": c2})


class Sweeps:
    """A kernel called again and again, with what a loop has."""

    def __init__(self, kernel: Any, launch: Callable[[], None]) -> None:
        self.kernel, self.launch, self.step = kernel, launch, 0

    def compile(self) -> list[Any]:
        return self.kernel.entries

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.launch()
        self.step += steps


def laplacian_3d() -> LoopVariant:
    """The star of eighth order on the sum of three of its eigenfunctions."""
    import stencil_dsl

    cells, steps, modes = 512, 16, (3, 5, 4)
    model = example("laplacian_3d")
    angles = [2 * np.pi * m / cells for m in modes]
    weights = model.WEIGHTS[8]
    values = [weights[0] + 2 * sum(w * np.cos(r * t) for r, w in enumerate(weights[1:], 1)) for t in angles]

    def waves(scale, lo: int = 0, hi: int = 0):
        x = np.arange(-lo, cells + hi)
        a, b, c = (s * np.cos(t * x) for s, t in zip(scale, angles, strict=True))
        return a[:, None, None] + b[:, None] + c

    def make(device: str, arch: str) -> Any:
        kernel = stencil_dsl.compile(model.laplacian(8), arch, shape=(cells,) * 3)
        if device == "cpu":
            return Sweeps(kernel, lambda: None)
        u = stencil_dsl.asarray(waves((1, 1, 1), 4, 4), kernel.halo, includes_halo=True)
        sweeps = Sweeps(kernel, lambda: None)
        sweeps.out = stencil_dsl.empty(u.shape, kernel.halo)  # type: ignore[attr-defined]
        sweeps.launch = kernel.bind(u, sweeps.out, h2=2.0).launch  # type: ignore[attr-defined]
        return sweeps

    def error(sweeps: Any) -> float:
        return off(sweeps.out.to_numpy(), waves([2.0 * v for v in values]))

    return LoopVariant("laplacian_3d", make, steps, cells**3, error, 1e-11)


def gray_scott() -> LoopVariant:
    """Tiles that are all alike stay so, and one of them is solved with NumPy."""
    cells, tile, steps = 4096, 256, 48
    model = example("gray_scott")
    seeds = model.seed(tile)

    def make(device: str, arch: str) -> Any:
        loop = model.reactor(cells, device, target=arch)
        if device == "gpu":
            for name, values in zip("uv", seeds, strict=True):
                loop.set(name, np.tile(values, (cells // tile,) * 2))
        return loop

    def error(loop: Any) -> float:
        u, v = seeds
        for _ in range(steps):
            uvv = u * v * v
            u, v = (
                u + model.DU * around(u) - uvv + model.FEED * (1 - u),
                v + model.DV * around(v) + uvv - (model.FEED + model.KILL) * v,
            )
        n = cells // tile
        blocks = (host(loop, "v").reshape(n, tile, n, tile), host(loop, "u").reshape(n, tile, n, tile))
        return max(float(np.abs(b - want[:, None]).max()) for b, want in zip(blocks, (v, u), strict=True))

    def around(f: np.ndarray) -> np.ndarray:
        return sum(np.roll(f, s, a) for a in (0, 1) for s in (-1, 1)) - 4 * f

    return LoopVariant("gray_scott", make, steps, cells**2, error, 1e-11, {"dt": 1.0})


def fdtd_maxwell_1d() -> LoopVariant:
    """A pulse that moves one point a step."""
    cells, steps = 1 << 22, 512
    model = example("fdtd_maxwell_1d")
    return LoopVariant(
        "fdtd_maxwell_1d",
        lambda device, arch: model.cavity(cells, device, target=arch),
        steps,
        cells,
        lambda loop: float(np.abs(host(loop, "e") - model.exact(cells, steps)).max()),
        1e-12,
        {"c": 1.0},
    )


def fdtd_maxwell_2d() -> LoopVariant:
    """The standing wave of the grid."""
    cells, modes, steps = 4096, (40, 24), 128
    model = example("fdtd_maxwell_2d")
    i = np.arange(cells)
    shape = np.sin(np.pi * modes[0] * i / cells)[:, None] * np.sin(np.pi * modes[1] * i / cells)
    return LoopVariant(
        "fdtd_maxwell_2d",
        lambda device, arch: model.standing_wave(cells, modes, device, target=arch)[0],
        steps,
        cells**2,
        lambda loop: float(np.abs(host(loop, "e") - np.cos(model.phase(cells, modes) * steps) * shape).max()),
        1e-9,
        {"c": model.COURANT},
    )


def shallow_water() -> LoopVariant:
    """What the equations keep: the sums, and the symmetries of the hump."""
    cells, steps = 4096, 32
    model = example("shallow_water")
    spacing = 100.0 / cells
    depth = 1.0 + 0.3 * np.exp(-60.0 * np.add.outer(*[((np.arange(cells) + 0.5) / cells - 0.5) ** 2] * 2))

    def error(loop: Any) -> float:
        h = host(loop, "h")
        moved = abs(h - depth).max()
        sums = max(abs(loop.total("h") / depth.sum() - 1), abs(loop.total("m")) / cells**2)
        return max(float(sums), off(h, h.T), off(h, h[::-1])) if moved > 5e-5 else float("inf")

    scalars = {"dt": 0.4 * spacing / np.sqrt(model.G * 1.3) / 2, "r": 1.0 / spacing}
    return LoopVariant(
        "shallow_water",
        lambda device, arch: model.basin(cells, device, target=arch),
        steps,
        cells**2,
        error,
        1e-11,
        scalars,
    )


def advection_upwind() -> LoopVariant:
    """With a step of one cell the scheme is exact."""
    cells, steps = 1 << 24, 256
    model = example("advection_upwind")
    return LoopVariant(
        "advection_upwind",
        lambda device, arch: model.line(cells, device, target=arch),
        steps,
        cells,
        lambda loop: off(host(loop), model.averages(cells, steps / cells)),
        1e-11,
        {"c": 1.0},
    )


def burgers() -> LoopVariant:
    """Where the shock is, and that it adds no variation."""
    cells, steps = 1 << 22, 128
    model, ones = example("burgers"), round(0.3 * (1 << 22))
    from stencil_dsl.solve import Outflow

    def error(loop: Any) -> float:
        u = host(loop)
        place = ones / cells + steps * 0.5 / cells / 2
        return max(abs(float(u.sum()) / cells - place), float(np.abs(np.diff(u)).sum()) - 1.0)

    def make(device: str, arch: str) -> Any:
        return model.line(np.where(np.arange(cells) < ones, 1.0, 0.0), Outflow(), device, target=arch)

    return LoopVariant("burgers", make, steps, cells, error, 1e-11, {"dt": 0.5 / cells, "inverse": float(cells)})


def heat_2d_bricked() -> LoopVariant:
    """The cosines of the grid; a step fills the bricks' ghost cells and launches one kernel."""
    import stencil_dsl
    from stencil_dsl.solve.bricks import Bricks

    cells, brick, steps = 2048, 8, 16
    model = example("heat_2d_bricked")

    def make(device: str, arch: str) -> Any:
        kernel = stencil_dsl.compile(model.heat, arch, shape=((cells // brick) ** 2, brick, brick))
        sweeps = Sweeps(kernel, lambda: None)
        if device == "cpu":
            return sweeps
        rows = stencil_dsl.asarray(model.start(cells), kernel.halo[1:])
        both = [Bricks.of(rows, (brick, brick), 1) for _ in range(2)]

        def step() -> None:
            both[0].fill()
            kernel(both[0].padded, both[1].padded)
            both.reverse()

        sweeps.launch, sweeps.both, sweeps.rows = step, both, rows  # type: ignore[attr-defined]
        return sweeps

    def error(sweeps: Any) -> float:
        sweeps.both[0].to_rows(sweeps.rows)
        return off(sweeps.rows.to_numpy(), model.decay(cells) ** sweeps.step * model.start(cells))

    return LoopVariant("heat_2d_bricked", make, steps, cells**2, error, 1e-11)


def acoustic_3d() -> LoopVariant:
    """The first steps of a small cube on the host, which waves have not left by then."""
    n, small, steps = 512, 96, 9
    model = example("acoustic_3d")

    def error(loop: Any) -> float:
        other = model.simulation(model.Model(small, 8), "cpu", engine="reference")
        other.run(steps)
        inside = slice(n // 2 - small // 2, n // 2 + small // 2)
        return off(host(loop)[(inside,) * 3], host(other))

    return LoopVariant(
        "acoustic_3d",
        lambda device, arch: model.simulation(model.Model(n, 27), device, target=arch),
        64,
        n**3,
        error,
        1e-4,
        check_steps=steps,
    )


CASES: dict[str, Callable[[], LoopVariant]] = {
    f.__name__: f
    for f in (
        *(heat_1d, wave_2d, laplacian_3d, gray_scott, fdtd_maxwell_1d, fdtd_maxwell_2d, shallow_water),
        *(advection_upwind, burgers, heat_2d_bricked, acoustic_3d),
    )
}
