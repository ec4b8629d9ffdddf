"""Time loops: what a step costs beside its sweep, boundaries, the host, composed steps, several GPUs.

A launch makes many steps; tables give the time of one. Fields start as sums of waves that the stencil only scales, so
that every loop's values are compared with a solution before it is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
import pytest

from repro.example_cases import example
from repro.loops import LoopVariant, Repeated, gpus
from repro.tuning import STORE
from stencil_dsl.testing import Question, asks

N, STEPS = 512, 192
SMALL, MANY = 32, 960
"""Cells along an axis where the host is what takes time, and steps of a launch."""

MODES, HEIGHTS = (2, 3, 5), (0.25, 0.5, 0.125)
LAYER = 27


def stencils(name: str) -> tuple[Any, tuple[float, ...]]:
    from repro import stencils

    return {
        "star-7": (stencils.star_7, stencils.STAR_7),
        "star-13": (stencils.star_13, stencils.STAR_13),
        "star-25": (stencils.star_25, stencils.STAR_25),
    }[name]


def waves(shape: tuple[int, ...], scales: tuple[float, ...], *grid: Any) -> Any:
    terms = zip(scales, MODES, shape, grid, strict=True)
    return 1.0 + sum(s * np.cos(2 * np.pi * m / n * x) for s, m, n, x in terms)


def factors(name: str, shape: tuple[int, ...]) -> list[float]:
    """What a step leaves of each wave."""
    c = stencils(name)[1]
    angles = [2 * np.pi * m / n for m, n in zip(MODES, shape, strict=True)]
    return [c[0] + sum(w * (4 + 2 * np.cos(r * t)) for r, w in enumerate(c[1:], 1)) for t in angles]


def distance(name: str, shape: tuple[int, ...], loop: Any) -> float:
    """Of all cells of a loop from the waves, on the device of each part."""
    left = [h * f**loop.step for h, f in zip(HEIGHTS, factors(name, shape), strict=True)]

    def of(part: Any) -> float:
        cells = part["u"].interior
        grid = []
        for axis, (lo, hi) in enumerate(part.domain.box):
            along = [1, 1, 1]
            along[axis] = hi - lo
            grid.append(_like(cells, np.arange(lo, hi, dtype="float64").reshape(along)))
        return float(abs(cells - waves(shape, tuple(left), *grid)).max())

    return max(loop.each(of)) if hasattr(loop, "loops") else of(loop)


def _like(cells: Any, values: np.ndarray) -> Any:
    if isinstance(cells, np.ndarray):
        return values
    import cupy

    return cupy.asarray(values)


def star_loop(
    name: str, shape: tuple[int, ...], rules: Any, ranks: int, more: dict[str, Any], device: str, arch: str
) -> Any:
    """A loop of a star; with `ranks` above 0 over so many GPUs."""
    from stencil_dsl import TuningStore
    from stencil_dsl.solve import TimeLoop, spread

    options = {"device": device, "target": arch, "store": TuningStore(STORE), **more}
    what = stencils(name)[0]
    loop: Any = spread(ranks, what, shape, {"u": rules}, **options) if ranks else None
    loop = loop or TimeLoop(what, shape, {"u": rules}, **{k: v for k, v in options.items() if k != "over"})
    if device == "gpu":
        loop.set("u", partial(waves, shape, HEIGHTS))
    return loop


def star_variant(id: str, name: str, shape: tuple[int, ...], rules: Any, steps: int, ranks: int = 0, **more: Any):
    from stencil_dsl.solve import Periodic

    error = partial(distance, name, shape) if isinstance(rules, Periodic) else None
    make = partial(star_loop, name, shape, rules, ranks, more)
    return LoopVariant(id, make, steps, int(np.prod(shape)), error, 1e-11)


def sweep_of(make: Callable[[str, str], Any], bench: Any) -> Callable[[Any], None]:
    """The loop's kernel on its arrays in turn, and nothing else."""
    program = make("gpu", bench.target.arch).program
    sweeps = cycle([program.phase(n).sweeps[0] for n in range(program.cycle)])

    def launch(stream: Any) -> None:
        with stream:
            next(sweeps).launch()

    return launch


def fills_of(make: Callable[[str, str], Any], bench: Any) -> Callable[[Any], None]:
    """What fills the ghost cells of one step."""
    (apply,) = make("gpu", bench.target.arch).program.phase(0).fills

    def launch(stream: Any) -> None:
        with stream:
            apply()

    return launch


def copy_of(nbytes: int, bench: Any) -> Callable[[Any], None]:
    return bench.device.copy_launch(nbytes)[0]


STEP = (
    "sweep",
    "loop",
    "ghost-cells",
    "single-launches",
    "no-fill",
    "neumann",
    "face",
    "fills",
    "composed-3",
    "composed-3-walls",
    "copy",
)


def step() -> Question:
    """star-7 at 512^3: the sweep alone, the loop, its boundaries, three steps a sweep, a copy."""
    from repro.test_steps import listed
    from stencil_dsl.solve import Dirichlet, Neumann, Periodic

    shape = (N,) * 3
    made = partial(star_variant, name="star-7", shape=shape, steps=STEPS)
    plain = made("loop", rules=Periodic())
    composed = {"temporal_steps": 3, "schedule": {"star_7_3_steps": listed("star-7", 3)}}
    walls = {"x": Periodic(), "y": Dirichlet(1.0, at="face"), "z": Neumann()}
    variants = (
        Repeated("sweep", partial(sweep_of, plain.make), STEPS, plain.make),
        plain,
        made("ghost-cells", rules=Periodic(), wrap_rows=0),
        made("single-launches", rules=Periodic(), graphs=False),
        made("no-fill", rules=Dirichlet(1.0)),
        made("neumann", rules=Neumann()),
        made("face", rules=Dirichlet(1.0, at="face")),
        Repeated("fills", partial(fills_of, plain.make), STEPS),
        made("composed-3", rules=Periodic(), **composed),
        made("composed-3-walls", rules=walls, **composed),
        Repeated("copy", partial(copy_of, 16 * N**3), STEPS),
    )
    assert tuple(v.id for v in variants) == STEP
    return Question("loop-star-7-512", shape, variants, baseline="sweep", limit_s=60.0)


ROWS = {"star-13": 1, "star-25": 1, "star-7-steps-2": 2, "star-7-steps-3": 3}
"""Loops timed with and without ghost cells at the ends of rows, and steps a sweep; star-7 is in `step`."""


def rows(case: str) -> Question:
    """Rows that close to a ring, read by index or from ghost cells."""
    from repro.test_steps import listed
    from stencil_dsl.solve import Periodic

    name, k = case.split("-steps")[0], ROWS[case]
    more: dict[str, Any] = {}
    if k > 1:
        more = {"temporal_steps": k, "schedule": {f"{name.replace('-', '_')}_{k}_steps": listed(name, k)}}
    made = partial(star_variant, name=name, shape=(N,) * 3, rules=Periodic(), steps=STEPS, **more)
    variants = (
        made("ghost-cells", wrap_rows=0),
        made("wrapped", wrap_rows=12),
        Repeated("copy", partial(copy_of, 16 * N**3), STEPS),
    )
    return Question(f"loop-rows-{case}", (N,) * 3, variants, baseline="ghost-cells", limit_s=60.0)


RAW = 'extern "C" __global__ void nothing(double* a) { if (a == 0) a[0] = 1.0; }'
HOST = ("graphs", "single-launches", "raw-kernel")


def empty_launch(bench: Any) -> Callable[[Any], None]:
    """A kernel that does nothing, launched as CuPy launches the user's own."""
    import cupy

    kernel, array = cupy.RawKernel(RAW, "nothing"), cupy.zeros(1)

    def launch(stream: Any) -> None:
        with stream:
            kernel((1,), (32,), (array,))

    return launch


def host() -> Question:
    """star-7 at 32^3, where a step takes as long as the host needs for it, beside CuPy's launch of an empty kernel."""
    from stencil_dsl.solve import Periodic

    made = partial(star_variant, name="star-7", shape=(SMALL,) * 3, rules=Periodic(), steps=MANY)
    variants = (made("graphs"), made("single-launches", graphs=False), Repeated("raw-kernel", empty_launch, MANY))
    return Question("loop-host", (SMALL,) * 3, variants, baseline="raw-kernel", limit_s=60.0)


SCALING = {
    name: ("one", "weak-2", "weak-2-single-launches", "weak-2-nccl", "strong-2") for name in ("star-7", "star-25")
}
SCALING["acoustic"] = ("one", "weak-2")
"""Variants by what is scaled; the acoustic step has some forty kernels a rank, too many to vary."""

PAIRS = [(what, variant) for what, variants in SCALING.items() for variant in variants]


def scaling(what: str) -> Question:
    """One GPU, and two that have twice as much or the same to do."""
    from stencil_dsl.solve import Periodic

    single, double, steps = (N,) * 3, (2 * N, N, N), STEPS // 2
    runs = (
        ("one", single, 0, {}),
        ("weak-2", double, 2, {}),
        ("weak-2-single-launches", double, 2, {"graphs": False}),
        ("weak-2-nccl", double, 2, {"over": "nccl"}),
        ("strong-2", single, 2, {}),
    )
    variants = []
    for id, shape, ranks, more in runs:
        if id not in SCALING[what]:
            continue
        if what == "acoustic":
            make = partial(acoustic_loop, shape[0] // N, ranks, more)
            variants.append(LoopVariant(id, make, steps, int(np.prod(shape))))
        else:
            variants.append(star_variant(id, what, shape, Periodic(), steps, ranks, **more))
    return Question(f"scaling-{what}", single, tuple(variants), baseline="one", limit_s=120.0)


def acoustic_loop(cubes: int, ranks: int, more: dict[str, Any], device: str, arch: str) -> Any:
    """The acoustic example in so many cubes in a row; its values are checked among the examples."""
    from stencil_dsl.solve.crew import Crew
    from stencil_dsl.solve.spread import Spread

    model, over = example("acoustic_3d"), more.get("over", "peer")
    options = {"device": device, "target": arch, **{k: v for k, v in more.items() if k != "over"}}
    box = model.Model(N, LAYER, cubes=cubes)
    if not ranks:
        return model.simulation(box, **options)
    return Spread(Crew(ranks, device, over=over), lambda end: model.simulation(box, ranks=end, **options))


@pytest.mark.parametrize(
    "variant", [pytest.param(v, marks=() if v in ("loop", "copy") else (pytest.mark.timed_only,)) for v in STEP]
)
@asks(step)
def test_step(variant, result):
    result.check()


@pytest.mark.parametrize(
    "variant", [pytest.param(v, marks=pytest.mark.timed_only) for v in ("ghost-cells", "wrapped", "copy")]
)
@pytest.mark.parametrize("case", ROWS)
@asks(rows)
def test_rows(case, variant, result):
    result.check()


@pytest.mark.parametrize("variant", [pytest.param(v, marks=pytest.mark.timed_only) for v in HOST])
@asks(host)
def test_host(variant, result):
    result.check()


@pytest.mark.parametrize(
    ("what", "variant"), [pytest.param(*p, marks=pytest.mark.timed_only) for p in PAIRS if gpus() != 1]
)
@asks(scaling)
def test_scaling(what, variant, result):
    result.check()
