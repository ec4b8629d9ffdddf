"""The probes as a whole: every claim has one, ids work with -k, pages and docstrings say what the ledger says."""

from __future__ import annotations

import importlib
import inspect
import re
from types import SimpleNamespace

import pytest

from probes import catalogue, census, comparing, judging, ledger_page
from probes.__main__ import main, side_by_side
from stencil_dsl.testing import Claim, Finding, Target, ledger
from stencil_dsl.testing.reference import refer
from stencil_dsl.testing.session import Result

CLAIMS = 47


def test_every_claim_has_a_probe():
    assert list(catalogue.claims()) == list(range(1, CLAIMS + 1))


def test_every_claim_is_entered_by_one_module():
    entering: dict[int, set[str]] = {}
    for name in catalogue.modules():
        module = importlib.import_module(name)
        for value in vars(module).values():
            if isinstance(value, Claim) and catalogue._enters(name, value):
                entering.setdefault(value.number, set()).add(name)
    assert {number: names for number, names in entering.items() if len(names) > 1} == {}
    assert sorted(entering) == list(range(1, CLAIMS + 1))


@pytest.mark.parametrize("module", catalogue.modules())
def test_docstrings_name_claims_and_sources(module):
    text = importlib.import_module(module).__doc__ or ""
    numbers = {int(n) for n in re.findall(r"[Cc]laim (\d+)", text)}
    assert {n for n, (_, where) in catalogue.claims().items() if where == module} <= numbers
    assert re.search(r"Source|Measured|Made on", text), "where the claim comes from"


@pytest.mark.parametrize("module", catalogue.modules())
def test_ids_work_with_k(module):
    for item in catalogue.items():
        if item.module == module:
            assert re.fullmatch(r"[a-z0-9.-]+", item.variant, re.IGNORECASE), item.variant


def test_the_page_and_the_docstrings_are_those_of_the_ledger():
    rows = ledger.read(ledger_page.LEDGER)
    assert {int(row["claim"]) for row in rows} == set(range(1, CLAIMS + 1))
    advice = "write them with: python -m probes ledger --page"
    assert ledger_page.PAGE.read_text() == ledger_page.page(rows), advice
    assert ledger_page.docstrings(rows, write=False) == [], advice


def test_ledger_prints_verdicts_and_changes(tmp_path, capsys):
    row = dict.fromkeys(ledger.COLUMNS, "") | {"claim": "4", "tier": "code", "arch": "sm_90", "text": "rungs"}
    rows = [row | {"tools": "13.4.92", "verdict": "holds"}, row | {"tools": "13.5.37", "verdict": "weaker", "why": "w"}]
    ledger.write(tmp_path / "claims.csv", rows)
    assert main(["ledger", "--file", str(tmp_path / "claims.csv")]) == 0
    printed = capsys.readouterr().out
    assert "weaker (code, sm_90, 13.5.37): w" in printed and "4  13.4.92 holds -> 13.5.37 weaker" in printed


def test_differences_of_two_sides_are_told_per_variant():
    facts = {"registers": 40, "instructions": 120, "branches": 1, "text_hash": "a"}
    first = {("box-27", v, "sm_90"): facts for v in ("same", "grew", "broke", "gone")}
    second = {
        ("box-27", "same", "sm_90"): facts,
        ("box-27", "grew", "sm_90"): facts | {"branches": 55, "instructions": 912},
        ("box-27", "broke", "sm_90"): {"failure": "ToolError: tileiras failed with return code 5\n..."},
    }
    assert comparing.report(first, second, ("13.4", "13.5")) == [
        "13.4 -> 13.5: 3 grew or broke, 0 changed otherwise, 1 equal",
        "  box-27/grew, sm_90: instructions 120 -> 912, branches 1 -> 55",
        "  box-27/broke, sm_90: fails with 13.5: ToolError: tileiras failed with return code 5",
        "  box-27/gone, sm_90: only with 13.4",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["diff", "13.4", "HEAD"], "compare two toolkits or two commits"),
        (["diff", "no-such-commit", "HEAD"], "no-such-commit"),
        (["show", "no-such-variant"], "'no-such-variant' is no variant"),
        (["census", "no-such-case"], "no case 'no-such-case': heat, wave, reaction"),
    ],
)
def test_mistakes_are_told_in_a_line(arguments, words, capsys):
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ") and words in error


def test_two_texts_stand_side_by_side():
    lines = side_by_side(("one", "a\nb\nc"), ("two", "a\nx\nc\nd"), 23)
    assert lines == [
        "one          two",
        "-" * 23,
        "a            a",
        "b          | x",
        "c            c",
        "           > d",
    ]


def test_a_step_is_watched_launch_by_launch():
    step = census.find_case("reaction")(8, "cpu")
    with census.watched() as launches:
        step()
        step()
    step()
    assert [launch.spec.definition.name for launch in launches] == ["reacted", "reacted"]


def timed_answers(module: str):
    """`answers` of a run that timed every variant of a probe, each a little slower than the last, and read no code."""
    variants: dict[str, list[str]] = {}
    for item in catalogue.items():
        if item.module == module:
            variants.setdefault(item.question.key, []).append(item.variant)

    def answers(function, **arguments):
        names = variants.get(refer(function, arguments).key)
        if names is None:  # a question of another probe
            names = timed_answers.elsewhere[function.__name__]
        question = SimpleNamespace(id=function.__name__, bytes=10**9)

        def result(place: int, name: str) -> Result:
            samples = [{"ms": 1.0 + 0.1 * place, "used": True} for _ in range(9)]
            return Result(question, name, Target("sm_90"), "group", {"samples": samples, "run": "one"})

        return {name: result(place, name) for place, name in enumerate(names)}

    return answers


timed_answers.elsewhere = {"layouts": ["axis-last", "axis-first", "axis-third", "axis-kept"]}

#: Claims that only code or values decide.
NOT_TIMED = {12, 14, 17, 18, 21, 24, 34, 36, 38, 43}


@pytest.mark.parametrize("module", catalogue.modules())
def test_claims_are_judged_on_times_and_without_facts(module):
    """Facts that were not read make the code part untestable, never an error; times give a second verdict."""
    found: dict[int, list] = {}

    def claim(made, *findings, tools=None):
        found.setdefault(made.number, []).extend(f for f in findings if f is not None)

    for name, test in vars(importlib.import_module(module)).items():
        if name.startswith("test_claim"):
            parameters = inspect.signature(test).parameters
            test(timed_answers(module), claim, **({"arch": "sm_120"} if "arch" in parameters else {}))
    assert found
    for number, findings in found.items():
        assert {f.verdict for f in findings if f.tier == "code"} <= {"cannot be tested here"}, number
        times = [f for f in findings if f.tier == "time"]
        assert bool(times) == (number not in NOT_TIMED), number
        assert all(f.why and f.verdict != "cannot be tested here" for f in times)


@pytest.mark.parametrize(
    ("slow", "claimed", "verdict"),
    [(3.0, 3.3, "holds"), (2.2, 3.3, "holds"), (1.5, 3.3, "weaker"), (1.0, 1.02, "weaker"), (0.9, 1.0, "reversed")],
)
def test_half_of_a_claimed_gain_holds(slow, claimed, verdict):
    def result(ms: float) -> Result:
        samples = [{"ms": ms, "used": True} for _ in range(9)]
        return Result(SimpleNamespace(id="q"), "v", Target("sm_90"), "g", {"samples": samples, "run": "one"})

    found = {"better": result(1.0), "worse": result(slow)}
    assert judging.gain(found, "better", "worse", claimed).verdict == verdict
    assert judging.tie(found, "better", "worse").verdict == (
        "holds" if slow == 1.0 else "weaker" if slow == 0.9 else "reversed"
    )


def test_findings_say_where_kernels_for_older_toolkits_stood_in():
    def result(**found) -> Result:
        return Result(SimpleNamespace(id="q"), "v", Target("sm_90"), "g", found)

    old, new = result(facts={"older": "13.4 is needed"}), result(facts={"registers": 8})

    def same(found):
        return Finding("holds", "equal")

    assert judging.judged(same, {"a": {"b": [new]}}).why == "equal"
    assert judging.judged(same, {"a": {"b": [new, old]}}).why == "equal; with bounds checks, because 13.4 is needed"
    assert judging.judged(judging.fact, result(failure="x"), "registers").why == "v: failed: x"
