"""Flags: one group in the help, usage errors, nothing heavy at collection."""

from __future__ import annotations

import pytest


def test_help_shows_one_group(bed):
    done = bed.run("--help")
    text = done.stdout.str()
    block = text.split("stencil benchmark harness:")[1].split("\n\n")[0]
    for flag in ("--gpu", "--gpu-device", "--arch", "--toolkit", "--rounds", "--results"):
        assert flag in block
    for flag in ("--golden", "--update-golden", "--dump"):
        assert flag in block


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rounds", "3"], "*--rounds 3: at least 9 rounds*"),
        (["--golden", "--update-golden"], "*give one of them*"),
        (["--arch", "hopper"], "*--arch hopper: architectures are written sm_90*"),
    ],
)
def test_usage_errors_exit_with_four(bed, arguments, message):
    bed.module("fast")
    done = bed.run(*arguments)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([message])


def test_a_question_function_that_a_worker_cannot_find_is_a_usage_error(bed):
    bed.module(
        "fast",
        test="""
@pytest.mark.parametrize("variant", {variants!r})
@asks(lambda: None)
def test_nested(variant, result):
    result.check()

def inner():
    def question():
        pass
    return question

@pytest.mark.parametrize("variant", {variants!r})
@asks(inner())
def test_inner(variant, result):
    result.check()
""",
    )
    done = bed.run()
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*must be at the top level of its module*"])


def test_collection_imports_nothing_heavy(bed):
    bed.module("fast")
    bed.pytester.makeconftest("""
        import sys

        def pytest_collection_finish(session):
            heavy = {"cupy", "pandas", "matplotlib", "cuda.tile", "xdsl", "numpy"} & set(sys.modules)
            assert not heavy, heavy
        """)
    bed.run("--collect-only", "-q").assert_outcomes()
    assert bed.run("--collect-only", "-q").ret == 0


def test_a_session_without_questions_writes_nothing_and_stays_quiet(bed):
    (bed.path / "test_plain.py").write_text("def test_plain():\n    pass\n")
    done = bed.run()
    done.assert_outcomes(passed=1)
    assert not (bed.path / "results").exists()
    assert "stencil:" not in done.stdout.str()
