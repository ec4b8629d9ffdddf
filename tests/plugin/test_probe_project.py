"""The example project of somebody else's kernels, and regressions put into it: the gate or the values name them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from stencil_dsl import toolchain
from stencil_dsl.errors import ToolchainError
from stencil_dsl.toolchain import cutile_adapter

PROJECT = Path(__file__).parents[2] / "examples/probe_project"


def _compiles() -> bool:
    try:
        toolchain.find()
    except ToolchainError:
        return False
    return cutile_adapter.available()


needs_toolkit = pytest.mark.skipif(not _compiles(), reason="no toolkit to compile with")


@pytest.fixture
def project(bed):
    """A copy of the project, with golden facts of this machine's tool set."""
    for name in ("kernels.py", "test_kernels.py"):
        shutil.copy(PROJECT / name, bed.path)
    bed.run("--update-golden").assert_outcomes(passed=3)
    return bed


def change(bed, old: str, new: str, file: str = "kernels.py") -> None:
    path = bed.path / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@needs_toolkit
def test_unchanged_kernels_pass(project):
    project.run("--golden").assert_outcomes(passed=3)


@needs_toolkit
def test_dropping_unchecked_access_is_caught(project):
    change(project, ", check_bounds=False", "")
    done = project.run("--golden")
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.re_match_lines([r"normalize, rows-4, sm_90, [\d.-]+: .*(instructions|branches) \d+ -> \d+.*"])


@needs_toolkit
def test_raising_the_tile_is_caught(project):
    change(project, "(256, 1024)", "(256, 4096)", "test_kernels.py")
    change(project, '"tile-1024"', '"tile-4096"', "test_kernels.py")
    change(project, 'f"tile-{n}"', 'f"tile-{256 if n == 256 else 1024}"', "test_kernels.py")
    change(project, '"tile-4096"', '"tile-1024"', "test_kernels.py")
    change(project, "check=(1024,)", "check=(4096,)", "test_kernels.py")
    done = project.run("--golden")
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.re_match_lines([r"axpy, tile-1024, sm_90, [\d.-]+: .*registers \d+ -> \d+.*instructions \d+ -> \d+.*"])


@needs_toolkit
@pytest.mark.parametrize(
    ("old", "new", "label"),
    [("(n,)) * 2", "(n,)) * 3", "axpy, tile-256"), ("0.0078125", "0.0078135", "normalize, rows-4")],
)
def test_a_wrong_constant_is_caught_by_values(project, old, new, label):
    """Also without the gate: the machine code of a constant is as good as that of another."""
    change(project, old, new)
    done = project.run()
    done.stdout.re_match_lines([rf"{label}, sm_90: wrong values \(interpreter, .*\): relative error .* exceeds 1e-06"])


@needs_toolkit
def test_unknown_tools_are_skipped_with_the_command_that_records_them(project):
    for file in (project.path / "golden").iterdir():
        file.rename(file.with_name(file.name.replace("sm_90-", "sm_90-0.0-")))
    done = project.run("--golden", "-rs")
    done.assert_outcomes(skipped=3)
    done.stdout.fnmatch_lines(
        ["*no golden facts; record them with: pytest test_kernels.py --arch sm_90 --update-golden*"]
    )


FAULTY = """
import time

import numpy as np
import pytest

from stencil_dsl.testing import Call, FunctionVariant, In, Out, Problem, RandomField, asks

U = RandomField(1)
TEXT = "import cuda.tile as ct\\n\\n@ct.kernel\\ndef f(u, out):\\n    i = ct.bid(0)\\n    ct.store({0})\\n"
STORES = {
    "right": "out, (i,), ct.load(u, (i,), (64,)) * 2",
    "outside": "out, (i + 2,), ct.load(u, (i,), (64,)) * 2, check_bounds=False",
    "refused": "out, (i,), ct.no_such_function(u)",
    "right-too": "out, (i,), ct.load(u, (i,), (64,)) + ct.load(u, (i,), (64,))",
    "hangs": "out, (i,), ct.load(u, (i,), (64,)) * 2",
}


class Hanging(FunctionVariant):
    def prepare(self, bench):
        if self.id == "hangs":
            time.sleep(600)
        return super().prepare(bench)


def doubled():
    of = Problem((256,), {"u": U}, lambda lo, n: [2 * U(lo, n, np)], (128,))
    call = lambda n: Call((n[0] // 64,), (In("u"), Out()))
    made = [Hanging(name, of, TEXT.format(store), "f", call) for name, store in STORES.items()]
    return of.ask("doubled", made, limit_s=3.0, prepare_limit_s=3.0)


@pytest.mark.parametrize("variant", [*STORES])
@asks(doubled)
def test_variant(variant, result):
    result.check()
"""

LAUNCHES = """

def _launch(self, cubin, symbol):
    # The fake device cannot run a cubin: it does what the right kernels do.
    def launch(grid, block, args, stream=None):
        args[3][...] = 2 * args[0]
    return launch


FakeDevice.load_cubin = _launch
"""


@needs_toolkit
def test_variants_that_fail_are_reported_and_leave_the_others_alone(bed):
    (bed.path / "test_faulty.py").write_text(FAULTY)
    done = bed.run()
    done.assert_outcomes(passed=3, failed=2)
    done.stdout.re_match_lines_random(
        [
            r"doubled, outside, sm_90: .*unchecked store leaves the allocation of 128 elements .*",
            r"doubled, refused, sm_90: ToolchainError: the cuTile frontend refused kernel 'f' for sm_90.*",
        ]
    )
    rows = {r["variant"]: r for r in bed.rows()}
    assert set(rows) == {"right", "outside", "refused", "right-too", "hangs"}
    assert rows["right"]["facts"]["registers"] > 0 and "failure" in rows["refused"]


@needs_toolkit
def test_a_variant_that_hangs_on_the_device_ends_and_the_others_are_timed(bed):
    (bed.path / "test_faulty.py").write_text(FAULTY)
    device = bed.path / "fake_device.py"
    device.write_text(device.read_text() + LAUNCHES)
    done = bed.run("--gpu", "-k", "right or hangs")
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(["*doubled, hangs, sm_90: no answer within 3 s (check)*"])
    assert all(r["samples"] for r in bed.rows() if r["variant"].startswith("right"))
