"""What nvcc makes of the generated CUDA texts: they compile, and hold the instructions their description promises.

All texts of a variant are compiled as one file, because starting nvcc is most of the time.
"""

from __future__ import annotations

import pytest

from repro.baselines import arr, ceilings, cubins, trans
from repro.baselines.__main__ import main
from repro.baselines.base import configs, generator
from repro.baselines.model import model
from stencil_dsl import toolchain
from stencil_dsl.toolchain.disasm import find_disassembler

pytestmark = pytest.mark.skipif(cubins.find_nvcc() is None, reason="needs nvcc")

SHAPE = (256, 256, 256)


@pytest.fixture(scope="module", params=["arr", "stream", "trans"])
def compiled(request):
    """Variant, its baselines by row, and the resources of their kernels."""
    rows = {
        "arr": ("star-7", "box-27", "iso3dfd", "cond", "cns"),
        "stream": ("star-7", "box-27", "iso3dfd"),
        "trans": ("star-7", "star-25", "box-27"),
    }
    made = {row: generator(request.param)(row, SHAPE) for row in rows[request.param]}
    cubin = cubins.compile_cuda("\n".join(b.source for b in made.values()), "sm_90")
    return request.param, made, {row: toolchain.inspect(cubin, symbol=b.kernel_name) for row, b in made.items()}


def test_registers_and_spills(compiled):
    variant, made, resources = compiled
    for row, found in resources.items():
        limit = 65536 // (32 * 16) if variant == "trans" else 128
        assert 0 < found.registers <= limit, row
        if find_disassembler() is not None and row in ("star-7", "box-27"):
            assert found.spill_stores == 0, row


@pytest.mark.skipif(find_disassembler() is None, reason="needs nvdisasm")
def test_instructions(compiled):
    variant, made, resources = compiled
    for row, found in resources.items():
        points = 1 if variant != "trans" else 16  # outputs a thread, in straight code
        if variant == "arr":
            assert found.count("LDG") == len(model(row).loads()), row
            assert found.count("SHFL") == 0
        elif variant == "stream":
            assert found.classes["LDG.E.128"] > 0 and found.classes["STG.E.128"] > 0, row
            # Four outputs a trip, which share loads: fewer than one load an access.
            cells = made[row].config["p"] * made[row].config["u"]
            in_loop = sum(n for name, n in found.loop_classes.items() if name.startswith("LDG"))
            assert in_loop < cells * len(model(row).loads()) / 2, row
        else:
            assert found.count("SHFL") > 0
            assert found.count("STG") == points
            assert found.count("LDG") < points * len(model(row).loads()) / 2, row


def test_cns_is_one_array_kernel_and_five_brick_kernels():
    assert arr.generate("cns", SHAPE).args == (*model("cns").fields, *model("cns").outputs)
    five = trans.generate("cns", SHAPE)
    assert [launch.args[-3:] for launch in five.launches] == [
        (output, "bricks", "near") for output in model("cns").outputs
    ]
    with pytest.raises(ValueError, match="launches 5 kernels"):
        five.kernel_name  # noqa: B018


def test_every_variant_has_its_configurations():
    blocks = [c["b"] for c in configs("arr", "star-7")]
    assert blocks[0] == "8x8x8" and len(set(blocks)) >= 5
    assert len(configs("stream", "star-7")) >= 6
    assert {c["b"] for c in configs("trans", "star-7")} == {"8x8x8", "4x4x32"}
    ids = [generator(v)("cns", SHAPE, c).id for v in ("arr", "stream") for c in configs(v, "cns")]
    assert len(set(ids)) == len(ids)
    assert not any("=" in name or " " in name for name in ids)


def test_cache_serves_machines_without_nvcc(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("STENCIL_DSL_CACHE", str(tmp_path))
    assert main(["--row", "star-7", "--variant", "trans", "--size", "64", "--jobs", "1"]) == 0
    assert "6 of 6" in capsys.readouterr().out
    source = trans.generate("star-7", (64, 64, 64)).source
    made, version = cubins.cubin(source, "sm_90")
    monkeypatch.setattr(cubins, "find_nvcc", lambda: None)
    assert cubins.cubin(source, "sm_90") == (made, version)
    assert cubins.cubin(source + "//", "sm_90") is None


def test_a_text_that_is_no_cuda_is_refused():
    with pytest.raises(RuntimeError, match="nvcc.*failed"):
        cubins.compile_cuda("__global__ void broken( {", "sm_90")


def test_ceilings_compile():
    made = [ceilings.copy(512), ceilings.triad(512), *(make(132) for make in ceilings.ON_CHIP.values())]
    cubin = cubins.compile_cuda("\n".join(c.source for c in made), "sm_90")
    assert set(toolchain.kernels(cubin)) == {c.kernel for c in made}
    l1, fma = (toolchain.inspect(cubin, symbol=f"ceiling_{name}") for name in ("l1", "fma"))
    if find_disassembler() is not None:
        assert l1.loop_classes["LDG.E.128.CONSTANT" if "LDG.E.128.CONSTANT" in l1.loop_classes else "LDG.E.128"] >= 4
        assert fma.loop_classes["DFMA"] >= 8
