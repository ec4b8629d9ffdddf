"""Tile libraries are built, and kernels that call them are compiled; needs tileiras 13.5, no GPU."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import types
from math import exp, log

import numpy as np
import pytest
from tilelib_cases import EXAMPLES_PARAMS, examples, examples_kernel, needs_libraries, relu, scale, warp_sum
from toolchain_cases import SHIFT, SHIFT_PARAMS

from stencil_dsl import toolchain
from stencil_dsl.errors import ToolchainError
from stencil_dsl.tilelib import (
    Code,
    Export,
    Parameter,
    TileLibrary,
    TileLibraryError,
    adapter,
    evaluate,
    make_library,
    tile_export,
)
from stencil_dsl.tilelib.layouts import warpwise
from stencil_dsl.tilelib.nvvm import FunctionBuilder
from stencil_dsl.toolchain import (
    BuildRequest,
    KernelCache,
    assemble,
    build_library,
    build_many,
    compile_source,
    inspect,
)
from stencil_dsl.toolchain.builder import build_request
from stencil_dsl.toolchain.cache import describe_request
from stencil_dsl.toolchain.nvrtc import find_nvrtc
from stencil_dsl.toolchain.process import run_tool

pytestmark = needs_libraries


def compiled(source: str, libraries, arch="sm_90", **options):
    kit = toolchain.find()
    artifact = compile_source(
        source,
        "examples",
        EXAMPLES_PARAMS,
        symbol="examples",
        arch=arch,
        toolkit=kit,
        libraries=libraries,
        **options,
    )
    return artifact, inspect(artifact.cubin, kit)


def test_ordered_calls_wait_for_memory():
    library = examples()
    artifact, use = compiled(examples_kernel(library, pure=False), (library,))
    assert use.count("SHFL") == 5 and use.count("FMNMX") == 1 and use.shared_bytes == 0
    assert use.barriers and use.barriers >= 3
    text = toolchain.tile_ir(artifact.bytecode, toolchain.find())
    assert text.count("preview$call") == 3 and "!cuda_tile.token) -> (!cuda_tile.tile<128xf32>" in text


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_calls_without_effects_need_no_barrier(arch):
    library = examples()
    _, use = compiled(examples_kernel(library, pure=True), (library,), arch)
    assert use.count("SHFL") == 5 and use.barriers == 0 and use.shared_bytes == 0
    assert use.count("CALL") == 0 and use.spill_bytes == 0


def test_other_kernels_stay_as_they_are():
    """Neither their bytecode nor the keys of their requests know that the frontend has been extended."""
    kit = toolchain.find()
    adapter.install()
    artifact = compile_source(SHIFT, "shift", SHIFT_PARAMS, symbol="shift", arch="sm_90", toolkit=kit)
    assert artifact.bytecode[8:11] == bytes([13, 4, 0])
    plain = describe_request(SHIFT, "shift", SHIFT_PARAMS, "shift", "sm_90", None)
    assert "libraries" not in plain
    key = KernelCache.request_key(SHIFT, "shift", SHIFT_PARAMS, "shift", "sm_90", None)
    assert key == KernelCache.request_key(SHIFT, "shift", SHIFT_PARAMS, "shift", "sm_90", None, ())


def test_cache_goes_by_the_library(tmp_path):
    cache, kit = KernelCache(tmp_path), toolchain.find()
    library = examples()

    @tile_export(tile_shape=128, dtype="float32", name="relu")
    def leaky(x):
        return x if x > 0.0 else 0.01 * x

    other = make_library("examples", leaky, scale, warp_sum)
    requests = [
        BuildRequest(
            examples_kernel(lib, True), "examples", EXAMPLES_PARAMS, "examples", "sm_90", kit, libraries=(lib,)
        )
        for lib in (library, other, library)
    ]
    first, second, third = build_many(requests, jobs=1, cache=cache)
    assert not isinstance(first, ToolchainError), first
    assert first.path == third.path != second.path
    assert first.resources.text_hash != second.resources.text_hash
    # A machine without tools finds it by the description alone.
    request = requests[0]
    key = cache.request_key(request.source, "examples", EXAMPLES_PARAMS, "examples", "sm_90", None, (library,))
    assert cache.lookup(key, None).cubin == first.cubin
    keys = {cache.request_key("s", "f", (), "f", "sm_90", None, each) for each in ((), (library,), (other,))}
    assert len(keys) == 3


def test_wanted_requests_carry_their_libraries(tmp_path, monkeypatch):
    library = examples()
    cache = KernelCache(tmp_path)
    monkeypatch.setattr("stencil_dsl.toolchain.cutile_adapter.available", lambda: False)
    with pytest.raises(ToolchainError, match="not in the cache"):
        toolchain.build(
            examples_kernel(library, True),
            "examples",
            EXAMPLES_PARAMS,
            symbol="examples",
            arch="sm_90",
            cache=cache,
            libraries=(library,),
        )
    monkeypatch.undo()
    (wanted,) = (tmp_path / "wanted").iterdir()
    entry = build_request(json.loads(wanted.read_text()), cache=cache)
    assert entry.resources.count("SHFL") == 5


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"relu"', '"gelu"', "no export 'gelu'"),
        ("ct.float32, (128,)", "ct.float32, (64,)", "the export has float32"),
        ("(x, slot), kind", "(x, slot, slot), kind", "inputs has 3 entries for 2"),
    ],
)
def test_frontend_refuses_wrong_calls(old, new, message):
    library = examples()
    source = examples_kernel(library, True)
    assert old in source
    with pytest.raises(ToolchainError, match=message):
        compiled(source.replace(old, new), (library,))


def test_a_library_that_is_not_passed():
    library = examples()
    other = make_library("other", relu)
    with pytest.raises(ToolchainError, match="calls library 'examples.tilelib'.*pass it in libraries="):
        compiled(examples_kernel(library, True), (other,))


def test_kernel_and_export_of_one_name():
    library = examples()
    source = examples_kernel(library, True).replace("def examples(", "def relu(")
    with pytest.raises(ToolchainError, match="kernel 'relu' has the name of an export"):
        compile_source(
            source,
            "relu",
            EXAMPLES_PARAMS,
            symbol="relu",
            arch="sm_90",
            toolkit=toolchain.find(),
            libraries=(library,),
        )


def test_libnvvm_refuses_with_its_words():
    text = "define void @bad_impl(double %x, ptr %out) {\nstore double %y, ptr %out\nret void\n}\n"
    library = make_library("bad", tile_export(lambda x: None, name="bad", tile_shape=32, nvvm=text))
    with pytest.raises(ToolchainError, match="libNVVM refuses the library 'bad' for sm_90") as caught:
        build_library(library, "sm_90", toolchain.find())
    assert "%y" in str(caught.value)


def test_math_comes_from_libdevice():
    @tile_export(tile_shape=128, dtype="float32", name="relu")
    def soft(x):
        return log(1.0 + exp(x))

    library = make_library("examples", soft, scale, warp_sum)
    source = examples_kernel(library, True)
    _, use = compiled(source, (library,))
    assert use.count("CALL") == 0 and use.count("MUFU") >= 1


OPERATIONS = ("add", "sub", "mul", "div", "min", "max", "minnum", "maxnum", "pow")
FUNCTIONS = ("neg", "abs", "sqrt", "floor", "exp", "log", "sin", "cos", "tan", "tanh")


def every_operation(dtype: str) -> TileLibrary:
    """Two inputs; one output for each operation, and one for choices."""
    names = [*OPERATIONS, *FUNCTIONS, "choice"]
    fragmap = warpwise(32)
    parameters = [Parameter(n, dtype, "in", (32,), fragmap) for n in ("a", "b")]
    parameters += [Parameter(f"{n}_out", dtype, "out", (32,), fragmap) for n in names]
    b = FunctionBuilder(Export("all", "all_impl", tuple(parameters), "warp").check())
    x, y = b.read(0), b.read(1)
    for number, name in enumerate(names[:-1], start=2):
        b.write(number, 0, b.op(name, x, y) if name in OPERATIONS else b.op(name, x))
    tests = [b.op(name, x, y) for name in ("lt", "le", "gt", "ge", "eq", "ne")]
    both = b.op("and", tests[0], b.op("or", tests[5], b.op("not", tests[2])))
    chosen = b.op("select", b.op("xor", both, b.op("and", tests[1], b.op("or", tests[3], tests[4]))), x, y)
    b.write(len(names) + 1, 0, b.shuffle(chosen, b.lane_plus(1)))
    return TileLibrary("operations", (b.export,), (Code("nvvm", b.text()),))


@pytest.mark.parametrize("arch", ["sm_90", "sm_100"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_operation_builds(dtype, arch):
    library = every_operation(dtype)
    assert len(build_library(library, arch, toolchain.find())) > 1000
    a, b = np.random.default_rng(5).uniform(0.5, 2.0, (2, 32)).astype(dtype)
    results = evaluate(library, "all", [a, b, *[a] * (len(OPERATIONS) + len(FUNCTIONS) + 1)])
    numpy = ["add", "subtract", "multiply", "divide", "minimum", "maximum", "fmin", "fmax", "power"]
    for name, got in zip(numpy, results, strict=False):
        assert np.array_equal(got, getattr(np, name)(a, b)), name
    for name, got in zip(FUNCTIONS, results[len(numpy) :], strict=False):
        assert np.array_equal(got, getattr(np, {"neg": "negative"}.get(name, name))(a)), name
    # The first condition is a < b, the second a == b, so what is chosen is the smaller one.
    assert np.array_equal(results[-1], np.roll(np.minimum(a, b), -1))


def test_older_toolkits_are_refused():
    kit = toolchain.find()
    old = dataclasses.replace(kit, versions=dataclasses.replace(kit.versions, tileiras="13.4.92"), name="13.4")
    with pytest.raises(ToolchainError, match="tile libraries need tileiras 13.5 or newer, toolkit 13.4 has 13.4.92"):
        build_library(examples(), "sm_90", old)


def test_cuda_needs_nvrtc():
    text = 'extern "C" __device__ void twice_impl(double x, double* out) { *out = 2.0 * x; }'
    library = make_library("twice", tile_export(lambda x: 2.0 * x, name="twice", tile_shape=128, cuda=text))
    kit = toolchain.find()
    if find_nvrtc(kit) is None:
        with pytest.raises(ToolchainError, match="pip install nvidia-cuda-nvrtc"):
            build_library(library, "sm_90", kit)
    else:
        assert len(build_library(library, "sm_90", kit)) > 1000


# -- an independent writer of the same bytecode

CALLER = """
#include <cuda_tile.h>
namespace ct = cuda::tiles;
using tile_f32 = ct::tile<float, ct::shape<128>>;
__experimental_foreign_decl__ __experimental_foreign_name__("relu")
    tile_f32 relu(tile_f32 x, [[cutile::experimental_inout]] tile_f32 out);
__experimental_foreign_decl__ __experimental_foreign_name__("warp_sum")
    tile_f32 warp_sum(tile_f32 x, [[cutile::experimental_inout]] tile_f32 out);
__tile_global__ void kernel(float* x, float* y) {
    auto xs = ct::partition_view { ct::tensor_span { x, ct::shape<128> {} }, ct::shape<128> {} };
    auto ys = ct::partition_view { ct::tensor_span { y, ct::shape<128> {} }, ct::shape<128> {} };
    ys.store(warp_sum(relu(xs.load(0), ys.load(0)), ys.load(0)), 0);
}
"""


def test_tile_cpp_calls_the_same_library(tmp_path):
    """nvcc writes the caller, where it and a host compiler are installed."""
    kit = toolchain.find()
    nvcc = kit.root / "bin/nvcc"
    if not nvcc.exists() or shutil.which("g++") is None:
        pytest.skip("needs nvcc and a host compiler")
    (tmp_path / "caller.cu").write_text(CALLER)
    options = ["--enable-tile", "--tile-preview", "simt", "-std=c++20", "-arch=sm_90", f"-I{kit.root}/include"]
    command = [str(nvcc), *options, "--tilebc", "-o", "caller.bc", "caller.cu"]
    run_tool(command, tool="nvcc", env=kit.environment(tmp_path), cwd=str(tmp_path), timeout=300)
    bytecode = (tmp_path / "caller.bc").read_bytes()
    assert bytecode[:11] == examples().interface()[:11]
    cubin, _ = assemble(bytecode, arch="sm_90", toolkit=kit, remarks=False, libraries=(examples(),))
    use = inspect(cubin, kit)
    assert use.count("SHFL") == 5 and use.count("FMNMX") == 1


# -- the private side of cuda.tile


def test_adapter_knows_this_cuda_tile():
    """Fails where cuda.tile has lost a name that tile libraries need; see the list in tilelib/adapter.py."""
    assert adapter.missing_hooks() == []


def test_adapter_says_what_is_missing(monkeypatch):
    import cuda.tile._bytecode as bytecode

    monkeypatch.delattr(bytecode, "encode_PreviewCallOp")
    monkeypatch.setattr(adapter, "_installed", {})
    with pytest.raises(TileLibraryError, match="has no cuda.tile._bytecode.encode_PreviewCallOp.*cuda-tile==1.7.0"):
        adapter.install()


def test_a_real_preview_module_is_used(monkeypatch):
    """Ordered calls go through `cuda.tile_preview` where it is installed; here through one that counts."""
    adapter.install()
    stand_in = sys.modules[adapter.PREVIEW]
    calls = []

    def counting(tilelibs, symbol_name, constant_params, inputs, output_types):
        raise AssertionError("only compiled")

    from cuda.tile._ir.ops import tile_impl_registry

    def implementation(tilelibs, symbol_name, constant_params, inputs, output_types):
        calls.append((symbol_name.get_constant(), [t.version for t in tilelibs.get_constant()]))
        return ours(tilelibs, symbol_name, constant_params, inputs, output_types)

    def ours(*arguments):
        from cuda.tile._ir.core_ops import build_tuple

        return build_tuple(arguments[3].get_aggregate().items[:1])

    tile_impl_registry.impl(counting)(implementation)
    real = types.SimpleNamespace(Tilelib=stand_in.Tilelib, foreign_call=counting)
    monkeypatch.setitem(adapter._installed, "real", real)
    library = examples()
    compiled(examples_kernel(library, False), (library,))
    assert calls == [(e.name, [library.digest]) for e in library.exports]
    assert adapter.uses_real_preview()
