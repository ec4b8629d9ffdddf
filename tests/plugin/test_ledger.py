"""The ledger of claims: rows, merging runs, what changed between tool sets, and the page made from it."""

from __future__ import annotations

import pytest

from probes.__main__ import main
from stencil_dsl.testing import ledger

CLAIM = """

from stencil_dsl.testing import Claim, Finding

CLAIM = Claim(7, "doubling is cheap", "the tests")


def test_claim(answers, claim, toolkit):
    found = answers(doubling, size=8)
    worse = toolkit == "13.6"
    time = Finding("holds", "0.5 ms", "time") if found["fast"].time else None
    claim(CLAIM, Finding("weaker" if worse else "holds", f"{len(found)} variants"), time)
"""


def row(**changes: str) -> ledger.Row:
    base = dict.fromkeys(ledger.COLUMNS, "")
    return base | {"claim": "7", "tier": "code", "arch": "sm_90", "tools": "13.5", "verdict": "holds"} | changes


def test_a_run_writes_its_verdicts_and_keeps_those_of_other_tools(bed):
    bed.module("fast")
    module = bed.path / "test_doubling.py"
    module.write_text(module.read_text() + CLAIM)
    bed.run("--toolkit", "13.5").assert_outcomes(passed=3)
    path = bed.path / "results/claims.csv"
    (first,) = ledger.read(path)
    assert (first["claim"], first["tools"], first["verdict"], first["probe"]) == (
        "7",
        "13.5",
        "holds",
        "test_doubling.py",
    )
    before = path.read_bytes()
    bed.run("--toolkit", "13.5", "-n", "2").assert_outcomes(passed=3)
    assert path.read_bytes() == before, "the same run writes the same file, with xdist too"

    done = bed.run("--toolkit", "13.6")
    assert [r["tools"] for r in ledger.read(path)] == ["13.5", "13.6"]
    done.stdout.fnmatch_lines(["*verdicts that changed*", "*7  13.5 holds -> 13.6 weaker (code, sm_90): 9 variants*"])


def test_times_are_rows_of_their_own(bed):
    bed.module("fast")
    module = bed.path / "test_doubling.py"
    module.write_text(module.read_text() + CLAIM)
    bed.run("--gpu", "-k", "claim")
    rows = ledger.read(bed.path / "results/claims.csv")
    assert [(r["tier"], r["device"]) for r in rows] == [("code", ""), ("time", "fake-gpu-9000")]


def test_merge_replaces_equal_keys_and_sorts_by_number_and_version():
    old = [row(claim="10"), row(tools="13.10"), row(tools="13.9", why="old")]
    merged = ledger.merge(old, [row(tools="13.9", why="new")])
    assert [(r["claim"], r["tools"], r["why"]) for r in merged] == [
        ("7", "13.9", "new"),
        ("7", "13.10", ""),
        ("10", "13.5", ""),
    ]


@pytest.mark.parametrize("verdict", ["holds", "weaker"])
def test_changes_name_claim_tools_and_verdicts(verdict):
    lines = ledger.changes([row(tools="13.4"), row(verdict=verdict, why="55 branches")])
    expected = [] if verdict == "holds" else ["  7  13.4 holds -> 13.5 weaker (code, sm_90): 55 branches"]
    assert lines == expected


def test_text_reads_back(tmp_path):
    rows = [row(why='a "quoted", long\nreason', text="x, y")]
    ledger.write(tmp_path / "claims.csv", rows)
    assert ledger.read(tmp_path / "claims.csv") == rows


def test_verdicts_of_record_files_enter_a_ledger(bed, capsys):
    """A device run's records carry its verdicts: the ledger follows from them wherever they were brought."""
    bed.module("fast")
    module = bed.path / "test_doubling.py"
    module.write_text(module.read_text() + CLAIM)
    bed.run("--gpu", "--toolkit", "13.5").assert_outcomes(passed=3)
    written = ledger.read(bed.path / "results/claims.csv")
    path = bed.path / "elsewhere.csv"
    old = row(tools="13.4", why="kept") | {"text": "t", "source": "s", "probe": "p"}
    ledger.write(path, [old])
    files = [str(file) for file in bed.files()]
    assert main(["ledger", "--file", str(path), "--records", *files]) == 0
    assert ledger.read(path) == ledger.merge([old], written) and len(written) == 2
    assert "holds (time, fake-gpu-9000, 13.5): 0.5 ms" in capsys.readouterr().out
    empty = bed.path / "results/compile/records/none.jsonl"
    empty.parent.mkdir(parents=True)
    empty.write_text('{"kind": "provenance"}\n')
    assert main(["ledger", "--file", str(path), "--records", str(empty)]) == 1
    assert "none.jsonl has no verdicts" in capsys.readouterr().err
