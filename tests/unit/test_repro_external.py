"""Times of programs that the user has built: found, run, read, and put beside the DSL's."""

from __future__ import annotations

import sys

import pytest

from repro.external import ExternalError, lines, sources
from repro.tables import Table

#: Prints as bricklib's programs do, and a little differently each time it is run.
PROGRAM = """#!{python}
import pathlib
count = pathlib.Path(__file__).with_suffix(".count")
runs = len(count.read_text()) if count.exists() else 0
count.write_text("x" * (runs + 1))
print("d3pt7")
print("Arr: ", 0.0005 + 0.0001 * runs)
print("Arr scatter: 0.000625")
print("Trans: 5.5e-04")
"""


def program(folder, name, text=PROGRAM):
    file = folder / name
    file.write_text(text.format(python=sys.executable))
    file.chmod(0o755)
    return file


def test_a_program_is_run_as_often_as_asked_and_prints_seconds(tmp_path):
    program(tmp_path, "star-7-256")
    (tmp_path / "README").write_text("not a program")
    (found,) = sources(tmp_path)
    assert (found.id, found.stencil, found.size) == ("star-7-256", "star-7", 256)
    times = found.times(3)
    assert list(times) == ["bricklib-arr", "bricklib-arr-scatter", "bricklib-trans"]
    assert times["bricklib-arr"] == pytest.approx([0.5, 0.6, 0.7])
    assert times["bricklib-trans"] == pytest.approx([0.55] * 3)


def test_csv_files_hold_samples(tmp_path):
    (tmp_path / "mine.csv").write_text(
        "stencil,size,variant,ms\ncns,256,Trans,17.2\ncns,256,Trans,17.4\nstar-13,512,arr,5.5\n"
    )
    star, cns = sources(tmp_path)
    assert star.times(9) == {"bricklib-arr": [5.5]}
    assert cns.times(9) == {"bricklib-trans": [17.2, 17.4]}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", "stencil,size,ms\nstar-7,256,1\n", "a.csv: column variant is missing"),
        ("a.csv", "stencil,size,variant,ms\nstar-8,256,arr,1\n", "a.csv, line 2: no row 'star-8'; rows are star-7"),
        ("a.csv", "stencil,size,variant,ms\nstar-7,256,arr,fast\n", "a.csv, line 2: size and ms must be numbers"),
        ("a.csv", "stencil,size,variant,ms\nstar-7,256,arr,-1\n", "a.csv, line 2: size and ms must be positive"),
        ("notes.txt", "", "needs an executable called <row>-<size>"),
    ],
)
def test_what_is_not_understood_is_named(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(ExternalError) as caught:
        sources(tmp_path)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#!{python}\nimport sys\nsys.exit('result mismatch!')\n", "star-7-256 ended with 1: result mismatch!"),
        ("#!{python}\nprint('d3pt7')\n", "star-7-256 printed no time"),
    ],
)
def test_a_program_that_fails_or_prints_nothing_is_an_error(tmp_path, text, words):
    program(tmp_path, "star-7-256", text)
    with pytest.raises(ExternalError, match=words):
        sources(tmp_path)[0].times(1)


def test_the_same_row_twice_is_refused(tmp_path):
    program(tmp_path, "star-7-256")
    (tmp_path / "a.csv").write_text("stencil,size,variant,ms\nstar-7,256,arr,1\n")
    with pytest.raises(ExternalError, match="keep one of them"):
        sources(tmp_path)


def test_medians_stand_beside_each_other(tmp_path):
    def record(variant, *times, **more):
        samples = [{"ms": ms, "used": True} for ms in times]
        of = {"stencil": "star-7", "size": 256}
        return {"question": "star-7-256", "variant": variant, "samples": samples, "params": of} | more

    theirs = record("bricklib-trans", 0.5, 0.7, 0.6, facts={"schedule": "timed by its own program"})
    table = Table(tmp_path, "sm_90", (record("dsl", 0.3),), (), more={"repro/test_external.py": (theirs,)})
    (line,) = lines(table)
    assert (line["ms"], line["dsl_ms"], line["dsl_over_it"]) == ("0.60000", "0.30000", "0.500")
    assert line["timed_by"] == "its own program"
