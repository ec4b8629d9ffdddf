"""`--bricklib` and `--published` of the reproduction, in sessions of their own on a fake device."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from repro.render import render

ROOT = Path(__file__).parents[2]
PROGRAM = "#!{python}\nprint('d3pt7')\nprint('Arr: 0.0005')\nprint('Trans: 0.00055')\n"


@pytest.fixture
def session(tmp_path):
    """Runs pytest on the repository with a device that is none."""
    (tmp_path / "fake_device.py").write_text(Path(__file__).with_name("fake_device.py").read_text())
    (tmp_path / "fake_hooks.py").write_text("def pytest_stencil_device(config):\n    return 'fake_device:FakeDevice'\n")

    def run(*arguments):
        command = [sys.executable, "-m", "pytest", "-p", "fake_hooks", "-p", "no:cacheprovider", "-rs", *arguments]
        command += ["--results", str(tmp_path / "results")]
        added = {"PYTHONPATH": str(tmp_path), "STENCIL_DSL_CACHE": str(tmp_path / "cache")}
        added["FAKE_DEVICE_LOG"] = str(tmp_path / "device.log")
        return subprocess.run(command, cwd=ROOT, env=os.environ | added, capture_output=True, text=True, check=False)

    return run


def rows(tmp_path):
    files = sorted((tmp_path / "results").glob("*/records/*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()[1:]]


def program(folder, name, text=PROGRAM):
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(text.format(python=sys.executable))
    file.chmod(0o755)


def test_programs_of_the_user_are_timed_and_drawn(session, tmp_path):
    built = tmp_path / "built"
    program(built, "star-7-256")
    program(built, "cns-256", "#!{python}\nraise SystemExit('result mismatch!')\n")
    done = session("repro/test_external.py", "--gpu", "--bricklib", str(built))
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "1 failed, 1 passed" in done.stdout and "cns-256 ended with 1: result mismatch!" in done.stdout
    found = {row["variant"]: row for row in rows(tmp_path)}
    assert set(found) == {"bricklib-arr", "bricklib-trans", "bricklib"}
    assert [s["ms"] for s in found["bricklib-trans"]["samples"]] == pytest.approx([0.55] * 9)
    render(tmp_path / "results")
    with (tmp_path / "results" / "fake-gpu-9000" / "external.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [(line["stencil"], line["variant"], line["ms"]) for line in lines] == [
        ("star-7", "bricklib-arr", "0.50000"),
        ("star-7", "bricklib-trans", "0.55000"),
        ("cns", "bricklib", ""),
    ]
    assert "result mismatch!" in (tmp_path / "results" / "fake-gpu-9000" / "report.md").read_text()


def test_options_that_cannot_mean_anything_are_refused(session, tmp_path):
    for arguments, words in (
        (("repro/", "--bricklib", "."), "--bricklib needs --gpu"),
        (("repro/test_external.py", "--gpu", "--bricklib", str(tmp_path / "none")), "no such folder"),
        (("repro/", "--published", "no-such-python"), "--published no-such-python: no such program"),
    ):
        done = session("--collect-only", "-q", *arguments)
        assert done.returncode != 0 and words in done.stdout + done.stderr, done.stdout + done.stderr


def test_without_the_published_compiler_its_rows_say_so(session, tmp_path):
    done = session("repro/test_bricklib.py", "-k", "published and cond-512")
    assert done.returncode == 0 and "1 skipped" in done.stdout, done.stdout + done.stderr
    assert "name its interpreter with --published" in done.stdout.replace("\n", " ")
    (row,) = rows(tmp_path)
    assert row["outcome"] == "skipped" and row["failure"].startswith("NotInstalled: cutile-stencil is not installed")
    assert render(tmp_path / "results") == 0
    (line,) = csv.DictReader((tmp_path / "results" / "compile" / "sm_90" / "bricklib.csv").open())
    assert (line["variant"], line["schedule"]) == ("published", "not installed")
