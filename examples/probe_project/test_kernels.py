"""The gate for this project's kernels: what they compile to, and that they are right. Runs without a GPU."""

from pathlib import Path

import numpy as np
import pytest

from stencil_dsl.testing import Call, In, Out, Problem, RandomField, asks

FILE = Path(__file__).parent / "kernels.py"
X, Y = RandomField(1, "float32"), RandomField(2, "float32")


def doubled_plus(lo, shape):
    return [2 * X(lo, shape, np) + Y(lo, shape, np)]


def axpy():
    of = Problem((1 << 20,), {"x": X, "y": Y}, doubled_plus, check=(1024,), tolerance=1e-6, dtype="float32")
    calls = {
        f"tile-{n}": ("axpy", lambda shape, n=n: Call((shape[0] // n,), (In("x"), In("y"), Out(), n)))
        for n in (256, 1024)
    }
    return of.functions("axpy", FILE, calls)


@pytest.mark.parametrize("variant", ["tile-256", "tile-1024"])
@asks(axpy)
def test_axpy(variant, result):
    result.check()


def rows(lo, shape):
    x = X((lo[0], 0), (shape[0], 128), np).astype(np.float64)
    scaled = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 2.0**-8)
    return [scaled[:, lo[1] : lo[1] + shape[1]]]


def normalize():
    of = Problem((4096, 128), {"x": X}, rows, (16, 128), 1e-6, "float32")
    # Extents are known at run time here: in this project they change from call to call.
    call = lambda shape: Call((shape[0] // 4,), (In("x", static=False), Out(static=False)))  # noqa: E731
    return of.functions("normalize", FILE, {"rows-4": ("normalize", call)})


@pytest.mark.parametrize("variant", ["rows-4"])
@asks(normalize)
def test_normalize(variant, result):
    result.check()
