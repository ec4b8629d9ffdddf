"""Whole sessions of the plugin on a fake device."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest


def test_compile_tier_checks_values_and_records_facts(bed):
    bed.module("fast", "slow")
    done = bed.run()
    done.assert_outcomes(passed=4)
    rows = bed.rows()
    assert [row["variant"] for row in rows] == ["fast", "slow", "fast", "slow"]
    assert all(row["facts"]["registers"] == 40 and row["values"]["how"] == "fake" for row in rows)
    assert all("samples" not in row for row in rows)
    assert bed.files()[0].parent.parent.name == "compile"
    done.stdout.fnmatch_lines(["*question*variant*regs*", "*doubling-8*fast*40*"])


def test_wrong_values_and_compile_errors_fail_with_their_reason(bed):
    bed.module("fast", "wrong", "broken")
    done = bed.run("-k", "8")
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(["*doubling-8, wrong, sm_90: wrong values (fake): differs*"])
    done.stdout.fnmatch_lines(["*doubling-8, broken, sm_90: ToolchainError: no such instruction*"])
    assert {row["variant"]: row["outcome"] for row in bed.rows()} == {
        "fast": "passed",
        "wrong": "failed",
        "broken": "failed",
    }


def test_every_arch_and_toolkit_asked_gets_an_item(bed):
    bed.module("fast")
    done = bed.run("--arch", "sm_90", "--arch", "sm_120", "--toolkit", "13.4", "--toolkit", "13.5", "-k", "8")
    done.assert_outcomes(passed=4)
    compiled = (bed.path / "compiled.log").read_text().splitlines()
    assert sorted(compiled) == [f"fast {a} {t}" for a in ("sm_120", "sm_90") for t in ("13.4", "13.5")]
    done.stdout.fnmatch_lines(["*fast@13.4*sm_120*"])


def test_with_a_device_each_variant_is_compiled_once_where_it_is_launched(bed):
    bed.module("fast", "broken", "copy")
    done = bed.run("--gpu", "-k", "8")
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(["*doubling-8, broken, sm_90: ToolchainError: no such instruction*"])
    assert (bed.path / "compiled.log").read_text().splitlines() == ["fast sm_90 None", "broken sm_90 None"]
    rows = {row["variant"]: row for row in bed.rows()}
    assert rows["fast"]["facts"]["registers"] == 40 and rows["fast"]["samples"]


def test_groups_are_interleaved_and_the_order_reversed_each_round(bed):
    bed.module("fast", "slow", "copy")
    done = bed.run("--gpu", "--rounds", "10")
    done.assert_outcomes(passed=6)
    order = [line.split()[0] for line in bed.order()]
    forward = ["fast", "slow", "copy"]
    assert order == (forward + forward[::-1]) * 5 * 2, "two groups (sizes), ten rounds each"


def test_only_selected_variants_are_measured(bed):
    bed.module("fast", "slow", "copy")
    bed.run("--gpu", "-k", "8 and not slow").assert_outcomes(passed=2)
    assert {line.split()[0] for line in bed.order()} == {"fast", "copy"}


def test_ratios_are_per_round_and_get_a_verdict(bed):
    bed.module("fast", "slow", "copy")
    done = bed.run("--gpu", "-k", "12")
    done.stdout.fnmatch_lines(["*doubling-12*fast*0.500*faster*", "*doubling-12*slow*2.000*slower*"])
    rows = {row["variant"]: row for row in bed.rows()}
    assert rows["fast"]["run"] == rows["copy"]["run"]
    assert len(rows["fast"]["samples"]) == 9
    assert rows["fast"]["samples"][0] == {
        "round": 0, "place": 0, "ms": 0.5, "sm_mhz": 1500, "power_w": 300.0, "throttle": [], "used": True,
    }  # fmt: skip


def test_small_questions_are_timed_with_a_flushed_l2(bed):
    bed.module("fast")
    bed.run("--gpu", "-k", "8")
    assert set(bed.order()) == {"fast flushed"}
    assert bed.rows()[0]["l2"] == "flushed"


@pytest.mark.parametrize("size", ["8", "12"])
def test_device_values_are_compared_before_timing(bed, size):
    bed.module("fast", "wrong", "gap")
    done = bed.run("--gpu", "-k", size)
    done.assert_outcomes(passed=1, failed=2)
    assert {line.split()[0] for line in bed.order()} == {"fast"}, "wrong variants are not timed"
    done.stdout.fnmatch_lines([f"*doubling-{size}, wrong*relative error 0.5*"])
    done.stdout.fnmatch_lines([f"*doubling-{size}, gap*1 of {int(size) ** 2} values are NaN*"])


def test_a_variant_that_raises_exits_or_hangs_does_not_lose_the_others(bed):
    bed.module("fast", "raises", "exits", "hangs", "slow", "copy", questions=_with_limit(2.0))
    done = bed.run("--gpu", "-k", "8")
    done.assert_outcomes(passed=3, failed=3)
    done.stdout.fnmatch_lines(["*raises, sm_90: MemoryError: no room for the bricks*"])
    done.stdout.fnmatch_lines(["*exits, sm_90: the process ended (check), exit code 11*"])
    done.stdout.fnmatch_lines(["*hangs, sm_90: no answer within 2 s (check)*"])
    rows = {row["variant"]: row for row in bed.rows()}
    assert all(len(rows[name]["samples"]) == 9 for name in ("fast", "slow", "copy"))
    assert "exit code 11" in rows["exits"]["failure"]


def _with_limit(seconds):
    from plugin_bed import QUESTIONS

    return QUESTIONS.replace("LIMIT = 5.0", f"LIMIT = {seconds}")


def test_gpu_without_a_device_is_a_failure(bed):
    bed.module("fast")
    bed.pytester.makeconftest("""
        from stencil_dsl.errors import GpuUnavailableError
        import fake_device

        class Nothing(fake_device.FakeDevice):
            @classmethod
            def describe(cls, number):
                raise GpuUnavailableError("none")

        fake_device.Nothing = Nothing

        def pytest_stencil_device(config):
            return "fake_device:Nothing"
        """)
    (bed.path / "test_marked.py").write_text("import pytest\n\n@pytest.mark.gpu\ndef test_on_device():\n    pass\n")
    done = bed.run("--gpu", "-k", "8 or on_device")
    done.assert_outcomes(failed=1, errors=1)
    done.stdout.fnmatch_lines(["*--gpu was given and device 0 cannot be used*"])
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    bed.run("-k", "on_device").assert_outcomes(skipped=1)


def test_throttled_rounds_are_dropped_counted_and_repeated(bed):
    hot = {"sm_mhz": 900, "power_w": 700.0, "throttle": ["thermal"]}
    cool = {"sm_mhz": 1500, "power_w": 300.0, "throttle": []}
    bed.monkeypatch.setenv("FAKE_DEVICE_STATES", json.dumps([cool, cool, hot, cool, cool]))
    bed.module("fast", "copy")
    bed.run("--gpu", "-k", "8").assert_outcomes(passed=2)
    for row in bed.rows():
        assert row["dropped"] == 1 and row["throttled"] is False
        assert [sample["used"] for sample in row["samples"]] == [True, False] + [True] * 8


def test_a_card_that_always_throttles_is_reported_not_dropped(bed):
    hot = {"sm_mhz": 900, "power_w": 700.0, "throttle": ["power cap"]}
    bed.monkeypatch.setenv("FAKE_DEVICE_STATES", json.dumps([hot] * 100))
    bed.module("fast")
    bed.run("--gpu", "-k", "8").assert_outcomes(passed=1)
    (row,) = bed.rows()
    assert row["throttled"] is True and row["dropped"] == 0
    assert all(sample["used"] for sample in row["samples"])
    assert len(row["samples"]) == 9, "extra rounds would throttle too"


def test_xdist_measures_each_group_once_and_the_controller_writes(bed):
    bed.module("fast", "slow", "copy")
    done = bed.run("--gpu", "-n", "2")
    done.assert_outcomes(passed=6)
    assert len(bed.files()) == 1
    assert len(bed.rows()) == 6 and len(bed.rows("provenance")) == 1
    assert len(bed.order()) == 2 * 3 * 9
    runs = {row["question"]: row["run"] for row in bed.rows()}
    assert all(row["run"] == runs[row["question"]] for row in bed.rows())


def test_groups_are_contiguous_whatever_the_order_of_parameters(bed):
    bed.module("fast", "slow")
    done = bed.run("--collect-only", "-q")
    sizes = [line.split("[")[1].split("-")[1] for line in done.outlines if "test_double[" in line]
    assert sizes == ["8", "8", "12", "12"]
    changes = sum(a != b for a, b in pairwise(sizes))
    assert changes == 1


def test_dump_writes_what_a_variant_shows(bed):
    shown = bed.path / "shown"
    questions = _with_limit(5.0).replace(
        "    def validate",
        "    def artefacts(self, target):\n        return {'kernel.sass': 'NOP'}\n\n    def validate",
    )
    bed.module("fast", questions=questions)
    bed.run("--dump", str(shown), "-k", "8").assert_outcomes(passed=1)
    assert (shown / "doubling-8" / "fast" / "sm_90" / "kernel.sass").read_text() == "NOP"


def test_samples_are_replayed_into_pytest_benchmark(bed):
    bed.module("fast", "copy")
    done = bed.run("--gpu", "-k", "8", "--benchmark-json", "b.json", without=())
    done.assert_outcomes(passed=2)
    benchmarks = {b["params"]["variant"]: b for b in json.loads((bed.path / "b.json").read_text())["benchmarks"]}
    stats = benchmarks["fast"]["stats"]
    assert stats["rounds"] == 9
    measured = sorted(sample["ms"] / 1e3 for sample in bed.rows()[0]["samples"])
    assert stats["median"] == pytest.approx(measured[4], rel=1e-9)
    assert benchmarks["fast"]["group"] == "doubling-8"
