"""Variants that are tile functions: their text, their signature, their values, and what is said when they are wrong."""

from __future__ import annotations

import numpy as np
import pytest

from stencil_dsl.testing import Call, FunctionVariant, In, Out, Problem, RandomField, Scalar, Target, kernel_text
from stencil_dsl.testing.kernel_source import cut
from stencil_dsl.testing.tile_kernels import flatten

FILE = """import os

import cuda.tile as ct
import numpy

SCALE = 2
OTHER = 3


def helper(x):
    return x * SCALE


@ct.kernel(occupancy=2, num_worker_warps=8)
def double(u, out):
    i = ct.bid(0)
    ct.store(out, (i,), helper(ct.load(u, (i,), (64,))))


@ct.kernel
def plain(u, out):
    ct.store(out, (0,), ct.load(u, (0,), (64,)))


def host(stream):
    os.getpid()
"""


def test_a_kernel_comes_with_what_it_uses_and_nothing_else():
    text = cut(FILE, "double", "file.py")
    assert "SCALE = 2" in text and "def helper" in text and "import cuda.tile as ct" in text
    assert not any(word in text for word in ("OTHER", "numpy", "import os", "plain", "host"))
    compile(text, "double.py", "exec")


@pytest.mark.parametrize(
    ("function", "options", "decorator"),
    [
        ("double", {}, "@ct.kernel(occupancy=2, num_worker_warps=8)"),
        ("double", {"occupancy": 4}, "@ct.kernel(occupancy=4, num_worker_warps=8)"),
        ("double", {"occupancy": None, "opt_level": 1}, "@ct.kernel(num_worker_warps=8, opt_level=1)"),
        ("plain", {"occupancy": 8}, "@ct.kernel(occupancy=8)"),
    ],
)
def test_options_replace_those_of_the_decorator(function, options, decorator, tmp_path):
    (tmp_path / "kernels.py").write_text(FILE)
    assert f"\n{decorator}\ndef {function}(" in kernel_text(tmp_path / "kernels.py", function, **options)


def test_other_functions_are_no_kernels():
    with pytest.raises(ValueError, match="no @ct.kernel function 'helper'; it has double, plain"):
        cut(FILE, "helper", "file.py")


def problem(**changes) -> Problem:
    u = RandomField(1)
    facts = {"shape": (256,), "inputs": {"u": u}, "reference": lambda lo, n: [2 * u(lo, n, np)], "check": (128,)}
    return Problem(**(facts | changes))


def variant(source: str = "ct.load(u, (i,), (64,)) * 2", of: Problem | None = None, **changes) -> FunctionVariant:
    text = (
        f"import cuda.tile as ct\n\n@ct.kernel\ndef f(u, out):\n    i = ct.bid(0)\n    ct.store(out, (i,), {source})\n"
    )
    facts = {"id": "v", "problem": of or problem(), "source": text, "function": "f"}
    return FunctionVariant(**(facts | {"call": lambda n: Call((n[0] // 64,), (In("u"), Out()))} | changes))


def test_values_are_checked_on_the_small_extents():
    outcome = variant().validate(Target("sm_90"))
    assert outcome == {"ok": True, "max_rel_err": 0.0, "how": "interpreter, 128", "why": ""}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"source": "ct.load(u, (i,), (64,)) * 3"}, "relative error 0.5 exceeds 1e-12"),
        ({"call": lambda n: Call((1,), (In("u"), Out()))}, "output 0: 64 of 128 values are NaN (not written?)"),
    ],
)
def test_wrong_and_missing_values_are_told(changes, why):
    outcome = variant(**changes).validate(Target("sm_90"))
    assert not outcome["ok"] and outcome["why"] == why


def test_static_and_dynamic_arrays_become_different_signatures():
    static, dynamic = variant().params(), variant(call=lambda n: Call((4,), (In("u", static=False), Out()))).params()
    assert (static[0].shape, static[0].strides) == ((256,), (1,))
    assert (dynamic[0].shape, dynamic[0].strides, dynamic[0].shape_divisible_by) == ((None,), (1,), (16,))


def test_arguments_of_a_cubin():
    array = np.zeros((4, 6))
    assert [int(n) if np.ndim(n) == 0 else "array" for n in flatten([array[:, ::2], Scalar(7)])] == [
        "array", 4, 3, 6, 2, 7,
    ]  # fmt: skip
