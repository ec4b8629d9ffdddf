"""Values of a baseline on the CPU, against the row's terms evaluated with NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from repro.baselines import emulate
from repro.baselines.base import Baseline, Shape, generator
from repro.baselines.model import Model, Offset
from stencil_dsl.testing.sources import RandomField

#: What outputs hold before a run.
UNTOUCHED = -12345.6789
#: Small interiors: one that no tile divides, one that many do.
SHAPES: tuple[Shape, ...] = ((9, 7, 19), (20, 8, 64))


def max_error(baseline: Baseline) -> float:
    """Runs it on random fields; the largest error of any output relative to the output's largest value.

    Raises:
        AssertionError: where something outside the interior was written.
    """
    return _compare(baseline, outputs_on_host(baseline, fields(baseline)))


def outputs_on_host(baseline: Baseline, values: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Runs a kernel's text on the CPU; every output's interior.

    Raises:
        AssertionError: where something outside the interior was written.
    """
    if baseline.bricks is not None:
        from repro.baselines.bricks import run_on_host

        return run_on_host(baseline, values)
    import stencil_dsl

    arrays = {}
    for name in (*baseline.model.fields, *baseline.model.outputs):
        arrays[name] = stencil_dsl.empty(baseline.shape, halo=baseline.halo, device="cpu")
        # What lies around the fields' halo must not matter. Outputs hold a number that no sweep gives: a NaN
        # written outside the interior would not be seen among NaN.
        arrays[name].fill(np.nan if name in baseline.model.fields else UNTOUCHED)
    for name, given in values.items():
        arrays[name].with_halo(baseline.halo)[...] = given
    emulate.run(baseline, {name: array.buffer for name, array in arrays.items()})
    for name in baseline.model.outputs:
        written = int((arrays[name].buffer != UNTOUCHED).sum())
        wanted = arrays[name].interior.size
        assert written == wanted, f"{name}: {written} values written, the interior has {wanted}"
    return [arrays[name].interior for name in baseline.model.outputs]


def fields(baseline: Baseline) -> dict[str, np.ndarray]:
    """Random inputs, halo included."""
    return random_fields(baseline.model, baseline.shape, baseline.model.radius)


def expected(baseline: Baseline) -> list[np.ndarray]:
    """Every output by NumPy."""
    return evaluated(baseline.model, fields(baseline), baseline.shape, baseline.model.radius)


def random_fields(m: Model, shape: Shape, halo: Shape) -> dict[str, np.ndarray]:
    """Random inputs of a row, with a halo of the same width at both ends of an axis."""
    whole = tuple(n + 2 * h for n, h in zip(shape, halo, strict=True))
    return {f: RandomField(seed)(tuple(-h for h in halo), whole, np) for seed, f in enumerate(m.fields)}


def evaluated(m: Model, values: Mapping[str, np.ndarray], shape: Shape, halo: Shape) -> list[np.ndarray]:
    """Every output of a row on the interior, by NumPy."""

    def read(field: str, offset: Offset) -> np.ndarray:
        return values[field][tuple(slice(h + d, h + d + n) for h, d, n in zip(halo, offset, shape, strict=True))]

    return m.evaluate(read, np)


def _compare(baseline: Baseline, got: Any) -> float:
    errors = []
    for have, want in zip(got, expected(baseline), strict=True):
        difference = np.abs(have - want)
        errors.append(float(np.where(np.isnan(difference), np.inf, difference).max() / np.abs(want).max()))
    return max(errors)


def small_check(baseline: Baseline, tolerance: float = 1e-13) -> dict[str, Any]:
    """The verdict on a configuration, from small interiors."""
    worst, tried = 0.0, []
    for shape in SHAPES:
        config = dict(baseline.config)
        if "cx" in config:  # several chunks also in a small interior
            config["cx"] = min(int(config["cx"]), shape[0] // 2)
        worst = max(worst, max_error(generator(baseline.variant)(baseline.row, shape, config)))
        tried.append("x".join(map(str, shape)))
    ok = worst <= tolerance
    why = "" if ok else f"relative error {worst:.3g} exceeds {tolerance:.3g}"
    return {"ok": ok, "max_rel_err": worst, "how": f"host run, {' '.join(tried)}", "why": why}
