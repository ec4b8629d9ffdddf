"""Descriptions of tile libraries: layouts, rules, names, bytecode."""

from __future__ import annotations

import pickle
import re

import pytest
from tilelib_cases import WARP_SUM, examples, needs_libraries, relu

from stencil_dsl import toolchain
from stencil_dsl.tilelib import (
    Code,
    Export,
    Layout,
    Parameter,
    TileLibrary,
    TileLibraryError,
    make_library,
    tile_export,
)
from stencil_dsl.tilelib.layouts import elementwise, warpwise


def parameter(name="x", access="in", size=128, fragmap=None, dtype="float32") -> Parameter:
    return Parameter(name, dtype, access, (size,), fragmap or elementwise(size))


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        (elementwise(128), "(128, 1, 1):(1, 0, 0)"),
        (elementwise(128, 4), "(32, 1, 4):(4, 0, 1)"),
        (warpwise(128), "(4, 32, 1):(32, 1, 0)"),
        (warpwise(512, 2), "(8, 32, 2):(64, 2, 1)"),
        (Layout((4, (16, 2), 1), (2, (0, 1), 0)), "(4, (16, 2), 1):(2, (0, 1), 0)"),
    ],
)
def test_layouts_print_and_parse(layout, text):
    assert str(layout) == text
    assert Layout.parse(text) == layout


def test_layout_offsets_run_colexicographically():
    halo = Layout((4, (16, 2), 1), (2, (0, 1), 0))
    assert halo.sizes() == (4, 32, 1)
    assert [halo.offset(3, lane, 0) for lane in (0, 15, 16, 31)] == [6, 6, 7, 7]
    assert warpwise(128, 2).offsets()[:3] == [0, 64, 2]


@pytest.mark.parametrize("text", ["", "(1):(1", "(a):(b)", "(1, 2):(1)", "((1)):(1)", "(0):(1)", "1:1"])
def test_layouts_that_are_none(text):
    with pytest.raises(TileLibraryError):
        Layout.parse(text)


def test_abi_of_parameters():
    run = elementwise(128, 4)
    parameters = (
        parameter("a"),
        parameter("b", dtype="int64"),
        parameter("c", "inout"),
        parameter("d", "out"),
    )
    export = Export("f", "f_impl", parameters).check()
    assert export.prototype() == "define void @f_impl(float, i64, ptr, ptr)"
    wide = Export("g", "g_impl", (parameter("a", fragmap=run), parameter("o", "out", fragmap=run))).check()
    assert wide.prototype() == "define void @g_impl(ptr, ptr)"
    assert (wide.invocations, wide.participants, wide.parameters[0].footprint) == (32, 1, 4)


OUT = parameter("o", "out")
BROKEN = {
    "no parameters": (Export("f", "f_impl", ()), "at least one output"),
    "no output": (Export("f", "f_impl", (parameter(),)), "has no output"),
    "split outputs": (
        Export("f", "f_impl", (parameter("a", "inout"), parameter("b"), OUT)),
        r"one run, 'b' \(in\) stands between",
    ),
    "two footprints": (
        Export("f", "f_impl", (parameter("a", "inout", fragmap=elementwise(128, 4)), parameter("bias"))),
        r"'a' \(footprint 4\) 32 and 'bias' \(footprint 1\) 128",
    ),
    "names twice": (Export("f", "f_impl", (parameter("o"), OUT)), "two parameters named 'o'"),
    "bad name": (Export("1f", "f_impl", (OUT,)), "no plain identifier"),
    "reserved symbol": (Export("f", "__nv_f", (OUT,)), "compiler's own name"),
    "dtype": (Export("f", "f_impl", (parameter("o", "out", dtype="bfloat16"),)), "dtype 'bfloat16' is none of"),
    "access": (Export("f", "f_impl", (parameter("o", "write"),)), "in, out or inout"),
    "sync": (Export("f", "f_impl", (OUT,), "grid"), "none, warp, warpgroup or cta"),
    "participants": (Export("f", "f_impl", (OUT,), "warp"), "means 32 participants"),
    "modes": (
        Export("f", "f_impl", (parameter("o", "out", fragmap=Layout((128, 1), (1, 0))),)),
        "three modes",
    ),
    "outside": (
        Export("f", "f_impl", (parameter("o", "out", size=64, fragmap=elementwise(128)),)),
        "reaches element 127 of a tile of 64",
    ),
    "holes": (
        Export("f", "f_impl", (parameter("o", "out", fragmap=elementwise(64)),)),
        "element 64 of the 128 to nobody",
    ),
    "shared output": (
        Export("f", "f_impl", (parameter("o", "out", 2, Layout((1, 32, 1), (0, 1, 0))),), "warp"),
        "reaches element 31",
    ),
    "written twice": (
        Export("f", "f_impl", (parameter("o", "out", 2, Layout((1, (16, 2), 1), (0, (0, 1), 0))),), "warp"),
        "one element of an output to several threads",
    ),
    "extents": (
        Export("f", "f_impl", (Parameter("o", "float32", "out", (96,), elementwise(96)),)),
        "powers of two",
    ),
}


@pytest.mark.parametrize(("export", "message"), BROKEN.values(), ids=list(BROKEN))
def test_broken_rules_name_the_parameter(export, message):
    with pytest.raises(TileLibraryError, match=message):
        export.check()


def test_reads_may_be_shared_between_lanes():
    halo = Parameter("h", "float64", "in", (8,), Layout((4, (16, 2), 1), (2, (0, 1), 0)))
    out = Parameter("o", "float64", "out", (128,), warpwise(128))
    assert Export("f", "f_impl", (halo, out), "warp").check().invocations == 4


def library_of(text: str, **change) -> TileLibrary:
    facts = {"sync": "warp", "dtype": "float32", "tile_shape": 128, "nvvm": text} | change
    return make_library("one", tile_export(lambda x: None, name="warp_sum", **facts))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("@warp_sum_impl", "@warp_total", "does not define 'warp_sum_impl' .*expected define void @warp_sum_impl"),
        ("float %x, ptr %out) {", "ptr %x, ptr %out) {", "its description means `define void @warp_sum_impl"),
        ("float %x, ptr %out) {", "float %x) {", "its description means"),
        ("define void", "define internal void", "its description means"),
        ("define void", "define float", "its description means"),
        ("}", "", "no line `}` ends"),
        ("declare", "decline", "NVVM IR of a device function holds"),
    ],
)
def test_code_that_does_not_match_its_description(old, new, message):
    assert library_of(WARP_SUM).exports[0].sync == "warp"
    with pytest.raises(TileLibraryError, match=message):
        library_of(WARP_SUM.replace(old, new, 1))


def test_libraries_are_of_one_language_and_have_unique_names():
    cuda = tile_export(lambda x: x, tile_shape=128, name="c", cuda="// c_impl")
    with pytest.raises(TileLibraryError, match="cuda and nvvm"):
        make_library("mixed", relu, cuda)
    with pytest.raises(TileLibraryError, match="two exports of name 'relu'"):
        make_library("twice", relu, relu)
    with pytest.raises(TileLibraryError, match="no exports"):
        TileLibrary("empty", (), (Code("nvvm", ""),))
    with pytest.raises(TileLibraryError, match="not both"):
        tile_export(lambda x: x, nvvm="", cuda="")


def test_one_symbol_a_size():
    @tile_export(sync="warp")
    def twice(x):
        return 2.0 * x

    library = make_library("sizes", twice, sizes=(64, 256))
    assert [e.name for e in library.exports] == ["twice__N64", "twice__N256"]
    assert [e.symbol for e in library.exports] == ["twice_impl__N64", "twice_impl__N256"]
    assert library.export("twice__N256").invocations == 8
    with pytest.raises(TileLibraryError, match="has no tile_shape: a static library holds one symbol a size"):
        make_library("sizes", twice)
    with pytest.raises(TileLibraryError, match=r"multiple of 32 times the footprint \(32\)"):
        make_library("sizes", twice, sizes=(16,))
    with pytest.raises(TileLibraryError, match="is for tiles"):
        relu.export(256)


def test_digest_goes_by_content():
    first, again = examples(), examples()
    assert first.digest == again.digest and first == again
    assert first.digest != make_library("examples", relu).digest
    other = TileLibrary.from_json(first.to_json())
    assert other == first and other.digest == first.digest
    assert pickle.loads(pickle.dumps(first)) == first


def test_pointers_carry_types_below_sm_100():
    library = examples()
    old, new = library.nvvm("sm_90"), library.nvvm("sm_100")
    assert "define void @warp_sum_impl(float %x, float* %out)" in old
    assert "store float %t1, float* %out" in old and not re.search(r"\bptr\b", old)
    assert "store float %t1, ptr %out" in new
    with pytest.raises(TileLibraryError, match="no architecture"):
        library.nvvm("hopper")


def test_bytecode_header_is_13_5_with_the_preview_bit():
    library = examples()
    for module in (library.interface(), library.implementation()):
        assert module[:12] == b"\x7fTileIR\0\x0d\x05\x01\x00"
        assert module[-1] == 0


@needs_libraries
def test_bytecode_reads_back():
    """What tileirdisasm makes of both modules, types shortened."""
    half = Layout((4, (16, 2), 1), (2, (0, 1), 0))
    parameters = (
        Parameter("x", "float64", "in", (1, 1, 256), warpwise(256, 2)),
        Parameter("n", "int32", "in", (128,), warpwise(128)),
        Parameter("h", "float64", "in", (1, 1, 8), half),
        Parameter("acc", "float64", "inout", (256,), warpwise(256, 2)),
        Parameter("o", "float16", "out", (2, 64), warpwise(128)),
    )
    exports = [Export("step", "step_impl", parameters, "warp", ("sm_90", "sm_120")).check()]
    exports.append(Export("plain", "plain_impl", (parameter("o", "out"),)).check())
    from stencil_dsl.tilelib.bytecode import implementation, interface

    kit = toolchain.find()

    def read(module: bytes) -> list[str]:
        text = toolchain.tile_ir(module, kit).replace("#cuda_tile<preview$access<", "<").replace(">>}", ">}")
        text = text.replace("cuda_tile.preview$access = ", "").replace("preview$", "")
        return [line.strip() for line in text.splitlines() if line.strip()]

    assert read(interface(exports)) == [
        "func extern @step(%arg0: tile<1x1x256xf64> {<in>}, %arg1: tile<128xi32> {<in>},"
        " %arg2: tile<1x1x8xf64> {<in>}, %arg3: tile<256xf64> {<inout>}, %arg4: tile<2x64xf16> {<out>})"
        " -> (tile<256xf64>, tile<2x64xf16>)",
        "func extern @plain(%arg0: tile<128xf32> {<out>}) -> tile<128xf32>",
    ]
    wide = "fragment<2xf64, local, mem_layout = <(2):(1)>, fragmap = <(4, 32, 2):(64, 2, 1)>>"
    one = "mem_layout = <():()>, fragmap = <(4, 32, 1):(32, 1, 0)>>"
    assert read(implementation(exports)) == [
        f"extern_impl @step_impl implements @step (%arg0: {wide} {{<in>}},"
        f" %arg1: fragment<1xi32, local, {one} {{<in>}},"
        " %arg2: fragment<1xf64, local, mem_layout = <():()>, fragmap = <(4, (16, 2), 1):(2, (0, 1), 0)>> {<in>},"
        f" %arg3: {wide} {{<inout>}}, %arg4: fragment<1xf16, local, {one.replace('():()', '(1):(1)')} {{<out>}})"
        ' synchronization = #cuda_tile<synchronization<warp>> arch = ["sm_90", "sm_120"]',
        "extern_impl @plain_impl implements @plain (%arg0: fragment<1xf32, local, mem_layout = <(1):(1)>,"
        " fragmap = <(128, 1, 1):(1, 0, 0)>> {<out>})",
    ]
