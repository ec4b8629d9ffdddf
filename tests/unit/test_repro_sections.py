"""Tables get all that is measured; in sass.csv and traffic.csv counts add up and what was not measured stays empty."""

from __future__ import annotations

import importlib

import pytest

from repro import machine_code, more_tables, solver_tables, traffic

SPECS: dict[str, set[str]] = {}
for spec in more_tables.SPECS:
    SPECS.setdefault(spec.module, set()).update(spec.tests)


@pytest.mark.parametrize("module", sorted(SPECS))
def test_every_test_of_a_module_has_a_table(module: str) -> None:
    found = importlib.import_module(module.removesuffix(".py").replace("/", "."))
    assert {name for name in vars(found) if name.startswith("test_")} == SPECS[module]


def test_every_test_of_loops_says_what_it_is_compared_with() -> None:
    assert set(solver_tables.BASELINE) == SPECS["repro/test_solvers.py"]


CLASSES = {"LDG.E.128": 4, "LDG.E.64": 3, "STG.E.64": 1, "DFMA": 7, "DADD": 2, "SHFL": 5, "IMAD.WIDE": 6, "EXIT": 1}
FACTS = {"registers": 40, "shared_bytes": 0, "spill_bytes": 8, "instructions": 29, "branches": 1, "barriers": 0}


def record(**more):
    row = {"question": "q", "variant": "arr", "arch": "sm_90", "shape": [4, 5, 10], "bytes": 3200}
    return row | {"facts": FACTS | {"classes": CLASSES, "schedule": "s"}} | more


def test_every_instruction_is_counted_once():
    (line,) = machine_code.lines([record(), record(facts={}), record(facts={"schedule": "copy kernel"})])
    assert (line["LDG"], line["LDG_128"], line["LDG_64"], line["STG_64"], line["SHFL"]) == ("7", "4", "3", "1", "5")
    assert sum(int(line[name]) for name in (*machine_code.GROUPS, "other")) == sum(CLASSES.values())
    assert set(line) == set(machine_code.COLUMNS)


def test_kernels_of_one_sweep_are_added_and_the_widest_counts():
    second = FACTS | {"classes": CLASSES, "registers": 90, "spill_bytes": 0}
    first = FACTS | {"classes": CLASSES}
    (line,) = machine_code.lines([record(facts=second | {"kernels": [first, second]})])
    assert (line["kernels"], line["registers"], line["spill_bytes"], line["DFMA"]) == ("2", "90", "8", "14")


def test_a_sum_that_was_made_before_is_not_added_again():
    (line,) = machine_code.lines([record(facts=FACTS | {"classes": CLASSES, "kernels": 5})])
    assert (line["kernels"], line["DFMA"]) == ("5", "7")


def test_traffic_is_set_against_compulsory_bytes_and_points():
    metrics = {"ns": 2e6, "dram_read_bytes": 3000.0, "dram_write_bytes": 1800.0, "l2_bytes": 8000.0}
    metrics["l1_hit_pct"] = 71.26
    profile = {"metrics": metrics, "kernels": ["k"], "unavailable": ["lts__t_sector_hit_rate.pct"]}
    (line,) = traffic.lines([record(), record(profile=profile)])
    assert (line["dram_over_compulsory"], line["l2_bytes_a_point"], line["ncu_ms"]) == ("1.500", "40.0", "2.00000")
    assert (line["l1_hit_pct"], line["l2_hit_pct"], line["l1_bytes_a_point"]) == ("71.3", "", "")
    assert line["unavailable"] == "lts__t_sector_hit_rate.pct" and line["exchanges_a_point"] == ""


def test_values_from_other_lanes_are_a_point_s():
    profile = {"metrics": {"exchanges": 3200.0, "lsu_instructions": 75.0}, "kernels": ["k"], "unavailable": []}
    (line,) = traffic.lines([record(profile=profile)])
    assert (line["exchanges"], line["exchanges_a_point"], line["lsu_instructions"]) == ("3200", "16.00", "75")
    assert set(traffic.SHOWN) <= set(traffic.COLUMNS) == set(line)


def test_a_refusal_is_a_line():
    (line,) = traffic.lines([record(profile={"failure": "ncu ended with 1: no permission\nmore"})])
    assert line["failure"] == "ncu ended with 1: no permission" and line["dram_read_bytes"] == ""
