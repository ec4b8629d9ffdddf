"""The shuffle schedule: values on NumPy (the device functions' own text is run), and machine code where 13.5 is."""

from __future__ import annotations

import dataclasses

import pytest
from tilelib_cases import needs_libraries

from stencil_dsl import Schedule, compile, stencil, toolchain
from stencil_dsl.errors import ScheduleError
from stencil_dsl.runtime.report import count_work
from stencil_dsl.runtime.select import with_libraries
from stencil_dsl.schedule.shuffle_candidates import shuffle_blockings, shuffle_candidates
from stencil_dsl.schedule.target import target_for


def shuffle(lanes: int, pair: int, ndim: int = 3, warps: int = 1, **options) -> Schedule:
    options = {"chunk": 4, "order": "fast"} | options
    return Schedule(kind="shuffle", tile=(1,) * (ndim - 1) + (lanes,), pair=pair, warps=warps, **options)


@stencil
def star(u, i, j, k):
    return 0.4 * u[i, j, k] + sum(
        c * (u[i - r, j, k] + u[i + r, j, k] + u[i, j - r, k] + u[i, j + r, k] + u[i, j, k - r] + u[i, j, k + r])
        for r, c in ((1, 0.07), (2, 0.03))
    )


@stencil
def box(u, i, j, k):
    return sum(
        (a + 1.5) * (b + 2.5) * (c + 3.5) * u[i + a, j + b, k + c]
        for a in (-1, 0, 1)
        for b in (-1, 0, 1)
        for c in (-1, 0, 1)
    )


@stencil
def heat(u, dt, i, j):
    return u[i, j] + dt * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j])


@stencil
def uneven(u, v, a, i, j, k):
    """Two fields, two outputs, neighbours on one side of each, not linear."""
    return max(u[i, j, k + 3], v[i, j + 1, k - 2]) * a + u[i - 1, j, k] * v[i + 2, j, k], v[i, j, k - 1] - u[
        i, j, k + 1
    ]


@stencil
def far(u, i, j):
    return u[i, j - 9] + u[i, j + 13] + u[i + 1, j] - u[i - 2, j - 1]


@stencil
def pointwise(u, v, i, j, k):
    return u[i, j, k] * v[i, j, k]


@pytest.mark.parametrize(("pair", "dtype"), [(1, "float64"), (2, "float64"), (2, "float32"), (4, "float32")])
@pytest.mark.parametrize(
    ("f", "shape", "options"),
    [
        (star, (11, 7, 133), {"rows": 4, "chunk": 6}),
        (box, (6, 5, 66), {"rows": 2, "unroll": 2}),
        (heat, (13, 77), {"ndim": 2, "chunk": 5}),
        (uneven, (9, 5, 70), {"rows": 2}),
        (far, (7, 150), {"ndim": 2, "chunk": 3, "warps": 2, "lanes": 64}),
        (pointwise, (3, 4, 70), {"rows": 2}),
    ],
)
def test_values(f, shape, options, pair, dtype):
    schedule = shuffle(**{"lanes": 32, "pair": pair} | options)
    verdict = compile(f, shape=shape, schedule=schedule, dtype=dtype).validate(device="cpu")
    assert verdict.ok, verdict


@pytest.mark.parametrize(
    "options",
    [{"order": "source"}, {"split_tail": False}, {"block_order": "y"}, {"rows": 3, "chunk": 64}, {"chunk": 1}],
    ids=str,
)
def test_choices_change_no_values(options):
    verdict = compile(star, shape=(9, 5, 70), schedule=shuffle(32, 2, **options)).validate(device="cpu")
    assert verdict.ok, verdict
    if options.get("order") == "source":
        assert verdict.max_rel_err == 0.0


@pytest.mark.parametrize(
    ("f", "schedule", "message"),
    [
        (heat, shuffle(64, 2, 2, warps=4), "64 lanes along z for 4 warps; use a multiple of 128"),
        (heat, shuffle(32, 2, 2, ahead=True), "ahead=False"),
        (heat, shuffle(32, 2, 2, carry="queue"), "carry='reload'"),
        (far, shuffle(32, 1, 2), None),
        (star, Schedule(kind="shuffle", tile=(1, 2, 32), warps=1), "one cell wide along y"),
        (star, Schedule(kind="shuffle", tile=(2, 1, 32), warps=1), "one plane thick"),
        (star, shuffle(32, 2, loads="checked"), "unchecked"),
    ],
)
def test_illegal_schedules(f, schedule, message):
    shape = (8, 40, 64)[-f.ndim :]
    if message is None:
        compile(f, shape=shape, schedule=schedule)
        return
    with pytest.raises(ScheduleError, match=message):
        compile(f, shape=shape, schedule=schedule)


def test_neighbours_beyond_a_warp():
    @stencil
    def farther(u, i, j):
        return u[i, j - 17] + u[i, j + 17]

    with pytest.raises(ScheduleError, match="'u' is read up to 17 and 17 lanes away.*larger pair than 1"):
        compile(farther, shape=(7, 150), schedule=shuffle(32, 1, 2))
    assert compile(farther, shape=(7, 150), schedule=shuffle(32, 2, 2)).validate(device="cpu").ok


def test_the_level_parses_back():
    from xdsl.context import Context
    from xdsl.dialects import arith, builtin, func, scf
    from xdsl.parser import Parser

    from stencil_dsl.dialects.simt import Simt
    from stencil_dsl.dialects.tile import Tile

    text = str(compile(heat, shape=(13, 77), schedule=shuffle(32, 2, 2)).ir("tile"))
    assert "simt.library" in text and "tile.gather" in text and text.count("simt.call") >= 3
    context = Context()
    for dialect in (builtin.Builtin, func.Func, arith.Arith, scf.Scf, Tile, Simt):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    assert str(module) == text


def test_rows_are_loaded_once():
    """A block of 4 rows reads 8 rows of a plane for a star of radius 2, and what its 4 own rows lack at the ends."""
    source = compile(star, shape=(64, 64, 512), schedule=shuffle(128, 2, warps=4, rows=4, chunk=32)).source
    loop = source[source.index("for x in range") : source.rindex("'star_plane'")]
    assert loop.count("ct.load(") == 8 and loop.count("ct.gather(") == 4 * 2
    assert source.count("def ") == 2 and "embedded(" in source


def test_report_counts_what_device_functions_do():
    kernel = compile(heat, shape=(64, 512), schedule=shuffle(128, 2, 2, warps=4, chunk=32))
    work = count_work(kernel.lowered.module, 1)
    assert work.loop and work.cells == 256
    # Each cell of a plane: two sums of neighbours, and what it adds to three outputs.
    assert work.operations["add"] >= 4 and 4 <= work.flops <= 12
    assert work.loads == 1 + 1  # its own element, and one for a neighbouring warp


@pytest.mark.parametrize(("f", "dtype", "count"), [(star, "float64", 6), (heat, "float32", 4), (far, "float64", 4)])
def test_candidates_are_legal(f, dtype, count):
    shape = (512, 512, 1024)[-f.ndim :]
    graph = compile(f, shape=shape, dtype=dtype).definition.graph
    found = list(shuffle_blockings(graph, dtype, shape))
    assert len(found) == len(set(found)) == count
    more = list(shuffle_candidates(graph, dtype, shape))
    assert len(more) == len(set(more)) and {s.pair for s in more} == {1, found[0].pair}
    for schedule in [*found, *more[::19]]:
        compile(f, shape=shape, dtype=dtype, schedule=schedule)


@pytest.mark.parametrize("order", ["fast", "source"])
def test_five_outputs_of_many_fields(order):
    """CNS: products of neighbours along z, which a lane forms of shuffled factors."""
    from repro.stencils import cns

    kernel = compile(cns, shape=(6, 5, 70), schedule=shuffle(32, 1, rows=1, order=order, chunk=3))
    verdict = kernel.validate(device="cpu")
    assert verdict.ok and (verdict.max_rel_err == 0.0 or order == "fast"), verdict


@needs_libraries
def test_one_is_launched_from_a_carried_cache(tmp_path, monkeypatch):
    """What a machine with a GPU and no toolkit asks for, as a profiled process of its own does too."""
    from stencil_dsl.testing import Target, sweep_question
    from stencil_dsl.toolchain import cutile_adapter

    def facts():
        question = sweep_question("q", heat, (64, 512), {"lanes": shuffle(32, 2, 2)}, scalars={"dt": 0.1})
        return question.variant("lanes").compile_facts(Target("sm_90"))

    monkeypatch.setenv("STENCIL_DSL_CACHE", str(tmp_path / "here"))
    made = facts()
    away = toolchain.KernelCache(tmp_path / "away")
    assert toolchain.KernelCache(tmp_path / "here").copy_to(away) == (1, 0)
    monkeypatch.setenv("STENCIL_DSL_CACHE", str(away.root))
    monkeypatch.setattr(cutile_adapter, "available", lambda: False)
    assert facts() == made and made["classes"]["SHFL"] > 0


@needs_libraries
def test_selection_times_them_where_libraries_can_be_linked(monkeypatch):
    kernel = compile(heat, shape=(64, 512), schedule=shuffle(128, 2, 2, warps=4))
    (form,) = [form for form, _ in kernel._forms]
    arguments = (kernel.definition, form, "fast", target_for("sm_90"))
    assert {c.schedule.kind for c in with_libraries(*arguments, None)} == {"shuffle"}
    kit = toolchain.find()
    old = dataclasses.replace(kit, versions=dataclasses.replace(kit.versions, tileiras="13.4.92"))
    assert with_libraries(*arguments, old) == []


@needs_libraries
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("f", [star, box, heat])
def test_machine_code(f, dtype, tmp_path):
    """Shuffles, wide loads, nothing through shared memory, and no barrier in the loop."""
    from stencil_dsl.toolchain import KernelCache

    pair = 2 if dtype == "float64" else 4
    options = {"rows": 4} if f.ndim == 3 else {}
    schedule = shuffle(128, pair, f.ndim, warps=4, chunk=64, occupancy=2, **options)
    shape = (512, 512, 2048)[-f.ndim :]
    use = compile(f, shape=shape, schedule=schedule, dtype=dtype, cache=KernelCache(tmp_path)).resources
    loop = use.loop_classes or {}
    assert loop["SHFL"] and loop["LDG.E.128"] and loop["STG.E.128"]
    assert use.shared_bytes == 0 and not use.count("LDS") and not use.count("STS")
    assert not loop.get("BAR") and use.spill_bytes == 0 and not use.count("CALL")
    # Every lane of a row gets its two neighbours with one 32-bit shuffle each (two in float64).
    radius, words = (2 if f is star else 1), (2 if dtype == "float64" else 1)
    rows, own = {"star": (4, 4), "box": (6, 4), "heat": (1, 1)}[f.name]
    planes = loop["STG.E.128"] // own
    assert loop["SHFL"] == planes * rows * 2 * radius * words
