"""Golden facts: written, compared, and their changes told in words."""

from __future__ import annotations

import json

import pytest
from plugin_bed import QUESTIONS

from stencil_dsl.testing.golden import differences

FACTS = {
    "registers": 40,
    "instructions": 120,
    "branches": 1,
    "spill_bytes": 0,
    "classes": {"LDG.E.64": 27},
    "text_hash": "a",
}


def changed(**facts):
    return FACTS | facts


@pytest.mark.parametrize(
    ("now", "bad", "notes"),
    [
        (FACTS, [], []),
        (changed(branches=55, instructions=912), ["instructions 120 -> 912", "branches 1 -> 55"], []),
        (changed(spill_bytes=8), ["spill_bytes 0 -> 8"], []),
        (changed(instructions=100), [], ["instructions 120 -> 100"]),
        (changed(instructions=123), [], ["instructions 120 -> 123"]),
        (changed(registers=44), [], ["registers 40 -> 44"]),
        (changed(registers=45), ["registers 40 -> 45"], []),
        (changed(text_hash="b"), [], [".text differs, all metrics are equal"]),
        (changed(classes={"LDG.E.128": 14}), [], ["classes: LDG.E.128 0 -> 14, LDG.E.64 27 -> 0"]),
    ],
)
def test_differences(now, bad, notes):
    assert differences(FACTS, now) == (bad, notes)


def test_unknown_tool_sets_are_skipped_with_the_command_that_records_them(bed):
    bed.module("fast")
    done = bed.run("--golden", "-k", "8", "-rs")
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(
        ["*no golden facts; record them with: pytest test_doubling.py --arch sm_90 --update-golden*"]
    )


def test_a_change_fails_with_variant_tool_set_and_metrics(bed):
    bed.module("fast", "slow")
    bed.run("--update-golden", "-k", "8").assert_outcomes(passed=2)
    (file,) = (bed.path / "golden").iterdir()
    assert file.name == "test_doubling-sm_90-13.5-unknown-unknown-unknown.json"
    assert set(json.loads(file.read_text())["variants"]) == {"doubling-8, fast", "doubling-8, slow"}
    bed.run("--golden", "-k", "8").assert_outcomes(passed=2)

    worse = QUESTIONS.replace('"instructions": 120, "branches": 1', '"instructions": 912, "branches": 55')
    bed.module("fast", "slow", questions=worse)
    done = bed.run("--golden", "-k", "8 and fast")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "*doubling-8, fast, sm_90, 13.5-*: instructions 120 -> 912, branches 1 -> 55*",
            "*accept it with:*--update-golden*",
        ]
    )
    bed.run("--update-golden", "-k", "8 and fast").assert_outcomes(passed=1)
    bed.run("--golden", "-k", "8 and fast").assert_outcomes(passed=1)
    kept = json.loads(file.read_text())["variants"]
    assert kept["doubling-8, slow"]["instructions"] == 120, "variants that were not selected keep their facts"


def test_fewer_instructions_pass_with_a_note(bed):
    bed.module("fast")
    bed.run("--update-golden", "-k", "8")
    bed.module("fast", questions=QUESTIONS.replace('"instructions": 120', '"instructions": 100'))
    done = bed.run("--golden", "-k", "8")
    done.assert_outcomes(passed=1, warnings=1)
    done.stdout.fnmatch_lines(["*doubling-8, fast, sm_90*: instructions 120 -> 100*"])


def test_another_toolkit_has_golden_facts_of_its_own(bed):
    bed.module("fast")
    bed.run("--update-golden", "--toolkit", "13.4", "--toolkit", "13.5", "-k", "8").assert_outcomes(passed=2)
    names = sorted(file.name.split("-")[2] for file in (bed.path / "golden").iterdir())
    assert names == ["13.4", "13.5"]


def test_golden_files_with_xdist_are_written_once_by_the_controller(bed):
    bed.module("fast", "slow")
    bed.run("--update-golden", "-n", "2").assert_outcomes(passed=4)
    (file,) = (bed.path / "golden").iterdir()
    assert len(json.loads(file.read_text())["variants"]) == 4
