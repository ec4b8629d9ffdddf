"""Choosing schedules: what the ranking counts, what is stored, what is compiled."""

from __future__ import annotations

import json
from math import ceil, prod

import pytest
from xdsl.dialects import scf

from repro import more_stencils, stencils
from repro.random_draws import draw
from stencil_dsl import Schedule, StencilError, TuningStore, compile, stencil
from stencil_dsl.dialects import tile
from stencil_dsl.runtime import select
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.runtime.specialize import padded_form, problem_of
from stencil_dsl.runtime.tuning_store import even, graph_hash, shape_class
from stencil_dsl.schedule import shifted, streaming
from stencil_dsl.schedule.model import predict
from stencil_dsl.schedule.neighbours import fitted_chunks, neighbours
from stencil_dsl.schedule.target import H200, target_for

FAST = Schedule("streaming", tile=(1, 1, 128), pair=2, rows=2, chunk=32, occupancy=4, order="fast")


def main_loop(kernel):
    """The operations of the loop that stores."""
    loops = [op for op in kernel.lowered.module.walk() if isinstance(op, scf.ForOp)]
    return next(op for op in loops if any(isinstance(o, tile.StoreOp) for o in op.body.block.ops)).body.block.ops


@pytest.mark.parametrize("name", ["star_13", "box_27", "iso3dfd", "cond"])
@pytest.mark.parametrize(
    "schedule",
    [FAST, FAST.with_(rows=3, unroll=2), FAST.with_(tile=(1, 4, 32), pair=1), FAST.with_(carry="queue", ahead=True)],
)
def test_counting_sees_what_lowering_emits(name: str, schedule: Schedule) -> None:
    kernel = compile(getattr(stencils, name), shape=(64, 96, 512), schedule=schedule)
    problem = problem_of(kernel.definition, kernel.default_form())
    counts = streaming.count(problem, schedule, streaming.outline(problem, schedule))
    operations = list(main_loop(kernel))
    maps = [op.kind.data for op in operations if isinstance(op, tile.MapOp)]
    assert counts.loads == sum(isinstance(op, tile.LoadOp) for op in operations)
    assert counts.stores == sum(isinstance(op, tile.StoreOp) for op in operations)
    # A fused multiply-add stands for two operations of level 3.
    assert sum(counts.operations.values()) + counts.operations.get("fma", 0) == len(maps)


def most_held(operations, pair: int) -> int:
    """Elements that a thread holds at most, read off the operations of a loop's body."""
    body = operations[0].parent_block()
    raw: dict = {}
    width, born, last = {}, {}, {}
    for value in body.args[1:]:
        width[value], born[value], last[value] = 1, -1, -1

    def use(value, at: int) -> None:
        for part in raw.get(value, [value]):
            if part in last:
                last[part] = at

    for at, op in enumerate(operations):
        result = op.results[0] if op.results else None
        if isinstance(op, tile.ExtractOp | tile.CatOp | tile.ReshapeOp):
            raw[result] = [part for value in op.operands for part in raw.get(value, [value])]
            continue
        for value in op.operands:
            use(value, at)
        if isinstance(op, tile.LoadOp | tile.MapOp):
            width[result] = pair if isinstance(op, tile.LoadOp) else 1
            born[result] = last[result] = at
    return max(sum(width[v] for v in born if born[v] <= at <= last[v]) for at in range(len(operations)))


@pytest.mark.parametrize("name", ["star_25", "box_27", "iso3dfd", "cns"])
@pytest.mark.parametrize("schedule", [FAST, FAST.with_(rows=3, unroll=2), FAST.with_(pair=1, rows=1, sums="inward")])
def test_what_a_thread_holds_is_counted_as_lowered(name: str, schedule: Schedule) -> None:
    kernel = compile(getattr(stencils, name), shape=(64, 96, 512), schedule=schedule)
    problem = problem_of(kernel.definition, kernel.default_form())
    counts = streaming.count(problem, schedule, streaming.outline(problem, schedule))
    assert counts.live == most_held(list(main_loop(kernel)), schedule.pair)


def test_counts_of_one_stencil_differ_where_blocks_overlap() -> None:
    """The order of sums falls back to the source's rows there."""
    schedule = FAST.with_(rows=3, sums="inward")
    definition = Definition.of(stencils.cns, "float64")
    for rows in (96, 97):
        problem = problem_of(definition, padded_form(definition, (64, rows, 512)))
        counts = streaming.count(problem, schedule, streaming.outline(problem, schedule))
    kernel = compile(stencils.cns, shape=(64, 97, 512), schedule=schedule)
    assert counts.live == most_held(list(main_loop(kernel)), schedule.pair)


def test_spills_are_foreseen() -> None:
    """Schedules that were compiled: 6324 bytes of spills, and none."""
    for case, schedule, spills in (
        ("rnd5", FAST.with_(chunk=64, unroll=2), True),
        ("rnd4", FAST.with_(tile=(1, 4, 32), pair=1, rows=1, chunk=64, unroll=2), False),
    ):
        definition = Definition.of(draw(case).stencil(), "float64")
        assert predict(problem_of(definition, padded_form(definition, (256,) * 3)), schedule, H200).spills is spills


def test_counting_a_shifted_kernel() -> None:
    definition = Definition.of(stencils.star_7, "float64")
    problem = problem_of(definition, padded_form(definition, (8, 8, 256)))
    counts = shifted.count(problem, Schedule(tile=(1, 2, 64)))
    assert (counts.loads, counts.stores, counts.carried) == (7, 1, 0)


def test_the_model_knows_waste_and_spills() -> None:
    definition = Definition.of(stencils.star_25, "float64")

    def cost(n: int, schedule: Schedule):
        return predict(problem_of(definition, padded_form(definition, (64, 64, n))), schedule, H200)

    even, odd = cost(512, FAST), cost(513, FAST)
    assert even.waste == 1.0
    assert odd.waste == pytest.approx(768 / 513)
    assert odd.seconds > even.seconds
    # Radius 4, four rows of pairs: 64 accumulators of two registers each do not fit 128 registers.
    assert cost(512, FAST.with_(rows=4)).spills
    assert not even.spills


def test_ranked_schedules_are_legal_and_ordered() -> None:
    definition = Definition.of(stencils.star_7, "float32")
    ranked = select.rank(definition, padded_form(definition, (100, 60, 300)), "fast", target_for("sm_90"))
    seconds = [c.prediction.seconds for c in ranked]
    assert seconds == sorted(seconds)
    assert {c.schedule.pair for c in ranked if c.schedule.kind == "streaming"} == {1, 4}
    kernel = compile(stencils.star_7, shape=(64, 64, 256))
    assert "assumed 4.28 TB/s" in kernel.explain(3)
    slower = kernel.explain(3, H200.with_ceilings(hbm=1e12))
    assert "measured 1.00 TB/s" in slower
    best, worse = (float(text.splitlines()[2].split()[0]) for text in (kernel.explain(3), slower))
    assert best < worse


def test_a_stencil_is_known_however_it_is_written() -> None:
    @stencil
    def other(f, x, y, z):
        near = f[x + 1, y, z] + f[x - 1, y, z] + f[x, y, z + 1] + f[x, y - 1, z]
        return 0.3 * (near + f[x, y + 1, z] + f[x, y, z - 1]) - 0.5 * f[x, y, z]

    def key(f) -> str:
        return graph_hash(Definition.of(f, "float64").graph)

    assert key(other) == key(stencils.star_7)
    assert len({key(f) for f in (stencils.star_7, stencils.star_13, stencils.cond, stencils.box_27)}) == 4


def test_store_round_trip(tmp_path) -> None:
    graph = Definition.of(stencils.star_7, "float64").graph
    store = TuningStore(tmp_path / "deep" / "tuning.json")
    store.put("star_7", graph, "float64", (90, 90, 256), "Some GPU", "13.5", FAST, {"ms": 1.0})
    again = TuningStore(store.path)
    # Extents of one class share a schedule, and so do toolkits where nothing better is known.
    assert again.find(graph, "float64", "fast", (83, 82, 256), "Some GPU", "13.5") == FAST
    assert again.find(graph, "float64", "fast", (90, 90, 256), "Some GPU", "13.4") == FAST.with_(chunk=30)
    for other in (("float32", "fast", "Some GPU"), ("float64", "source", "Some GPU"), ("float64", "fast", "Another")):
        assert again.find(graph, other[0], other[1], (90, 90, 256), other[2], "13.5") is None
    assert shape_class((513, 512, 300)) == "512x512x256/1"
    assert shape_class((500,) * 3) != shape_class((300,) * 3)
    # A box that lacks a few planes takes the choice of the whole; another size, or rows that divide otherwise, do not.
    assert again.find(graph, "float64", "fast", (79, 90, 256), "Some GPU", "13.5") == FAST
    for shape in ((160, 160, 256), (90, 90, 250)):
        assert again.find(graph, "float64", "fast", shape, "Some GPU", "13.5") is None
    assert json.loads(store.path.read_text())["schedules"][0]["schedule"]["chunk"] == 32


def test_a_damaged_store_is_named(tmp_path) -> None:
    path = tmp_path / "tuning.json"
    path.write_text('{"format": 99}')
    with pytest.raises(StencilError, match="tuning.json.*format"):
        TuningStore(path)


def test_the_shipped_choice_is_used_unless_another_is_stored(tmp_path) -> None:
    shipped = compile(stencils.star_7, shape=(512, 512, 512), store=TuningStore(tmp_path / "none.json"))
    mine = TuningStore(tmp_path / "mine.json")
    graph = shipped.definition.graph
    mine.put("star_7", graph, "float64", (512, 512, 512), H200.name, "default", FAST.with_(rows=1), {})
    assert compile(stencils.star_7, shape=(512, 512, 512), store=mine).schedule == FAST.with_(rows=1)
    known = TuningStore(tmp_path / "none.json").find(graph, "float64", "fast", (512,) * 3, H200.name, "default")
    assert shipped.schedule == known


def test_compiling_drops_what_spills(tmp_path, monkeypatch) -> None:
    definition = Definition.of(stencils.star_25, "float64")
    form = padded_form(definition, (64, 64, 256))
    spilling = FAST.with_(rows=4)
    entered = [
        select.Candidate(s, predict(problem_of(definition, form), s, H200)) for s in (spilling, FAST.with_(rows=1))
    ]
    kept = select.compile_best(definition, form, entered, 2, "sm_90", None, None, lambda text: None)
    assert [c.schedule.rows for c in kept] == [1]
    assert "spills" in entered[0].out


@pytest.mark.parametrize(
    ("name", "shape"), [("star_13", (256,) * 3), ("iso3dfd", (300, 200, 513)), ("plane_5", (900, 700))]
)
def test_neighbours_are_legal_and_differ_in_one_choice(name: str, shape: tuple[int, ...]) -> None:
    f = getattr(stencils if len(shape) == 3 else more_stencils, name)
    definition = Definition.of(f, "float64")
    problem = problem_of(definition, padded_form(definition, shape))
    start = FAST if len(shape) == 3 else FAST.with_(tile=(1, 128), rows=1)
    near = neighbours(problem, start, H200)
    assert len(set(near)) == len(near) > 10
    for schedule in near:
        predict(problem, schedule, H200)
        assert sum(getattr(schedule, f) != getattr(start, f) for f in schedule.to_json() | start.to_json()) == 1


def test_fitted_chunks_fill_the_last_wave() -> None:
    definition = Definition.of(stencils.star_13, "float64")
    problem = problem_of(definition, padded_form(definition, (256,) * 3))
    assert neighbours(problem, Schedule("shuffle", tile=(1, 1, 32), warps=1, pair=2, order="fast"), H200) == []
    start = FAST.with_(rows=4, occupancy=3, chunk=16)

    def idle(schedule: Schedule) -> float:
        """Share of the GPU's places that the blocks of a sweep leave empty."""
        blocks, places = prod(streaming.outline(problem, schedule).grid), 132 * 3
        return 1 - blocks / (ceil(blocks / places) * places)

    best = start.with_(chunk=fitted_chunks(problem, start, H200)[0])
    assert idle(best) < 0.1 < idle(start)


def test_unknown_ways_of_tuning_are_refused() -> None:
    with pytest.raises(StencilError, match="'model', 'compile' or 'measure'"):
        compile(stencils.star_7, shape=(64, 64, 64), tune="guess")  # type: ignore[arg-type]


@pytest.mark.parametrize(("planes", "chunk", "becomes"), [(510, 32, 34), (504, 64, 63), (512, 32, 32), (513, 32, 32)])
def test_another_shape_s_chunks_become_even_where_little_changes(planes: int, chunk: int, becomes: int) -> None:
    assert even(Schedule("streaming", tile=(1, 1, 128), chunk=chunk), planes).chunk == becomes


def test_a_stored_shuffle_is_for_toolkits_that_link_it(tmp_path, monkeypatch) -> None:
    """An older toolkit gets what the model chooses."""
    store = TuningStore(tmp_path / "store.json")
    definition = Definition.of(stencils.star_7, "float64")
    lanes, shape = Schedule("shuffle", tile=(1, 1, 32), warps=1, order="fast"), (64, 64, 64)
    store.put("star_7", definition.graph, "float64", shape, H200.name, "default", lanes, {})

    def chosen() -> str:
        return select.choose(
            definition, padded_form(definition, shape), "fast", "model", "sm_90", None, None, store
        ).kind

    monkeypatch.setattr(select, "links", lambda toolkit: True)
    assert chosen() == "shuffle"
    monkeypatch.setattr(select, "links", lambda toolkit: False)
    assert chosen() != "shuffle"
