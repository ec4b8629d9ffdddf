"""Variants that are tile functions: their text, their signature, their values, and what is said when they are wrong."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from stencil_dsl import toolchain
from stencil_dsl.errors import ToolchainError
from stencil_dsl.testing import (
    Call,
    FunctionVariant,
    In,
    KernelVariant,
    Out,
    Problem,
    RandomField,
    Scalar,
    Target,
    kernel_text,
)
from stencil_dsl.testing.kernel_source import cut
from stencil_dsl.testing.older import lacking
from stencil_dsl.testing.tile_kernels import flatten
from stencil_dsl.toolchain import Resources

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


WHY = "'check_bounds=False' requires tileiras 13.4 or later"
TOO_NEW = f"the frontend refused it\n  output:\n    {WHY}. Current version is 13.3."


def built(text: str, *_, **__):
    """An entry of the kernel cache, or a refusal."""
    if "check_bounds=False" in text:
        raise ToolchainError(TOO_NEW)
    return SimpleNamespace(source=text, resources=Resources("f", 32, 0, 0, 128, text), tool_versions={}, meta={})


def test_an_older_toolkit_gets_another_text(monkeypatch):
    monkeypatch.setattr(toolchain, "build", built)
    checked, wrong = (variant(f"ct.load(u, (i,), (64,)) * {n}").source for n in (2, 3))
    newer = variant("ct.load(u, (i,), (64,), check_bounds=False) * 2", older=checked)
    target = Target("sm_90", "13.3")
    facts = newer.compile_facts(target)
    assert (facts["text_hash"], facts["older"]) == (checked, WHY)
    assert newer.validate(target)["ok"] and not replace(newer, older=wrong).validate(target)["ok"]
    assert "older" not in replace(newer, source=checked).compile_facts(target)
    with pytest.raises(ToolchainError, match="requires tileiras 13.4"):
        replace(newer, older=None).compile_facts(target)


def test_an_older_toolkit_gets_another_kernel():
    class Made(SimpleNamespace):
        @property
        def entry(self):
            return built(self.text)

    newer, checked = Made(text="check_bounds=False", schedule="unchecked"), Made(text="", schedule="checked")
    variant = KernelVariant("v", lambda target: newer, ("u",), older=lambda target: checked)
    facts = variant.compile_facts(Target("sm_90", "13.3"))
    assert (facts["schedule"], facts["older"]) == ("checked", WHY)
    with pytest.raises(ToolchainError, match="requires tileiras 13.4"):
        replace(variant, older=None).compile_facts(Target("sm_90", "13.3"))


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (TOO_NEW, WHY),
        ("tile libraries need tileiras 13.5 or newer, toolkit 13.4 has 13.4.92; install it with: pip",
         "tile libraries need tileiras 13.5 or newer, toolkit 13.4 has 13.4.92"),
        ("tileiras failed with return code 5", None),
    ],
)  # fmt: skip
def test_what_too_old_a_toolkit_says(words, line):
    assert lacking(words) == line
