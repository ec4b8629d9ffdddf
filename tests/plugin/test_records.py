"""Record files: provenance, atomic names, continuing a killed run."""

from __future__ import annotations

import json
import subprocess

import pytest
from plugin_bed import QUESTIONS, TEST

KILLED = """
import signal

def test_zz_killed():
    # The run dies after the first group.
    if not Path("survive").exists():
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def repository(bed):
    """The pytester folder as a git repository with everything committed."""

    def commit():
        for command in ("init -q", "add -A", "-c user.name=t -c user.email=t@t commit -q -m x"):
            subprocess.run(["git", *command.split()], cwd=bed.path, check=True, capture_output=True)

    (bed.path / ".gitignore").write_text("results/\n*.log\nsurvive\n__pycache__/\n")
    return commit


def test_the_first_line_says_where_figures_come_from(bed, repository):
    bed.module("fast")
    repository()
    bed.run("--gpu", "-k", "8")
    (first,) = bed.rows("provenance")
    assert first["device"] == {"name": "Fake GPU 9000", "arch": "sm_90", "driver": "1.2.3"}
    assert {"utc", "commit", "argv", "python", "versions", "rounds", "platform"} <= set(first)
    (file,) = bed.files()
    assert file.name.endswith(f"-{first['commit']}.jsonl") and len(first["commit"]) == 10
    assert str(bed.path) not in file.read_text(), "no path of this machine"


def test_a_dirty_tree_is_named_by_its_changes(bed, repository):
    bed.module("fast")
    repository()
    (bed.path / "fake_device.py").write_text((bed.path / "fake_device.py").read_text() + "\n")
    bed.run("-k", "8")
    (first,) = bed.rows("provenance")
    assert "-dirty-" in first["commit"]


def test_a_killed_run_is_continued_and_measures_only_what_is_missing(bed, repository):
    bed.module("fast", "copy", test=TEST.replace("[8, 12]", "[8]") + KILLED + TEST2)
    repository()
    died = bed.run("--gpu")
    assert died.ret < 0
    (part,) = bed.files()
    assert part.name.endswith(".jsonl.part")
    with part.open("a") as file:
        file.write('{"kind": "variant", "node": "cut o')  # what a kill in the middle of a write leaves

    (bed.path / "survive").touch()
    bed.log.unlink()
    done = bed.run("--gpu")
    done.assert_outcomes(passed=5)
    done.stdout.fnmatch_lines([f"*continuing {part.name}*"])
    (file,) = bed.files()
    assert file.name == part.name.removesuffix(".part")
    assert len(bed.log.read_text().splitlines()) == 2 * 9, "only the second group was timed again"
    lines = [line for line in file.read_text().splitlines() if not line.endswith('"cut o')]
    rows = [json.loads(line) for line in lines]
    assert [row["kind"] for row in rows].count("provenance") == 1
    by_variant = {(row["question"], row["variant"]) for row in rows if row["kind"] == "variant"}
    assert len(by_variant) == 4


TEST2 = """

@pytest.mark.parametrize("size", [12])
@pytest.mark.parametrize("variant", {variants!r})
@asks(doubling)
def test_zzz_double(variant, size, result):
    result.check()
"""


def test_other_code_does_not_continue_a_killed_run(bed, repository):
    bed.module("fast", test=TEST + KILLED)
    repository()
    bed.run("--gpu")
    (bed.path / "survive").touch()
    (bed.path / "test_doubling.py").write_text(QUESTIONS.replace("0.5, ", "0.25, ") + TEST.format(variants=["fast"]))
    done = bed.run("--gpu")
    done.assert_outcomes(passed=2)
    assert "continuing" not in done.stdout.str()
    assert len(bed.files()) == 2
