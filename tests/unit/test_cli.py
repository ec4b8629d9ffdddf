"""`python -m stencil_dsl`, the report, and what `import stencil_dsl` may load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

from stencil_dsl import Schedule, compile, stencil
from stencil_dsl.__main__ import main
from stencil_dsl.dialects.source import Source
from stencil_dsl.runtime.report import count_work
from stencil_dsl.toolchain.builder import usable_toolkit

FILE = """
from beside import WEIGHT
from stencil_dsl import stencil

@stencil
def blur(u, i, j):
    return WEIGHT * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 2])

@stencil
def grow(u, dt, i, j):
    return u[i, j] + dt

plain = 3
"""


def toolkit_missing() -> bool:
    from stencil_dsl import StencilError

    try:
        usable_toolkit(None)
    except StencilError:
        return True
    return False


needs_toolkit = pytest.mark.skipif(toolkit_missing(), reason="nothing can be compiled to machine code here")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file with two stencils, which imports a module beside it."""
    (tmp_path / "beside.py").write_text("WEIGHT = 0.25\n")
    (tmp_path / "case.py").write_text(FILE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("STENCIL_DSL_CACHE", str(tmp_path / "cache"))
    return str(tmp_path / "case.py")


def run(*arguments: str) -> int:
    return main(["compile", *arguments])


def test_level_1_parses_back(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{file}:blur", "--emit", "level1", "--dtype", "float32") == 0
    text = capsys.readouterr().out
    context = Context()
    for dialect in (Builtin, Source):
        context.load_dialect(dialect)
    assert str(Parser(context, text).parse_module()) == text.rstrip("\n")
    assert "source.stencil @blur" in text and "f32" in text and "case.py:" in text


@pytest.mark.parametrize(
    ("emit", "shows"),
    [("stencil", "stencil.apply"), ("tile", "tile.load"), ("source", "@ct.kernel")],
)
def test_stages(file: str, capsys: pytest.CaptureFixture[str], emit: str, shows: str) -> None:
    assert run(f"{file}:blur", "--emit", emit, "--shape", "32x256") == 0
    assert shows in capsys.readouterr().out


def test_several_stencils_become_one_kernel(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{file}:blur,grow", "--emit", "stencil") == 0
    text = capsys.readouterr().out
    assert text.count("stencil.apply") == 1 and 'outputs = ["blur", "grow"]' in text


def test_schedule_and_output_file(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "kernel.py"
    schedule = '{"kind": "streaming", "pair": 2, "occupancy": 3}'
    assert run(f"{file}:blur", "--shape", "64x512", "--emit", "source", "--schedule", schedule, "-o", str(out)) == 0
    assert capsys.readouterr().out == ""
    source = out.read_text()
    # Without a tile in the JSON it is a row of 128, here of pairs.
    assert "Schedule: streaming (1,128,2)" in source and "occupancy=3" in source and "for x in range" in source


def test_order_of_the_schedule_that_is_chosen(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    for order in ("fast", "source"):
        assert run(f"{file}:blur", "--emit", "source", "--shape", "64x512", "--order", order) == 0
        (line,) = (s for s in capsys.readouterr().out.splitlines() if s.startswith("Schedule: "))
        assert line.endswith(f", {order}.")


def test_a_dynamic_schedule_needs_no_shape(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{file}:blur", "--emit", "source", "--schedule", '{"static_shape": false}') == 0
    assert "@ct.kernel" in capsys.readouterr().out


@needs_toolkit
def test_machine_code(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    row = ("--shape", "32x256", "--schedule", '{"tile": [1, 128]}')
    assert run(f"{file}:grow", "--emit", "sass", *row) == 0
    assert "DADD" in capsys.readouterr().out
    assert run(f"{file}:grow", "--emit", "sass", *row, "--dtype", "float32") == 0
    single = capsys.readouterr().out
    assert "FADD" in single and "DADD" not in single
    assert run(f"{file}:grow", "--emit", "report", *row, "--target", "sm_80") == 0
    report = capsys.readouterr().out
    assert "sm_80" in report and "128 a block" in report and "1 DADD" in report


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["case.py"], "is not FILE.py:NAME"),
        ([":blur"], "is not FILE.py:NAME"),
        (["missing.py:blur"], "there is no file missing.py"),
        (["FILE:nope", "--emit", "stencil"], "has no stencil 'nope'; it has blur, grow"),
        (["FILE:plain", "--emit", "stencil"], "has no stencil 'plain'"),
        (["FILE:blur", "--shape", "32x"], "'32x' is not one to three positive extents"),
        (["FILE:blur", "--shape", "0x8"], "is not one to three positive extents"),
        (["FILE:blur", "--shape", "2x2x2x2"], "is not one to three positive extents"),
        (["FILE:blur", "--emit", "tile"], "--emit tile needs --shape"),
        (["FILE:blur", "--emit", "ptx"], "invalid choice: 'ptx'"),
        (["FILE:blur", "--dtype", "float16"], "invalid choice: 'float16'"),
        (["FILE:blur", "--schedule", "{"], "is not JSON"),
        (["FILE:blur", "--schedule", "[1]"], "is not a JSON object"),
        (["FILE:blur", "--emit", "stencil", "-o", "no/such/folder/out"], "cannot write no/such/folder/out"),
    ],
)
def test_bad_usage(file: str, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as status:
        run(*(a.replace("FILE", file) for a in arguments))
    assert status.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--emit", "tile", "--shape", "8x8x8"], "error: blur needs 2 positive extents"),
        (["--shape", "8x8", "--schedule", '{"tile": [3, 128]}'], "powers of two, got (3, 128)"),
        (["--shape", "8x8", "--schedule", '{"tile": 128}'], "value of the wrong type"),
        (["--shape", "8x8", "--schedule", '{"tyle": [1]}'], "unknown schedule fields ['tyle']"),
        (["--shape", "8x8", "--emit", "sass", "--toolkit", "9.9"], "9.9"),
    ],
)
def test_errors_of_the_compiler(
    file: str, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(f"{file}:blur", *arguments) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: ") and message in err and "Traceback" not in err


def test_a_function_that_is_no_stencil(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("from stencil_dsl import stencil\n\n@stencil\ndef f(u, i):\n    return u[i + 0.5]\n")
    assert run(f"{bad}:f", "--emit", "level1") == 1
    err = capsys.readouterr().err
    assert err.startswith(f"error: {bad}:5:18: ") and "                     ^^^" in err


def test_as_a_program(file: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stencil_dsl", "compile", f"{file}:nope"], capture_output=True, text=True
    )
    assert done.returncode == 2 and done.stdout == ""
    assert "usage: python -m stencil_dsl compile" in done.stderr


# -- the report


@stencil
def pulse(u, v, dt, i, j):
    return u[i, j] + dt * v[i, j - 1], abs(v[i, j + 2])


def facts(report: str) -> dict[str, str]:
    """The lines of a report by their first words."""
    rows = (line.strip().partition("  ") for line in report.splitlines() if line.startswith("  "))
    return {name: value.strip() for name, _, value in rows}


def test_report_counts_a_cell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STENCIL_DSL_CACHE", str(tmp_path))
    kernel = compile(pulse, shape=(32, 256), schedule=Schedule(tile=(1, 128)))
    found = facts(kernel.report())
    assert found["shape"] == "32 x 256"
    assert found["halo of u"].startswith("x 0+0, z 0+0")
    assert found["halo of v"].startswith("x 0+0, z 1+2")
    assert found["accesses"].startswith("3 ")
    # Two fields in, two outputs out, eight bytes each.
    assert found["compulsory bytes"].startswith("32 ")
    assert found["loads"] == "3 elements"
    assert found["flops"].startswith("3 (")
    assert found["interpreter"].startswith("bit for bit")


@pytest.mark.parametrize("unroll", [1, 2])
@pytest.mark.parametrize("rows", [1, 2])
def test_work_is_counted_per_cell_whatever_a_trip_covers(unroll: int, rows: int) -> None:
    @stencil
    def star(u, i, j, k):
        return 0.4 * u[i, j, k] + 0.1 * (u[i - 1, j, k] + u[i + 1, j, k])

    schedule = Schedule("streaming", tile=(1, 1, 128), rows=rows, unroll=unroll, chunk=8, order="fast", pair=2)
    kernel = compile(star, shape=(16, 8, 512), schedule=schedule)
    work = count_work(kernel.lowered.module, outputs=1)
    assert work.loop and work.cells == rows * unroll * 256
    # Each plane is loaded once; the centre and its two neighbours meet in accumulators.
    assert work.loads == 1
    assert work.flops == sum(work.operations.values())


def test_report_without_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STENCIL_DSL_CACHE", str(tmp_path))
    report = compile(pulse, shape=(32, 256), toolkit="9.9").report()
    assert "9.9" in facts(report)["not compiled"]
    assert "registers" not in facts(report) and facts(report)["grid"]


# -- imports


@pytest.mark.parametrize(
    ("statement", "light"),
    [
        ("import stencil_dsl", True),
        ("import stencil_dsl.toolchain, stencil_dsl.testing, stencil_dsl.__main__", True),
        ("from stencil_dsl import stencil", True),
        ("from stencil_dsl import compile", False),
    ],
)
def test_imports_stay_light(statement: str, light: bool) -> None:
    """Nothing heavy is loaded before it is used; the last row shows that the test can tell."""
    heavy = ("cupy", "torch", "pandas", "matplotlib", "cuda.tile", "hypothesis", "xdsl", "numpy")
    code = f"import sys; {statement}; print([n for n in {heavy} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout.strip() == "[]") is light, done.stdout
