"""`--ncu` on a fake device, with a program that answers as Nsight Compute does."""

from __future__ import annotations

import sys

import pytest
from plugin_bed import QUESTIONS

from stencil_dsl.testing import profiling

#: Runs the command behind its options, as ncu does, and writes the raw page as CSV.
FAKE_NCU = """#!{python}
import pathlib, subprocess, sys
options = sys.argv[1:sys.argv.index("--metrics")]
metrics = sys.argv[sys.argv.index("--metrics") + 1].split(",")
with open({log!r}, "a") as file:
    print(" ".join(options), file=file)
out = pathlib.Path(options[options.index("--log-file") + 1])
if {unknown!r} in metrics:
    out.write_text("==ERROR== Failed to find metric {unknown}\\n")
    sys.exit(1)
done = subprocess.run(sys.argv[sys.argv.index("--metrics") + 2:])
if done.returncode:
    out.write_text("==ERROR== The application returned an error code (1).\\n")
    sys.exit(done.returncode)
units = {{"bytes": "byte", "time_duration": "ns"}}
unit = [next((u for word, u in units.items() if word in m), "%") for m in metrics]
quoted = lambda cells: ",".join('"' + cell + '"' for cell in cells)
lines = ["==PROF== Connected to process 1", quoted(["ID", "Kernel Name", *metrics]), quoted(["", "", *unit])]
for n, name in enumerate({kernels!r}):
    values = [str(20 * (n + 1)) if u == "%" else f"{{1000 * (n + 1):,}}" for u in unit]
    lines.append(quoted([str(n), name, *values]))
out.write_text("\\n".join(lines) + "\\n")
"""


@pytest.fixture
def fake_ncu(bed):
    """Puts the program on the path; its options are in ncu.log."""

    def install(unknown="no such", kernels=("doubling",)):
        folder = bed.path / "bin"
        folder.mkdir()
        program = folder / "ncu"
        log = str(bed.path / "ncu.log")
        program.write_text(FAKE_NCU.format(python=sys.executable, log=log, unknown=unknown, kernels=kernels))
        program.chmod(0o755)
        bed.monkeypatch.setenv("PATH", str(folder), prepend=":")
        return bed.path / "ncu.log"

    return install


def test_each_selected_variant_is_profiled_with_clocks_left_alone(bed, fake_ncu):
    log = fake_ncu()
    bed.module("fast", "slow", "copy")
    bed.run("--gpu", "--ncu", "-k", "8 and not slow").assert_outcomes(passed=2)
    assert [line for line in bed.order() if "profiled" in line] == ["fast profiled", "copy profiled"]
    assert all("--clock-control none" in line and "--profile-from-start off" in line for line in log.open())
    for row in bed.rows():
        assert row["samples"] and row["profile"]["kernels"] == ["doubling"]
        assert row["profile"]["metrics"]["dram_read_bytes"] == 1000.0
        assert row["profile"]["metrics"]["l2_hit_pct"] == 20.0


def test_a_question_names_the_variants_whose_counters_are_worth_a_process(bed, fake_ncu):
    fake_ncu()
    bed.module("fast", "slow", "copy", questions=QUESTIONS.replace('baseline="copy"', 'profiled=("slow",)'))
    bed.run("--gpu", "--ncu", "-k", "8").assert_outcomes(passed=3)
    assert [line for line in bed.order() if "profiled" in line] == ["slow profiled"]
    assert [row["variant"] for row in bed.rows() if "profile" in row] == ["slow"]


def test_what_ncu_does_not_know_is_left_out_and_named(bed, fake_ncu):
    log = fake_ncu("lts__t_sector_hit_rate.pct")
    bed.module("fast", "slow")
    bed.run("--gpu", "--ncu", "-k", "8").assert_outcomes(passed=2)
    for row in bed.rows():
        assert row["profile"]["unavailable"] == ["lts__t_sector_hit_rate.pct"]
        assert "l2_hit_pct" not in row["profile"]["metrics"] and "l1_hit_pct" in row["profile"]["metrics"]
    # What the first variant found out is not tried with the second.
    assert len(log.read_text().splitlines()) == 3


def test_kernels_of_one_launch_add_up_and_shares_are_weighted_by_time(bed, fake_ncu):
    fake_ncu(kernels=("first", "second"))
    bed.module("fast")
    bed.run("--gpu", "--ncu", "-k", "8").assert_outcomes(passed=1)
    metrics = bed.rows()[0]["profile"]["metrics"]
    assert metrics["ns"] == 3000.0 and metrics["dram_write_bytes"] == 3000.0
    assert metrics["occupancy_pct"] == pytest.approx((20 * 1000 + 40 * 2000) / 3000)


def test_a_refusal_fails_the_variant_and_keeps_its_time(bed, fake_ncu):
    fake_ncu(kernels=())
    bed.module("fast")
    done = bed.run("--gpu", "--ncu", "-k", "8")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*ncu measured no kernel*"])
    (row,) = bed.rows()
    assert len(row["samples"]) == 9 and "ncu measured no kernel" in row["profile"]["failure"]


def test_without_ncu_or_a_device_the_option_is_refused(bed, monkeypatch):
    bed.module("fast")
    assert bed.run("--ncu").ret == pytest.ExitCode.USAGE_ERROR
    bed.monkeypatch.setenv("PATH", str(bed.path))
    done = bed.run("--gpu", "--ncu")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*Nsight Compute's `ncu` is not on the path*"])


def test_names_that_only_begin_alike_are_not_taken_for_unknown():
    said = "==ERROR== Failed to find metric lts__t_bytes.sum"
    assert profiling.unknown_metrics(said, ["lts__t_bytes.sum", "l1tex__t_bytes.sum"]) == ["lts__t_bytes.sum"]
    assert profiling.unknown_metrics("==PROF== metric lts__t_bytes.sum", profiling.METRICS) == []


def test_permission_is_told_as_ncu_tells_it():
    said = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters\n==PROF== done"
    assert "ERR_NVGPUCTRPERM" in profiling._last(said)


@pytest.mark.parametrize("unit", ["inst", "", "thread inst"])
def test_counts_are_numbers_whatever_their_unit_is_called(unit):
    names = sorted(profiling.COUNTS)
    assert [profiling.METRICS[name][0] for name in names] == ["lsu_instructions", "exchanges"]
    text = f'"ID","Kernel Name","{names[0]}","{names[1]}"\n"","","{unit}","{unit}"\n"0","k","1,024","n/a"\n'
    _, values = profiling.read(text)
    assert values == [{names[0]: 1024.0}]


def test_an_unknown_unit_is_refused():
    text = '"ID","Kernel Name","dram__bytes_read.sum"\n"","","parsec"\n"0","k","1"\n'
    with pytest.raises(profiling.ProfileError, match="parsec"):
        profiling.read(text)
