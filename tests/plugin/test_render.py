"""Tables, plots and reports as pure functions of record files."""

from __future__ import annotations

import csv
import io
import json

import pytest
import synthetic_records as synthetic

from repro.more_tables import SPECS
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
    write(results / "fake-gpu-9000" / "records", synthetic.whole_run())
    for out in ("a", "b"):
        assert render(results, tmp_path / out) == 0
    files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*") if p.is_file())
    names = {p.name for p in files}
    assert {"bricklib.csv", "report.md", "ratio_to_copy.svg", "ratio_to_copy.png", "roofline.svg"} <= names
    assert {"baselines.csv", "floors.csv", "report.html", "ratio_to_arr.svg", "variants.svg", "steps.svg"} <= names
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


@pytest.fixture
def no_plots(monkeypatch):
    monkeypatch.setattr("repro.render._plots", lambda table, folder: [])


def whole(tmp_path, rows):
    write(tmp_path / "fake-gpu-9000" / "records", rows)
    status = render(tmp_path)
    folder = tmp_path / "fake-gpu-9000"
    return status, folder, {f.name: list(csv.DictReader(f.open())) for f in folder.glob("*.csv")}


def slowed(rows, variant, factor):
    """The records with one variant's times multiplied."""
    for row in rows:
        if row["variant"] == variant:
            row["samples"] = [s | {"ms": s["ms"] * factor} for s in row["samples"]]
    return rows


def of_star_7(lines):
    return {line["variant"]: line for line in lines if (line["stencil"], line["size"]) == ("star-7", "512")}


def test_the_best_configuration_stands_for_its_kind(tmp_path, no_plots):
    rows = slowed(synthetic.nine_rows(), "arr-b64x2x2", 0.5)
    _, _, tables = whole(tmp_path, rows)
    first = of_star_7(tables["bricklib.csv"])
    kinds = ["dsl", "arr", "arr-b8x8x8", "trans", "stream", "triton", "published", "cupy", "jax", "copy"]
    assert list(first) == kinds
    assert first["arr"]["schedule"] == "arr-b64x2x2" and first["arr-b8x8x8"]["schedule"] == "arr-b8x8x8"
    want = float(first["dsl"]["ms"]) / float(first["arr"]["ms"])
    assert float(first["dsl"]["ratio_to_arr"]) == pytest.approx(want, rel=1e-3)
    assert first["dsl"]["verdict"] == "slower"
    every = of_star_7(tables["baselines.csv"])
    assert len(every) == 20 and {"arr-b64x2x2", "arr-b128x1x1", "dsl-again"} <= set(every)


def test_a_configuration_that_faults_or_is_wrong_is_not_the_best(tmp_path, no_plots):
    rows = slowed(synthetic.nine_rows(), "arr-b64x2x2", 0.5)
    for row in rows:
        if row["question"] == "star-7-512" and row["variant"] == "arr-b64x2x2":
            row["values"] = {"ok": False, "max_rel_err": 0.5, "how": "device", "why": "relative error 0.5"}
        if row["question"] == "star-7-512" and row["variant"] == "stream-z64-y2-p2-u2-cx64-o4":
            del row["samples"], row["values"]
            row["failure"] = "the process ended (round), exit code 1"
    status, folder, tables = whole(tmp_path, rows)
    first = of_star_7(tables["bricklib.csv"])
    assert first["arr"]["schedule"] == "arr-b8x8x8"
    assert first["stream"]["ms"] and first["stream"]["schedule"] != "stream-z64-y2-p2-u2-cx64-o4"
    report = (folder / "report.md").read_text()
    assert status == 1 and "star-7-512, stream-z64-y2-p2-u2-cx64-o4, sm_90: the process ended" in report


def test_floors_come_from_the_ceilings_of_the_same_run(tmp_path, no_plots):
    rows = [*synthetic.nine_rows(), *synthetic.ceilings()]
    _, _, tables = whole(tmp_path, rows)
    floors = {(line["stencil"], line["size"]): line for line in tables["floors.csv"]}
    star = floors["star-7", "512"]
    assert float(star["hbm_ms"]) == pytest.approx(16 * 512**3 / 4.3e9, rel=0.01), "triad is the faster one"
    assert float(star["l1_ms_one_load_an_access"]) == pytest.approx(56 * 512**3 / 3e10, rel=0.01)
    assert float(floors["cns", "512"]["fp64_ms"]) == pytest.approx(204 * 512**3 / 3.3e10, rel=0.01)
    dsl = of_star_7(tables["bricklib.csv"])["dsl"]
    assert float(dsl["ratio_to_floor"]) == pytest.approx(float(dsl["ms"]) / float(star["floor_ms"]), rel=1e-3)
    write(tmp_path / "other" / "records", synthetic.nine_rows())
    assert render(tmp_path) == 0
    without = list(csv.DictReader((tmp_path / "other" / "bricklib.csv").open()))
    assert all(line["ratio_to_floor"] == "" for line in without), "no ceilings, no floor"


def test_the_control_must_be_a_tie(tmp_path, capsys, no_plots):
    status, folder, _ = whole(tmp_path / "good", synthetic.nine_rows())
    assert status == 0 and "18 of 18 pairs are ties" in (folder / "report.md").read_text()
    status, folder, _ = whole(tmp_path / "bad", slowed(synthetic.nine_rows(), "dsl-again", 1.1))
    assert status == 1 and "0 of 18 pairs are ties" in (folder / "report.md").read_text()
    assert "A/A control failed: star-7-256" in capsys.readouterr().out


def test_every_other_table_is_drawn(tmp_path):
    status, folder, tables = whole(tmp_path, synthetic.whole_run())
    assert status == 0, "tools that refuse are results"
    drawn = {spec.stem for spec in SPECS if f"{spec.stem}.csv" in tables}
    assert drawn == {"steps", "shapes", "groupings", "random", "stacks", "pairings"}
    three = next(r for r in tables["steps.csv"] if r["question"] == "star-7-steps-3" and r["variant"] == "dsl")
    assert float(three["step_over_copy"]) == pytest.approx(1.35 / 3, rel=1e-3)
    random = next(r for r in tables["random.csv"] if r["question"] == "random-rnd0" and r["variant"] == "dsl")
    assert (random["against"], random["verdict"], random["paper_ratio"]) == ("arr-b8x8x8", "faster", "0.99")
    stacks = {r["variant"]: r for r in tables["stacks.csv"]}
    assert stacks["stack-13.2"]["paper_ms"] == "1.416" and "not installed" in stacks["stack-13.4"]["failure"]
    assert tables["pairings.csv"][0]["paper_error"] == "compile error (return code 5)"
    page = (folder / "report.html").read_text()
    assert page.count("<img ") == 10 and "http" not in page and "<h2>Composed steps</h2>" in page


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


def test_wrong_values_and_failures_make_rendering_fail(tmp_path, capsys, no_plots):
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
