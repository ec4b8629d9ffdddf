"""The kernel cache: keys, concurrent and killed writers, damage, machines that cannot compile."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from toolchain_cases import SHIFT, SHIFT_PARAMS, fake_toolkit, needs_cutile

import stencil_dsl
from stencil_dsl import toolchain
from stencil_dsl.errors import ToolchainError
from stencil_dsl.toolchain import ArrayParam, Artifact, KernelCache, Resources, builder, cutile_adapter
from stencil_dsl.toolchain.__main__ import main
from stencil_dsl.toolchain.entry import cubin_file

KEY = "ab" * 20
ARTIFACT = Artifact(b"bytecode", b"cubin", "remarks", 0.5)
USE = Resources("k", 32, 0, 0, 128, "hash", instructions=3, classes={"LDG.E.64": 1, "EXIT": 1, "BRA": 1})


@pytest.fixture
def cache(tmp_path):
    return KernelCache(tmp_path / "cache")


@pytest.fixture
def kit(tmp_path, monkeypatch):
    monkeypatch.setenv("STENCIL_DSL_CACHE", str(tmp_path / "tool-facts"))
    return toolchain.open_toolkit(fake_toolkit(tmp_path / "kit"))


def versioned(kit, tileiras, nvvm=None, ptxas=None):
    nvvm, ptxas = nvvm or tileiras, ptxas or tileiras
    tools = dataclasses.replace(kit.versions, tileiras=tileiras, nvvm=nvvm, ptxas=ptxas)
    return dataclasses.replace(kit, versions=tools, key=f"{tileiras}-{tools.nvvm}-{tools.ptxas}")


def stored(cache, kit, key=KEY, artifact=ARTIFACT):
    return cache.store(key, kit, artifact, USE, {"arch": "sm_90"}, source="source", sass="k:\n")


def leftovers(cache):
    return list((cache.entries_root / ".tmp").iterdir())


def in_python(code: str, *arguments: object, flags: tuple[str, ...] = (), **env: str):
    """Start Python code in another process, with this package and these tests importable."""
    places = [str(Path(stencil_dsl.__file__).parents[1]), str(Path(__file__).parent)]
    return subprocess.Popen(
        [sys.executable, *flags, "-c", code, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(places)} | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_round_trip(cache, kit):
    entry = stored(cache, kit)
    assert entry.path == cache.root / "v1" / KEY[:2] / KEY / kit.key
    found = cache.lookup(KEY, kit)
    assert found == entry
    assert (found.cubin, found.bytecode, found.source) == (b"cubin", b"bytecode", "source")
    assert (found.remarks, found.sass, found.resources) == ("remarks", "k:\n", USE)
    assert found.meta == {"arch": "sm_90"}
    assert found.tool_versions == kit.versions.as_dict()
    assert leftovers(cache) == []
    files = {p.name for p in entry.path.iterdir()}
    assert files == {"kernel.cubin", "kernel.py", "kernel.bc", "remarks.yaml", "kernel.sass", "meta.json"}


def test_first_writer_wins(cache, kit):
    first = stored(cache, kit)
    second = stored(cache, kit, artifact=dataclasses.replace(ARTIFACT, cubin=b"other"))
    assert second == first
    assert leftovers(cache) == []


@pytest.mark.parametrize(
    "change",
    [
        {"source": SHIFT + "#"},
        {"function": "other"},
        {"symbol": "other"},
        {"arch": "sm_100"},
        {"opt_level": 2},
        {"params": SHIFT_PARAMS[:1]},
        {"params": (ArrayParam("float64", (64, 65, 257), (65 * 256, 256, 1)), SHIFT_PARAMS[1])},
        {"params": (dataclasses.replace(SHIFT_PARAMS[0], base_divisible_by=128), SHIFT_PARAMS[1])},
        {"params": (*SHIFT_PARAMS, 1)},
        {"params": (*SHIFT_PARAMS, 1.0)},
    ],
)
def test_request_key_follows_everything_asked_for(change):
    request = dict(source=SHIFT, function="shift", params=SHIFT_PARAMS, symbol="shift", arch="sm_90", opt_level=None)
    key = toolchain.KernelCache.request_key(**request)
    assert key == toolchain.KernelCache.request_key(**(request | {"params": list(SHIFT_PARAMS)}))
    assert key != toolchain.KernelCache.request_key(**(request | change))


def test_int_and_float_constants_have_different_keys():
    values = (1, 1.0, True, 1 + 2**-52, -0.0, 0.0)
    assert len({KernelCache.request_key("s", "f", (value,), "f", "sm_90") for value in values}) == len(values)


def test_lookup_by_tool_names(cache, kit):
    for tools in [("13.3.36", "13.3.73", "13.3.73"), ("13.4.92",), ("13.5.37", "13.4.92", "13.5.37")]:
        stored(cache, versioned(kit, *tools))

    def tileiras(name):
        entry = cache.lookup(KEY, name)
        return entry and (entry.tool_versions["tileiras"], entry.tool_versions["nvvm"])

    assert tileiras(None) == ("13.5.37", "13.4.92")
    assert tileiras("13.3") == ("13.3.36", "13.3.73")
    assert tileiras("13.3.36") == ("13.3.36", "13.3.73")
    assert tileiras("13.4.92") == ("13.4.92", "13.4.92")
    assert tileiras("13.5+nvvm-13.4") == ("13.5.37", "13.4.92")
    assert tileiras("13.5") is None
    assert tileiras("13.4.91") is None
    assert tileiras("/some/folder") is None
    assert cache.lookup("cd" * 20) is None


def test_newest_is_by_number_not_by_text(cache, kit):
    for version in ("13.10.1", "13.9.1"):
        stored(cache, versioned(kit, version))
    assert cache.lookup(KEY).tool_versions["tileiras"] == "13.10.1"


def _flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _edit(path):
    content = json.loads(path.read_text())
    content["resources"]["registers"] = 1
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "name, damage",
    [
        ("kernel.cubin", _flip),
        ("kernel.py", _flip),
        ("kernel.bc", Path.unlink),
        ("kernel.sass", lambda p: p.write_bytes(b"")),
        ("meta.json", _edit),
        ("meta.json", Path.unlink),
        ("meta.json", lambda p: p.write_text("[]")),
        ("meta.json", lambda p: os.truncate(p, 40)),
    ],
)
def test_damaged_entry_is_a_miss_and_goes_away(cache, kit, name, damage):
    path = stored(cache, kit).path
    damage(path / name)
    assert cache.lookup(KEY, kit) is None
    assert not path.exists()
    assert stored(cache, kit).path == path
    assert cache.lookup(KEY, kit) is not None
    assert leftovers(cache) == []


def test_store_replaces_a_damaged_entry(cache, kit):
    path = stored(cache, kit).path
    _flip(path / "kernel.cubin")
    assert stored(cache, kit).path == path
    assert cache.lookup(KEY, kit).cubin == b"cubin"


def test_entry_in_a_wrong_place_is_not_used(cache, kit):
    entry = stored(cache, kit)
    other = "ab" + "cd" * 19
    shutil.copytree(entry.path, cache.entries_root / "ab" / other / kit.key)
    assert cache.lookup(other, kit) is None


_WRITE = """
import sys, time
from pathlib import Path
from stencil_dsl import toolchain
from test_cache import ARTIFACT, USE
cache = toolchain.KernelCache(sys.argv[1])
kit = toolchain.open_toolkit(Path(sys.argv[2]))
while time.time() < float(sys.argv[3]):
    pass
for n in range(200):
    entry = cache.store(f"{n:040x}", kit, ARTIFACT, USE, {"writer": sys.argv[4]}, source="source")
    assert entry.cubin == b"cubin" and entry.path is not None
    assert cache.lookup(f"{n:040x}", kit) == entry
"""


def test_two_processes_store_the_same_kernels(cache, kit):
    start = time.time() + 2
    writers = [in_python(_WRITE, cache.root, kit.root, start, name) for name in "ab"]
    for writer in writers:
        assert writer.wait(120) == 0, writer.stderr.read()
    entries = list(cache.entries())
    assert len(entries) == 200
    assert leftovers(cache) == []


_DIE = """
import os, signal, sys
from pathlib import Path
from stencil_dsl import toolchain
from test_cache import ARTIFACT, KEY, USE
kit = toolchain.open_toolkit(Path(sys.argv[2]))
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[3] == "before the rename":
    os.rename = die
else:
    plain = Path.write_bytes
    Path.write_bytes = lambda self, data: plain(self, data) and (die() if self.name == "kernel.bc" else 0)
toolchain.KernelCache(sys.argv[1]).store(KEY, kit, ARTIFACT, USE, {}, source="source")
"""


@pytest.mark.parametrize("when", ["before the rename", "while writing"])
def test_killed_writer_leaves_no_entry(cache, kit, when):
    writer = in_python(_DIE, cache.root, kit.root, when)
    assert writer.wait(60) == -9, writer.stderr.read()
    assert cache.lookup(KEY, kit) is None
    assert list(cache.entries()) == []
    [draft] = leftovers(cache)
    stored(cache, kit, "cd" * 20)
    assert leftovers(cache) == [draft]  # may belong to a living writer
    long_ago = time.time() - 3 * 24 * 3600
    os.utime(draft, (long_ago, long_ago))
    assert stored(cache, kit).path is not None
    assert leftovers(cache) == []


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_unwritable_cache_is_usable(cache, kit, monkeypatch, number):
    there = stored(cache, kit)

    def refuse(*args, **options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "mkdir", refuse)
    monkeypatch.setattr(os, "rename", refuse)
    assert cache.lookup(KEY, kit) == there
    entry = stored(cache, kit, "cd" * 20)
    assert entry.path is None
    assert (entry.cubin, entry.source) == (b"cubin", "source")
    assert cache.lookup("cd" * 20, kit) is None


def test_other_errors_of_the_file_system_are_not_hidden(cache, kit, monkeypatch):
    def refuse(*args):
        raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(OSError, match="broken disk"):
        stored(cache, kit)
    assert leftovers(cache) == []


def test_copy_list_and_clear(cache, kit, tmp_path, capsys):
    stored(cache, kit)
    stored(cache, versioned(kit, "13.5.37"))
    root, away = ["cache", "--root", str(cache.root)], str(tmp_path / "away")
    assert main([*root, "export", away]) == 0
    assert main([*root, "export", away]) == 0
    assert [e.toolset for e in KernelCache(away).entries()] == [e.toolset for e in cache.entries()]
    assert main([*root, "list"]) == 0
    assert main([*root, "clear"]) == 0
    assert list(cache.entries()) == []
    assert main([*root, "import", away]) == 0
    assert len(list(cache.entries())) == 2
    out = capsys.readouterr().out
    assert "2 kernels copied" in out and "0 kernels copied" in out and "2 were there already" in out
    assert "32 registers, 3 instructions" in out
    assert "2 kernels removed" in out
    assert main([*root, "import", str(tmp_path / "nowhere")]) == 1


@needs_cutile
def test_build_compiles_once(cache, monkeypatch):
    first = toolchain.build(SHIFT, "shift", SHIFT_PARAMS, symbol="shift", arch="sm_90", cache=cache)
    assert first.source == SHIFT
    assert first.resources.classes["LDG.E.128"] == 2
    assert first.sass.startswith("shift:\n")
    assert first.meta["arch"] == "sm_90" and first.meta["toolkit"] == toolchain.find().name
    monkeypatch.setattr(builder, "compile_source", lambda *a, **k: pytest.fail("compiled again"))
    assert toolchain.build(SHIFT, "shift", SHIFT_PARAMS, symbol="shift", arch="sm_90", cache=cache) == first


@needs_cutile
def test_entry_from_a_machine_without_disassembler_is_completed(cache, monkeypatch):
    with monkeypatch.context() as without:
        without.setattr(builder, "examine", lambda cubin, kit, symbol: (toolchain.inspect(cubin, kit), None))
        first = toolchain.build(SHIFT, "shift", SHIFT_PARAMS, symbol="shift", arch="sm_90", cache=cache)
    assert first.sass is None
    monkeypatch.setattr(builder, "compile_source", lambda *a, **k: pytest.fail("compiled again"))
    second = toolchain.build(SHIFT, "shift", SHIFT_PARAMS, symbol="shift", arch="sm_90", cache=cache)
    assert second.cubin == first.cubin and second.sass.startswith("shift:")
    assert cache.lookup(first.request_key, toolchain.find()) == second


# What a machine without toolkit runs: -S hides all installed packages, so there is only the standard library.
_ELSEWHERE = """
import sys
from stencil_dsl import toolchain
from stencil_dsl.errors import ToolchainError
SHIFT, arch, toolkit = open(sys.argv[1]).read(), sys.argv[2], sys.argv[3] or None
PARAMS = (
    toolchain.ArrayParam("float64", (64, 65, 256), (65 * 256, 256, 1)),
    toolchain.ArrayParam("float64", (64, 64, 256), (64 * 256, 256, 1)),
)
try:
    entry = toolchain.build(SHIFT, "shift", PARAMS, symbol="shift", arch=arch, toolkit=toolkit)
    print("hit", entry.resources.registers, len(entry.cubin))
except ToolchainError as error:
    print("miss", error)
"""


@needs_cutile
def test_cache_is_carried_to_a_machine_without_toolkit(cache, tmp_path):
    entry = toolchain.build(SHIFT, "shift", SHIFT_PARAMS, symbol="shift", arch="sm_90", cache=cache)
    away = tmp_path / "on another machine"
    shutil.move(cache.root, away)
    (tmp_path / "source.py").write_text(SHIFT)

    def there(arch, toolkit=""):
        process = in_python(
            _ELSEWHERE,
            tmp_path / "source.py",
            arch,
            toolkit,
            flags=("-S",),
            STENCIL_DSL_CACHE=str(away),
            STENCIL_DSL_DATA=str(tmp_path / "data"),
            PATH="/bin:/usr/bin",
        )
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        return out

    hit = f"hit {entry.resources.registers} {len(entry.cubin)}\n"
    assert there("sm_90") == hit
    assert there("sm_90", toolchain.find().release) == hit
    assert "tools 13.1" in there("sm_90", "13.1")

    missed = there("sm_100")
    assert missed.startswith("miss kernel 'shift' for sm_100 is not in the cache")
    assert "cuda.tile is not installed here" in missed
    assert "python -m stencil_dsl.toolchain cache export FOLDER" in missed
    [wanted] = (away / "wanted").glob("shift-sm_100-*.json")
    assert str(wanted) in missed

    # the request goes back to where compiling is possible, and its result comes here
    back = KernelCache(away)
    builder.build_request(json.loads(wanted.read_text()), cache=back)
    assert there("sm_100").startswith("hit ")


CHECKED = SHIFT.replace(", check_bounds=False", "")


def refuse(cache, kit, source=CHECKED, **options):
    with pytest.raises(ToolchainError) as caught:
        toolchain.build(
            source, "shift", SHIFT_PARAMS, symbol="shift", arch="sm_90", toolkit=kit, cache=cache, **options
        )
    return caught.value


@needs_cutile
def test_a_refusal_is_carried_to_a_machine_without_toolkit(cache, kit, tmp_path, monkeypatch):
    tool, frontend = refuse(cache, kit), refuse(cache, kit, SHIFT)
    assert (tool.tool, tool.returncode) == ("tileiras", 9) and "requires tileiras 13.4" in str(frontend)
    away = KernelCache(tmp_path / "away")
    assert cache.copy_to(away) == (0, 0)
    monkeypatch.setattr(cutile_adapter, "available", lambda: False)
    for name in ("13.4", None):
        again = refuse(away, name)
        assert (str(again), again.tool, again.returncode) == (str(tool), "tileiras", 9)
        assert str(refuse(away, name, SHIFT)) == str(frontend)
    assert "is not in the cache" in str(refuse(away, "13.5"))


@needs_cutile
def test_a_kept_refusal_names_no_folder_of_this_machine(cache, tmp_path, monkeypatch):
    """It is carried along with kernels, and what it says lands in records."""
    monkeypatch.setenv("STENCIL_DSL_DATA", str(tmp_path))
    at_home = toolchain.open_toolkit(fake_toolkit(tmp_path / "toolkits/13.4"))
    assert str(tmp_path) in str(refuse(cache, at_home))
    kept = [path.read_text() for path in cache.root.rglob("*.refused.json")]
    assert kept and all("<data>/toolkits/13.4" in text and str(tmp_path) not in text for text in kept)


@needs_cutile
def test_a_tool_that_ran_out_of_time_refused_nothing(cache, tmp_path, monkeypatch):
    slow = toolchain.open_toolkit(fake_toolkit(tmp_path / "slow", body="sleep 20"))
    assert "time limit" in str(refuse(cache, slow, timeout=0.2))
    monkeypatch.setattr(cutile_adapter, "available", lambda: False)
    assert "is not in the cache" in str(refuse(cache, "13.4"))


def test_a_kernel_takes_the_place_of_a_refusal(cache, kit):
    cache.refuse(KEY, kit, ToolchainError("no"))
    assert str(cache.refusal(KEY)) == "no"
    stored(cache, kit)
    assert cache.refusal(KEY) is None and cache.lookup(KEY, "13.4") is not None


@needs_cutile
def test_command_line_builds_requests(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("STENCIL_DSL_CACHE", str(tmp_path / "cache"))
    request = toolchain.cache.describe_request(SHIFT, "shift", SHIFT_PARAMS, "shift", "sm_90", None)
    file = tmp_path / "request.json"
    file.write_text(json.dumps(request))
    assert main(["build", str(file)]) == 0
    assert "shift: " in capsys.readouterr().out
    assert len(list(KernelCache().entries())) == 1
    assert main(["build", str(tmp_path / "nothing.json")]) == 1


def test_default_root(monkeypatch, tmp_path):
    monkeypatch.setenv("STENCIL_DSL_CACHE", str(tmp_path / "named"))
    assert KernelCache().root == tmp_path / "named"
    monkeypatch.delenv("STENCIL_DSL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert KernelCache().root == tmp_path / "xdg/stencil-dsl"


def test_miss_message_without_any_folder(cache, monkeypatch):
    def refuse(*args, **options):
        raise OSError(errno.EROFS, "read-only")

    monkeypatch.setattr("stencil_dsl.toolchain.cutile_adapter.available", lambda: False)
    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(ToolchainError, match="run the same program where a toolkit is installed"):
        toolchain.build(SHIFT, "shift", SHIFT_PARAMS, symbol="shift", arch="sm_90", cache=cache)


def test_a_cubin_is_a_file_wherever_its_entry_lives(cache, kit):
    entry = stored(cache, kit)
    with cubin_file(entry) as file:
        assert file == entry.path / "kernel.cubin" and file.read_bytes() == b"cubin"
    assert file.exists()
    with cubin_file(dataclasses.replace(entry, path=None)) as file:
        assert file.read_bytes() == b"cubin"
    assert not file.exists()
