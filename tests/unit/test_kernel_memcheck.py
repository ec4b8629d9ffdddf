"""The memory checker's program works where there is no device: it fills a cache, and finds what is wrong."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from toolchain_cases import needs_cutile

PROGRAM = Path(__file__).parents[1] / "gpu" / "run_memcheck.py"


@pytest.fixture
def program(monkeypatch):
    spec = importlib.util.spec_from_file_location("run_memcheck", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "run_memcheck", module)
    spec.loader.exec_module(module)
    return module


def test_items_survive_their_file(program) -> None:
    items = list(program.random_items(60, seed=3))
    assert [program.Item.from_json(i.to_json()) for i in items] == items
    kinds = {"in place" if i.case.inplace else "plain" if i.plain else "padded" for i in items}
    assert any(i.case.schedule.strips for i in items) and any(i.case.periodic for i in items)
    assert kinds == {"in place", "plain", "padded"}


def test_a_row_is_every_schedule_once(program, monkeypatch) -> None:
    monkeypatch.setattr(program, "ROWS", ("star_7",))
    items = list(program.rows())
    assert len({i.label for i in items}) == len(items) >= len(program.ROW_SCHEDULES) + len(program.SHUFFLES) + 1
    assert {i.case.dtype for i in items if i.case.schedule.kind == "shuffle"} == {"float64", "float32"}
    again = program.Item.from_json(items[0].to_json())
    assert again == items[0] and again.case.stencil.fields == ("u",)


@needs_cutile
def test_fill_and_run(program, monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setattr(program, "rows", lambda: [])
    assert program.fill(tmp_path, count=3, seed=1, jobs=1, arch="sm_90") == 0
    assert program.run(tmp_path, "cpu", "", None) == 0
    assert "3 launches, 0 wrong" in capsys.readouterr().out
    right = program.expected
    monkeypatch.setattr(program, "expected", lambda *a: [w + 1 for w in right(*a)])
    monkeypatch.setattr(program, "check_results", lambda *a, **k: "values differ")
    assert program.run(tmp_path, "cpu", "", 1) == 1
    assert "WRONG: random 1.0" in capsys.readouterr().out
    assert program.run(tmp_path, "cpu", "no such label", None) == 2
