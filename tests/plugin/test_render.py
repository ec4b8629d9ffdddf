"""Tables, plots and reports as pure functions of record files."""

from __future__ import annotations

import csv
import io
import json

import pytest

from repro.render import render
from repro.rows import ROWS, SIZES
from repro.tables import COLUMNS, csv_text, load, paper, paper_figures

DEVICE = {"name": "Fake GPU 9000", "arch": "sm_90", "driver": "1.2.3", "power_limit_w": 700.0, "ecc": True}


def provenance(utc="2026-01-02T03:04:05Z", device=DEVICE):
    return {
        "kind": "provenance", "utc": utc, "commit": "0123456789", "argv": [], "rounds": 9, "python": "3.12.1",
        "platform": "linux x86_64", "versions": {"tileiras": "13.5.37"}, "device": device,
    }  # fmt: skip


def record(stencil, size, variant, run="r", ms=None, **more):
    row = {
        "kind": "variant", "node": "n", "module": "repro/test_bricklib.py", "group": "g", "outcome": "passed",
        "question": f"{stencil}-{size}", "variant": variant, "baseline": "copy", "arch": "sm_90", "toolkit": None,
        "dtype": "float64", "shape": [size] * 3, "bytes": ROWS[stencil].bytes * size**3,
        "params": {"stencil": stencil, "size": size, "variant": variant, "arch": "sm_90"},
    }  # fmt: skip
    if variant != "copy":
        row["facts"] = {"registers": 40 + ROWS[stencil].loads, "spill_bytes": 8, "instructions": 99, "schedule": "s"}
        row["facts"]["tool_set"] = {"tileiras": "13.5.37"}
        row["values"] = {"ok": True, "max_rel_err": 2.5e-16, "how": "device", "why": ""}
    if ms is not None:
        times = [ms * (1 + 0.001 * (r % 5)) for r in range(9)]
        row["samples"] = [{"round": r, "place": 0, "ms": t, "used": True} for r, t in enumerate(times)]
        row |= {"run": run, "l2": "warm", "dropped": 0, "throttled": False}
    return row | more


def copy_ms(stencil, size):
    return ROWS[stencil].bytes * size**3 / 4.2e9


def write(folder, rows, name="20260102T030405Z-0123456789.jsonl", first=None):
    folder.mkdir(parents=True, exist_ok=True)
    lines = [first or provenance(), *rows]
    (folder / name).write_text("".join(json.dumps(line, sort_keys=True) + "\n" for line in lines))


def timed_rows():
    rows = []
    for i, stencil in enumerate(ROWS):
        for size in SIZES:
            run = f"{stencil}-{size}"
            ms = copy_ms(stencil, size)
            rows.append(record(stencil, size, "dsl", run, ms * (1.1 + 0.3 * i)))
            rows.append(record(stencil, size, "copy", run, ms))
    return rows


def table_of(results):
    (table,) = load(results)
    return list(csv.DictReader(io.StringIO(csv_text(table))))


def test_rendering_twice_gives_the_same_bytes(tmp_path):
    results = tmp_path / "results"
    write(results / "fake-gpu-9000" / "records", timed_rows())
    for out in ("a", "b"):
        assert render(results, tmp_path / out) == 0
    files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*") if p.is_file())
    names = {p.name for p in files}
    assert {"bricklib.csv", "report.md", "ratio_to_copy.svg", "ratio_to_copy.png", "roofline.svg"} <= names
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes(), file
    assert {p.parts[0] for p in files} == {"fake-gpu-9000"}


def test_columns_and_figures(tmp_path):
    write(tmp_path / "fake-gpu-9000" / "records", timed_rows())
    rows = table_of(tmp_path)
    assert tuple(rows[0]) == COLUMNS
    assert ",".join(COLUMNS) == (
        "stencil,size,dtype,variant,schedule,ms,ms_lo,ms_hi,gcells,copy_ms,ratio_to_copy,ratio_to_floor,paper_ms,"
        "paper_ratio,ratio_to_arr,ratio_lo,ratio_hi,verdict,regs,spill_bytes,max_rel_err"
    )
    assert [(r["stencil"], r["size"], r["variant"]) for r in rows[:4]] == [
        ("star-7", "256", "dsl"),
        ("star-7", "256", "copy"),
        ("star-7", "512", "dsl"),
        ("star-7", "512", "copy"),
    ]
    first, copy, large = rows[0], rows[1], rows[2]
    assert float(first["ratio_to_copy"]) == pytest.approx(1.1, abs=1e-4)
    assert float(first["copy_ms"]) == float(copy["ms"])
    assert float(first["gcells"]) == pytest.approx(256**3 / float(first["ms"]) / 1e6, rel=1e-3)
    assert (first["paper_ms"], first["paper_ratio"]) == ("0.506", "1.022")
    assert large["paper_ms"] == "", "the published sizes are 256 only"
    assert first["ratio_to_arr"] == first["verdict"] == "", "no Arr was measured"
    assert (first["regs"], first["spill_bytes"], first["max_rel_err"]) == ("47", "8", "2.50e-16")


def test_ratio_to_arr_and_its_verdict(tmp_path):
    rows = [record("box-27", 512, v, "r", ms) for v, ms in (("dsl", 0.6), ("arr", 1.2), ("copy", 0.5))]
    write(tmp_path / "fake-gpu-9000" / "records", rows)
    dsl, arr, _ = table_of(tmp_path)
    assert (dsl["ratio_to_arr"], dsl["verdict"]) == ("0.5000", "faster")
    assert float(dsl["ratio_lo"]) <= 0.5 <= float(dsl["ratio_hi"])
    assert arr["ratio_to_arr"] == "" and arr["paper_ms"] == ""


def test_ratios_never_mix_runs(tmp_path):
    """A later run of the DSL's variant alone replaces nothing that the copy of the first run is compared with."""
    folder = tmp_path / "fake-gpu-9000" / "records"
    write(folder, [record("star-7", 256, v, "one", ms) for v, ms in (("dsl", 0.2), ("copy", 0.1))])
    write(folder, [record("star-7", 256, "dsl", "two", 0.3)], "20260202T000000Z-0123456789.jsonl")
    dsl, _ = table_of(tmp_path)
    assert float(dsl["ratio_to_copy"]) == pytest.approx(2.0, abs=1e-6)
    write(
        folder,
        [record("star-7", 256, v, "three", ms) for v, ms in (("dsl", 0.3), ("copy", 0.1))],
        "20260302T000000Z-0123456789.jsonl",
    )
    dsl, _ = table_of(tmp_path)
    assert float(dsl["ratio_to_copy"]) == pytest.approx(3.0, abs=1e-6)


def test_compile_tier_has_its_own_table(tmp_path):
    rows = [record(stencil, 256, "dsl") for stencil in ROWS] + [record("star-7", 256, "copy")]
    write(tmp_path / "compile" / "records", rows, first=provenance(device=None))
    assert render(tmp_path) == 0
    table = list(csv.DictReader((tmp_path / "compile" / "sm_90" / "bricklib.csv").open()))
    assert [row["stencil"] for row in table] == list(ROWS)
    assert all(row["ms"] == "" and row["regs"] for row in table)
    report = (tmp_path / "compile" / "sm_90" / "report.md").read_text()
    assert "| 27-point box | 256 |" in report and "1.431" in report


def test_wrong_values_and_failures_make_rendering_fail(tmp_path, capsys):
    bad = {"ok": False, "max_rel_err": 0.5, "how": "device", "why": "relative error 0.5 at (0, 0, 0)"}
    rows = [record("star-7", 256, "dsl", values=bad), record("cond", 256, "dsl", failure="no answer within 60 s")]
    write(tmp_path / "compile" / "records", rows, first=provenance(device=None))
    assert render(tmp_path) == 1
    said = capsys.readouterr().out
    assert "failed: star-7-256, dsl, sm_90: wrong values: relative error 0.5" in said
    assert "failed: cond-256, dsl, sm_90: no answer within 60 s" in said
    assert "WRONG 5.00e-01" in (tmp_path / "compile" / "sm_90" / "report.md").read_text()


def test_nothing_to_draw_is_a_failure(tmp_path, capsys):
    assert render(tmp_path) == 1
    assert "run pytest repro/ first" in capsys.readouterr().out


def test_paper_tables_name_their_source():
    for name in ("bricklib", "copy", "row_fold", "random", "pairings", "stacks"):
        rows = paper(name)
        assert rows and all(row["source"] == "000_fb39d477b4b62a56.txt" for row in rows)
    assert [row["stencil"] for row in paper("bricklib")] == list(ROWS)


def test_the_published_copy_is_scaled_by_the_bytes_of_a_row():
    assert paper_figures("box-125", "dsl") == (6.696, pytest.approx(13.527, abs=1e-3))
    assert paper_figures("iso3dfd", "arr") == (1.683, pytest.approx(1.683 / 0.99, abs=1e-6))
    assert paper_figures("cns", "trans") == (17.21, pytest.approx(17.21 / (0.495 * 6.5), abs=1e-6))
    assert paper_figures("star-7", "stream") is None


@pytest.mark.parametrize("column", ["arr", "trans"])
def test_published_ratios_agree_with_the_published_times(column):
    for row in paper("bricklib"):
        ratio = float(row["dsl_ms"]) / float(row[f"{column}_ms"])
        assert ratio == pytest.approx(float(row[f"dsl_over_{column}"]), abs=0.011)
