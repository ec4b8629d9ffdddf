"""Compiling real kernels with the default toolkit, and reading what came out."""

from __future__ import annotations

import dataclasses
import functools
import re
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from toolchain_cases import (
    SHIFT,
    SHIFT_PARAMS,
    SPILL,
    SPILL_PARAMS,
    SWEEP,
    SWEEP_PARAMS,
    fake_tool,
    needs_cutile,
)

from stencil_dsl import toolchain
from stencil_dsl.errors import ToolchainError
from stencil_dsl.toolchain import ScalarParam, ToolError

pytestmark = needs_cutile


@pytest.fixture(scope="module")
def kit():
    return toolchain.find()


@functools.cache
def compiled_once(kit, source=SHIFT, function="shift", params=SHIFT_PARAMS):
    return compiled(kit, source, function, params)


def compiled(kit, source=SHIFT, function="shift", params=SHIFT_PARAMS, arch="sm_90", **options):
    return toolchain.compile_source(source, function, params, symbol=function, arch=arch, toolkit=kit, **options)


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder of its own for temporary files, so that a test sees what is left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_resources_of_a_kernel_without_loop(kit):
    use = toolchain.inspect(compiled_once(kit).cubin, kit)
    assert use.symbol == "shift"
    assert use.threads == 128
    assert use.registers is not None and 8 <= use.registers <= 128
    assert use.stack_bytes == 0
    assert use.classes["LDG.E.128"] == 2
    assert use.classes["STG.E.128"] == 1
    assert use.classes["DADD"] == 2
    assert use.count("LDG") == 2 and use.count("LDG.E.128") == 2 and use.count("LD") == 0
    assert (use.spill_loads, use.spill_stores, use.spill_bytes, use.loop_spills) == (0, 0, 0, 0)
    assert (use.branches, use.barriers, use.shared_bytes) == (0, 0, 0)
    assert (use.loop_instructions, use.loop_classes) == (0, {})
    assert sum(use.classes.values()) == use.instructions
    assert "NOP" not in use.classes


def test_resources_of_a_loop(kit):
    use = toolchain.inspect(compiled_once(kit, SWEEP, "sweep", SWEEP_PARAMS).cubin, kit)
    assert 0 < use.loop_instructions < use.instructions
    assert sum(use.loop_classes.values()) == use.loop_instructions
    assert use.loop_classes["DFMA"] >= 1
    assert use.loop_classes["LDG.E.64"] >= 1
    assert use.loop_classes["BRA"] >= 1
    assert use.loop_spills == 0


def test_spills_are_counted_in_and_out_of_loops(kit):
    use = toolchain.inspect(compiled_once(kit, SPILL, "spill", SPILL_PARAMS).cubin, kit)
    assert use.registers <= 64
    assert use.stack_bytes > 0
    assert use.spill_loads > 0 and use.spill_stores > 0
    assert 0 < use.loop_spills <= use.spill_loads + use.spill_stores
    assert use.spill_bytes >= 4 * (use.spill_loads + use.spill_stores)
    assert use.classes["LDL"] == use.spill_loads


def test_resources_without_disassembler_have_elf_facts_only(kit, monkeypatch):
    cubin = compiled_once(kit).cubin
    whole = toolchain.inspect(cubin, kit)
    monkeypatch.setattr("stencil_dsl.toolchain.discover.find_tool", lambda name: None)
    part = toolchain.inspect(cubin)
    assert (part.registers, part.threads, part.text_hash) == (whole.registers, whole.threads, whole.text_hash)
    assert part.instructions is None and part.classes is None and part.count("LDG") is None


def test_resources_survive_json(kit):
    use = toolchain.inspect(compiled_once(kit).cubin, kit)
    assert toolchain.Resources.from_json(use.to_json() | {"of a later version": 1}) == use


def test_same_kernel_same_cubin_whatever_the_folders(kit, tmp_path, monkeypatch):
    first = compiled_once(kit)
    monkeypatch.chdir(tmp_path)
    second = compiled(kit, temporary=tmp_path)
    assert second.cubin == first.cubin
    assert second.bytecode == first.bytecode


def test_another_kernel_has_another_text_hash(kit):
    first = toolchain.read_elf(compiled_once(kit).cubin)
    other = toolchain.read_elf(compiled(kit, SHIFT.replace("a + b", "a - b")).cubin)
    assert first.text_hash != other.text_hash


def test_sass_reads_well(kit):
    text = toolchain.sass(compiled_once(kit, SWEEP, "sweep", SWEEP_PARAMS).cubin, kit)
    lines = text.splitlines()
    assert lines[0] == "sweep:"
    assert any(re.fullmatch(r"    @!?U?P\d BRA \.L\d+", line) for line in lines)
    assert not re.search(r"/\*|BRA [^.]*0x", text)
    labels = [line[:-1] for line in lines if line.startswith(".L")]
    assert labels == [f".L{n}" for n in range(1, len(labels) + 1)]
    assert "NOP" not in lines[-1] and "EXIT" in text


def test_subroutines_have_their_names(kit):
    source = SHIFT.replace("a + b", "a / b")
    text = toolchain.sass(compiled(kit, source).cubin, kit)
    called = set(re.findall(r"CALL\S* (\S+)", text))
    assert called
    assert all(f"{name}:" in text.splitlines() for name in called)


def test_tile_ir_and_remarks(kit):
    artifact = compiled_once(kit)
    assert "entry @shift(" in toolchain.tile_ir(artifact.bytecode, kit)
    assert "Function:        shift" in artifact.remarks
    assert compiled(kit, remarks=False).remarks == ""


def test_constants_are_parameters(kit):
    source = SHIFT.replace("(u, out)", "(u, out, k: ct.Constant[int])").replace("a + b", "a + b * k")
    with_two = compiled(kit, source, params=(*SHIFT_PARAMS, 2)).cubin
    with_three = compiled(kit, source, params=(*SHIFT_PARAMS, 3)).cubin
    assert toolchain.read_elf(with_two).text_hash != toolchain.read_elf(with_three).text_hash


def test_frontend_refusal_names_the_line(kit):
    with pytest.raises(ToolchainError) as caught:
        compiled(kit, SHIFT.replace("a + b", "a + nowhere"))
    assert "refused kernel 'shift'" in str(caught.value)
    assert "nowhere" in caught.value.stderr
    assert caught.value.versions["tileiras"] == kit.versions.tileiras


def test_missing_function_and_bad_source(kit):
    with pytest.raises(ToolchainError, match="no such function"):
        compiled(kit, SHIFT, "other")
    with pytest.raises(ToolchainError, match="SyntaxError"):
        compiled(kit, "def shift(:")


def test_tool_refusal_has_its_words(kit):
    with pytest.raises(ToolError) as caught:
        compiled(kit, arch="sm_35")
    assert caught.value.returncode == 1
    assert "sm_35" in caught.value.stderr
    assert "--gpu-name sm_35" in caught.value.command
    assert caught.value.versions == kit.versions.as_dict()


def test_nothing_is_left_behind(kit, temporary):
    compiled(kit)
    with pytest.raises(ToolError):
        compiled(kit, arch="sm_35")
    assert list(temporary.iterdir()) == []


def test_time_out_ends_the_whole_group(kit, tmp_path, temporary):
    pid = tmp_path / "pid"
    script = fake_tool(tmp_path / "tileiras", "13.5.37", f"sleep 1000 &\necho $! > {pid}\nwait")
    slow = dataclasses.replace(kit, tileiras=script)
    with pytest.raises(ToolError, match="time limit of 0.5 s") as caught:
        compiled(slow, timeout=0.5)
    assert caught.value.returncode is None
    child = Path("/proc") / pid.read_text().strip()
    deadline = time.monotonic() + 30
    while child.exists() and "\nState:\tZ" not in (child / "status").read_text():
        assert time.monotonic() < deadline, "the tool's child still runs"
        time.sleep(0.05)
    assert list(temporary.iterdir()) == []


def test_optimisation_level_comes_from_the_kernel_or_the_caller(kit, tmp_path):
    said = tmp_path / "said"
    script = fake_tool(tmp_path / "tileiras", "13.5.37", f'echo "$@" > {said}; echo x > kernel.cubin')
    recorder = dataclasses.replace(kit, tileiras=script)
    for source, level, expected in [
        (SHIFT, None, "-O3"),
        (SHIFT.replace("occupancy=4", "occupancy=4, opt_level=1"), None, "-O1"),
        (SHIFT, 2, "-O2"),
    ]:
        compiled(recorder, source, opt_level=level)
        assert expected in said.read_text().split()


def test_many_threads_compile_kernels_of_one_name(kit):
    sources = [SHIFT.replace("a + b", f"a + b * {n}.0") for n in range(4)]
    alone = [compiled(kit, s, remarks=False).cubin for s in sources]
    barrier = threading.Barrier(4)

    def work(source):
        barrier.wait(30)
        return compiled(kit, source, remarks=False).cubin

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(work, sources)) == alone
    assert len(set(alone)) == 4


def test_wrong_parameters_are_refused():
    with pytest.raises(ValueError, match="allowed are float64"):
        ScalarParam("complex64")
    with pytest.raises(ValueError, match="strides has 2 entries"):
        toolchain.ArrayParam("float64", (1, 2, 3), (1, 2))


def test_bytes_that_are_no_cubin():
    with pytest.raises(ToolchainError, match="not a cubin"):
        toolchain.inspect(b"nothing")


def test_unknown_symbol(kit):
    with pytest.raises(ToolchainError, match="it holds: shift"):
        toolchain.inspect(compiled_once(kit).cubin, kit, "other")


@pytest.mark.parametrize(
    "release, arch, bytecode",
    [("13.2", "sm_120", "13.2"), ("13.3", "sm_90", "13.3"), ("13.4", "sm_90", "13.4")],
)
def test_other_releases(release, arch, bytecode):
    """Runs where the release was installed side by side."""
    try:
        other = toolchain.find(release)
    except ToolchainError as error:
        pytest.skip(str(error))
    assert other.bytecode_version == bytecode
    source = SHIFT if other.unchecked_access else SHIFT.replace(", check_bounds=False", "")
    artifact = compiled(other, source, arch=arch)
    use = toolchain.inspect(artifact.cubin, other)
    assert use.threads == 128 and use.count("DADD") == 2
    assert bool(artifact.remarks) == other.writes_remarks
    if not other.unchecked_access:
        with pytest.raises(ToolchainError, match="check_bounds=False' requires tileiras 13.4"):
            compiled(other, SHIFT, arch=arch)
    if release == "13.2":
        with pytest.raises(ToolError, match="Cannot find option named 'sm_90'"):
            compiled(other, source, arch="sm_90")
        wide = compiled(other, source.replace("occupancy=4", "num_worker_warps=8"), arch=arch)
        assert "num_worker_warps is ignored" in wide.warnings[0]
