"""Finding, composing and installing toolkits, with stand-ins for the tools."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
from toolchain_cases import SHIFT, SHIFT_PARAMS, fake_tool, fake_toolkit, fake_wheel, needs_cutile

from stencil_dsl import toolchain
from stencil_dsl.errors import ToolchainError
from stencil_dsl.toolchain import ToolError, discover, installer, kit, versions


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    """No test reads or writes the user's folders, or sees toolkits of this machine outside the wheels."""
    monkeypatch.setenv("STENCIL_DSL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("STENCIL_DSL_DATA", str(tmp_path / "data"))
    for name in ("STENCIL_DSL_TOOLKIT", "CUDA_HOME"):
        monkeypatch.delenv(name, raising=False)
    toolchain.clear_found()
    yield
    toolchain.clear_found()


@pytest.fixture
def wheels(monkeypatch):
    """Pretend that these wheels are installed; a function to set them."""

    def set_them(**installed):
        names = {f"nvidia-{name.replace('_', '-')}": version for name, version in installed.items()}
        monkeypatch.setattr(discover, "package_version", names.get)

    return set_them


def test_public_names_are_no_modules():
    for name in toolchain.__all__:
        assert not isinstance(getattr(toolchain, name), types.ModuleType), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = toolchain.nothing


def test_importing_costs_nothing():
    code = "import sys, stencil_dsl.toolchain as t; t.KernelCache, t.find, t.build_many; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"cuda", "cuda.tile", "elftools", "numpy", "platformdirs"} & set(done.stdout.split())


def test_mismatched_wheels_are_refused_with_the_remedy(wheels):
    wheels(cuda_tileiras="13.4.92", cuda_nvcc="13.5.37", nvvm="13.5.37")
    with pytest.raises(ToolchainError) as caught:
        toolchain.find()
    assert "not one set (nvidia-cuda-tileiras 13.4.92, nvidia-cuda-nvcc 13.5.37, nvidia-nvvm 13.5.37)" in str(
        caught.value
    )
    assert "pip install nvidia-cuda-tileiras==13.4.92 nvidia-cuda-nvcc==13.4.92 nvidia-nvvm==13.4.92" in str(
        caught.value
    )
    assert caught.value.versions["nvidia-nvvm"] == "13.5.37"


def test_the_remedy_knows_that_releases_are_not_uniform(wheels):
    wheels(cuda_tileiras="13.3.36", cuda_nvcc="13.4.92", nvvm="13.3.73")
    with pytest.raises(ToolchainError, match=r"nvidia-cuda-nvcc==13\.3\.73 nvidia-nvvm==13\.3\.73"):
        toolchain.find()


def test_missing_companion_is_refused(wheels):
    wheels(cuda_tileiras="13.5.37", cuda_nvcc="13.5.37")
    with pytest.raises(ToolchainError, match="nvidia-nvvm missing"):
        toolchain.find()


def test_companions_of_one_release_are_accepted():
    discover.check_wheels({"nvidia-cuda-tileiras": "13.3.36", "nvidia-cuda-nvcc": "13.3.73", "nvidia-nvvm": "13.3.73"})


def test_default_order(wheels, tmp_path, monkeypatch):
    on_path, at_home, named = (fake_toolkit(tmp_path / n) for n in ("on_path", "at_home", "named"))
    wheels()
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    with pytest.raises(ToolchainError, match=r"pip install 'stencil-dsl\[toolchain\]'"):
        toolchain.find()
    monkeypatch.setenv("CUDA_HOME", str(at_home))
    assert toolchain.find().root == at_home
    monkeypatch.setenv("PATH", f"{on_path / 'bin'}:/bin:/usr/bin")
    assert toolchain.find().root == on_path
    monkeypatch.setenv("STENCIL_DSL_TOOLKIT", str(named))
    assert toolchain.find().root == named
    assert toolchain.find(at_home).root == at_home


@needs_cutile
def test_wheels_come_before_path(tmp_path, monkeypatch):
    fake_toolkit(tmp_path / "on_path")
    monkeypatch.setenv("PATH", f"{tmp_path / 'on_path/bin'}:{os.environ['PATH']}")
    found = toolchain.find()
    assert found.root.parts[-2:] == ("nvidia", "cu13")
    assert found.versions.tileiras == versions.package_version("nvidia-cuda-tileiras")


def test_side_by_side_toolkits_are_found_by_release_and_version(wheels, tmp_path):
    wheels()
    for release, version in [("13.3", "13.3.36"), ("13.4", "13.4.92")]:
        fake_toolkit(tmp_path / "data/toolkits" / release, version)
    assert toolchain.find("13.3").versions.tileiras == "13.3.36"
    assert toolchain.find("13.4.92").versions.ptxas == "13.4.92"
    with pytest.raises(ToolchainError, match=r"not installed \(available: 13.3, 13.4\).*install 13.2"):
        toolchain.find("13.2")
    with pytest.raises(ToolchainError, match="13.4.91 is not installed"):
        toolchain.find("13.4.91")
    with pytest.raises(ToolchainError, match="names no toolkit; allowed are"):
        toolchain.find("newest")


def test_incomplete_folder(tmp_path):
    (fake_toolkit(tmp_path / "kit") / "lib/libnvvm.so.4").unlink()
    with pytest.raises(ToolchainError, match="libnvvm is missing"):
        toolchain.find(tmp_path / "kit")
    with pytest.raises(ToolchainError, match="bin/tileiras is missing"):
        toolchain.find(tmp_path)


def test_versions_come_from_the_files(tmp_path):
    root = fake_toolkit(tmp_path / "kit", "13.4.92")
    fake_tool(root / "bin/ptxas", "13.5.1")
    (root / "lib/libnvvm.so.4").write_bytes(b"no stamp in here")
    found = toolchain.open_toolkit(root)
    assert found.name == "13.4"
    tools = found.versions
    assert (tools.tileiras, tools.nvvm, tools.ptxas) == ("13.4.92", "unknown", "13.5.1")


def test_key_follows_the_content_not_only_the_version(tmp_path):
    root = fake_toolkit(tmp_path / "kit")
    first = toolchain.open_toolkit(root)
    assert toolchain.open_toolkit(root).key == first.key
    with (root / "lib/libnvvm.so.4").open("ab") as file:
        file.write(b"patched")
    second = toolchain.open_toolkit(root)
    assert second.versions == first.versions
    assert second.key != first.key


def test_tool_facts_are_remembered_on_disk(tmp_path, monkeypatch):
    root = fake_toolkit(tmp_path / "kit")
    key = toolchain.open_toolkit(root).key
    monkeypatch.setattr(versions, "_memory", {})
    monkeypatch.setattr(versions, "_read_program", lambda path: pytest.fail("read again"))
    assert toolchain.open_toolkit(root).key == key


def test_damaged_memory_of_tool_facts_is_harmless(tmp_path, monkeypatch):
    root = fake_toolkit(tmp_path / "kit")
    key = toolchain.open_toolkit(root).key
    (tmp_path / "cache/tools.json").write_text("{")
    monkeypatch.setattr(versions, "_memory", {})
    assert toolchain.open_toolkit(root).key == key


@pytest.mark.parametrize(
    "version, listed, bytecode",
    [
        ("13.2.51", (), "13.2"),
        ("13.3.36", ("13.1", "13.2", "13.3"), "13.3"),
        ("13.5.37", ("13.3", "13.4", "13.5"), "13.4"),
        ("unknown", (), "13.4"),
    ],
)
def test_bytecode_version(version, listed, bytecode):
    assert kit.bytecode_for(version, listed) == bytecode


@needs_cutile
def test_the_newest_bytecode_is_what_the_frontend_knows():
    from stencil_dsl.toolchain.cutile_adapter import to_bytecode

    arguments = dict(symbol="shift", arch="sm_90")
    head = to_bytecode(SHIFT, "shift", SHIFT_PARAMS, bytecode_version=kit.NEWEST_BYTECODE, **arguments)[0]
    assert head[8:10] == bytes(versions.parts(kit.NEWEST_BYTECODE))
    # A version that cuda.tile holds back is let in by tile libraries, for the whole process: ask for one beyond it.
    with pytest.raises(ToolchainError, match="bytecode version"):
        to_bytecode(SHIFT, "shift", SHIFT_PARAMS, bytecode_version="13.9", **arguments)


def test_environment_hides_other_toolkits(tmp_path, monkeypatch):
    for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"):
        monkeypatch.setenv(name, "/elsewhere")
    env = toolchain.open_toolkit(fake_toolkit(tmp_path / "kit")).environment(tmp_path)
    assert env["CUDA_HOME"] == str(tmp_path / "kit")
    assert "CUDA_PATH" not in env and "CUDA_ROOT" not in env
    assert env["TMPDIR"] == str(tmp_path)


def test_compose_links_the_tools_of_several_releases(tmp_path):
    old = toolchain.open_toolkit(fake_toolkit(tmp_path / "old", "13.3.36"))
    new = toolchain.open_toolkit(fake_toolkit(tmp_path / "new", "13.5.37"))
    mixed = toolchain.compose(new, nvvm=old)
    assert mixed.name == "13.5+nvvm-13.3"
    assert mixed.versions.as_dict() | {"cuda-tile": ""} == {
        "cuda-tile": "",
        "tileiras": "13.5.37",
        "nvvm": "13.3.36",
        "ptxas": "13.5.37",
    }
    assert mixed.nvvm.resolve() == old.nvvm and mixed.ptxas.resolve() == new.ptxas
    assert mixed.key not in (old.key, new.key)
    assert toolchain.compose(new, nvvm=old).root == mixed.root
    assert toolchain.compose(new, ptxas=old, nvvm=old).name == "13.5+nvvm-13.3+ptxas-13.3"
    assert toolchain.compose(new) == new


def test_composition_by_name(wheels, tmp_path):
    wheels()
    for release in ("13.3", "13.4"):
        fake_toolkit(tmp_path / "data/toolkits" / release, release + ".1")
    found = toolchain.find("13.4+ptxas-13.3")
    assert (found.versions.tileiras, found.versions.ptxas) == ("13.4.1", "13.3.1")
    for wrong in ("13.4+cicc-13.3", "13.4+nvvm", "13.4+nvvm-13.3+nvvm-13.4"):
        with pytest.raises(ToolchainError, match="names no composition"):
            toolchain.find(wrong)


@needs_cutile
def test_a_pair_that_does_not_work_fails_with_the_tools_words(tmp_path):
    """A libnvvm that is none: tileiras says so, and so do we."""
    whole = toolchain.find()
    broken = toolchain.open_toolkit(fake_toolkit(tmp_path / "broken"))
    with pytest.raises(ToolError) as caught:
        toolchain.compile_source(
            SHIFT,
            "shift",
            SHIFT_PARAMS,
            symbol="shift",
            arch="sm_90",
            toolkit=toolchain.compose(whole, nvvm=broken),
        )
    assert caught.value.returncode == 5
    assert "failed to compile Tile IR program" in caught.value.stderr
    assert "different releases" in str(caught.value)
    assert caught.value.versions["nvvm"] == "13.4.92"


def _release_wheels(folder: Path, version: str) -> Path:
    root = fake_toolkit(folder / "files", version)
    place = "nvidia/cu13/"
    files = {
        "nvidia-cuda-tileiras": {"bin/tileiras": (root / "bin/tileiras").read_bytes()},
        "nvidia-cuda-nvcc": {"bin/ptxas": (root / "bin/ptxas").read_bytes(), "bin/nvcc": b"big"},
        "nvidia-nvvm": {"lib/libnvvm.so.4": (root / "lib/libnvvm.so.4").read_bytes(), "include/nvvm.h": b"/"},
    }
    for name, content in files.items():
        fake_wheel(folder / "wheels", name, version, {place + k: v for k, v in content.items()})
    return folder / "wheels"


def test_install_from_an_index(wheels, tmp_path, monkeypatch):
    wheels()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(_release_wheels(tmp_path, "13.4.92")))
    said: list[str] = []
    installed = toolchain.install("13.4", said.append)
    assert installed.versions.tileiras == "13.4.92"
    assert toolchain.find("13.4").root == tmp_path / "data/toolkits/13.4"
    files = {str(p.relative_to(installed.root)) for p in installed.root.rglob("*") if p.is_file()}
    assert files == {"bin/tileiras", "bin/ptxas", "lib/libnvvm.so.4"}
    assert said[0] == "13.4: downloading nvidia-cuda-tileiras 13.4.92"
    assert "installed in" in said[-1]
    toolchain.install("13.4", said.append)
    assert "already installed" in said[-1]
    assert [p.name for p in (tmp_path / "data/toolkits").iterdir()] == ["13.4"]


def test_install_offline_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(ToolchainError, match="Is this machine offline.*STENCIL_DSL_DATA") as caught:
        toolchain.install("13.4", lambda line: None)
    assert "nvidia-cuda-tileiras==13.4.92" in caught.value.stderr
    assert list((tmp_path / "data/toolkits").iterdir()) == []


def test_install_refuses_what_is_no_release():
    with pytest.raises(ToolchainError, match="allowed are 13.2, 13.3, 13.4, 13.5"):
        toolchain.install("12.8")


def test_a_wheel_without_tools_is_refused(tmp_path):
    wheel = fake_wheel(tmp_path, "other", "1.0", {"other/__init__.py": b""})
    with pytest.raises(ToolchainError, match="holds no compiler tool"):
        installer.unpack(wheel, tmp_path / "out")


def test_command_line_lists_and_shows(wheels, tmp_path, capsys, monkeypatch):
    from stencil_dsl.toolchain.__main__ import main

    wheels()
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    fake_toolkit(tmp_path / "data/toolkits/13.4", "13.4.92")
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert "no CUDA tile toolkit" in out and "tileiras 13.4.92" in out
    assert main(["show", "13.4"]) == 0
    assert "bytecode      13.3" in capsys.readouterr().out
    assert main(["show", "13.9"]) == 1
    assert "error: toolkit 13.9 is not installed" in capsys.readouterr().err
