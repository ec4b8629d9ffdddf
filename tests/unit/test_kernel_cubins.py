"""Kernels through the real compiler: what the machine code must and must not hold."""

from __future__ import annotations

import pytest
from toolchain_cases import needs_cutile

from stencil_dsl import Schedule, compile, stencil, toolchain

pytestmark = needs_cutile


@stencil
def star(u, i, j, k):
    return 0.4 * u[i, j, k] + 0.1 * (
        u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k] + u[i, j, k - 1] + u[i, j, k + 1]
    )


@stencil
def swap(u, v, i, j):
    return v[i, j], 0.5 * u[i, j]


SHIFTED = Schedule(tile=(1, 1, 128), occupancy=4)
PAIRS = Schedule("streaming", tile=(1, 1, 128), pair=2, rows=2, chunk=32, occupancy=4, order="fast")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return toolchain.KernelCache(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="module")
def pairs(cache):
    return compile(star, shape=(128, 64, 256), schedule=PAIRS, cache=cache)


def lean(use) -> None:
    assert use.registers > 0
    assert (use.spill_loads, use.spill_stores, use.stack_bytes, use.shared_bytes) == (0, 0, 0, 0)


def test_shifted(cache) -> None:
    use = compile(star, shape=(32, 32, 256), schedule=SHIFTED, cache=cache).resources
    lean(use)
    assert use.symbol == "star" and use.threads == 128
    assert use.loop_instructions == 0 and use.barriers == 0
    # One load a distinct access, unchecked: nothing branches around them.
    assert use.count("LDG") == 7 and use.count("STG") == 1 and use.branches == 0
    assert use.count("DFMA") + use.count("DMUL") + use.count("DADD") <= 13


def test_streaming_pairs(pairs) -> None:
    use = pairs.resources
    lean(use)
    assert use.threads == 128, "a group of warps for loads alone was split off"
    assert use.barriers <= 1
    loop = use.loop_classes
    # Of the pairs to the left and right only the nearer half is needed, which makes half as wide a load.
    assert loop["LDG.E.128"] >= loop["LDG.E.64"] and set(loop) & {"LDG.E", "STG.E", "STG.E.64"} == set()
    # Two rows: four of the plane ahead and two neighbours each of the plane itself, however often it is unrolled.
    assert (loop["LDG.E.128"] + loop["LDG.E.64"]) / loop["STG.E.128"] <= 4
    assert use.registers <= 128, "occupancy 4 of 128 threads leaves 128 registers"


def test_machine_code_does_not_depend_on_the_day(pairs, tmp_path) -> None:
    again = compile(star, shape=(128, 64, 256), schedule=PAIRS, cache=toolchain.KernelCache(tmp_path))
    assert again.cubin == pairs.cubin


def test_what_is_known_of_arrays_decides_the_width_of_stores(cache) -> None:
    """Two cells a thread: written at once where rows are known to be aligned, and not where a shape is any."""
    wide = SHIFTED.with_(tile=(1, 1, 256))
    static = compile(star, shape=(32, 32, 256), schedule=wide, cache=cache).resources
    dynamic = compile(star, schedule=wide.with_(static_shape=False), cache=cache).resources
    assert static.classes["STG.E.128"] == static.count("STG") == 1
    assert dynamic.count("STG") == 2
    for use in (static, dynamic):
        assert (use.spill_loads, use.spill_stores) == (0, 0)


def test_in_place_is_compiled_with_its_order(cache) -> None:
    """Both loads come before both stores: each output overwrites what the other reads."""
    from stencil_dsl import zeros

    u, v = (zeros((8, 256), 1, device="cpu") for _ in range(2))
    kernel = compile(swap, schedule=Schedule(tile=(1, 128)), cache=cache)
    spec = kernel.bind(u, v, u, v).spec
    entry = spec.compile("sm_90", None, cache)
    text = [line for line in entry.sass.splitlines() if "LDG" in line or "STG" in line]
    kinds = ["L" if "LDG" in line else "S" for line in text]
    assert kinds == sorted(kinds) and kinds.count("S") == 2


def test_report_names_the_resources(pairs) -> None:
    assert str(pairs.resources.registers) in pairs.report()


def test_tile_ir_is_that_of_the_kernel(pairs) -> None:
    text = pairs.tile_ir
    assert "star" in text
    assert text.count("store_view_tko") == pairs.ir("tile").count("tile.store")
