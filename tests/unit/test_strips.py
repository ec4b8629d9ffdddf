"""Schedules that cut strips off: what is launched, compiled, chosen, stored and refused."""

from __future__ import annotations

import numpy as np
import pytest

from repro import more_stencils, stencils
from stencil_dsl import Schedule, ScheduleError, TuningStore, asarray, compile, empty, stencil
from stencil_dsl.runtime import select
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.runtime.specialize import padded_form, problem_of
from stencil_dsl.schedule import ranking, shifted
from stencil_dsl.schedule.layout import Layout
from stencil_dsl.schedule.lower import lower
from stencil_dsl.schedule.model import predict
from stencil_dsl.schedule.neighbours import neighbours
from stencil_dsl.schedule.strips import cut, cuts, part
from stencil_dsl.schedule.target import H200
from stencil_dsl.solve.launches import BoundSweep

WIDE = Schedule("streaming", tile=(1, 2, 64), pair=2, rows=2, chunk=64, occupancy=4, order="fast")
SMALL = Schedule("streaming", tile=(1, 2, 8), pair=2, rows=2, chunk=4, order="source")


@stencil
def waves(u, v, c, i, j, k):
    """Two outputs and a run-time scalar."""
    near = u[i - 1, j, k] + u[i, j + 1, k] + u[i, j, k - 1] + u[i, j, k + 1]
    return v[i, j, k] + c * near, u[i, j, k] - c * v[i, j, k]


def random(kernel, seed: int):
    shape = tuple(n + lo + hi for n, (lo, hi) in zip(kernel.shape, kernel.halo, strict=True))
    return np.random.default_rng(seed).uniform(-1, 1, shape)


# -- what is launched


def test_main_part_first_then_z_y_and_x() -> None:
    boxes = cut((513, 514, 515), WIDE.with_(strips="xyz"))
    assert boxes == (
        ((0, 512), (0, 512), (0, 512)),
        ((0, 512), (0, 512), (512, 515)),
        ((0, 512), (512, 514), (0, 515)),
        ((512, 513), (0, 514), (0, 515)),
    )
    # Nothing is left over where blocks divide an axis, and an axis with fewer cells than a block stays whole.
    assert cut((512, 512, 512), WIDE.with_(strips="xyz")) == (((0, 512),) * 3,)
    assert cut((20, 3, 100), WIDE.with_(strips="xyz")) == (((0, 20), (0, 3), (0, 100)),)


def test_values_and_scalars_are_those_of_one_pass() -> None:
    """Also for arrays without padding, whose main part can be streamed because no tile overhangs."""
    shape, results = (9, 9, 19), []
    for schedule in (SMALL, SMALL.with_(strips="z"), SMALL.with_(strips="xyz")):
        kernel = compile(waves, shape=shape, schedule=schedule)
        plain = [random(kernel, 0), random(kernel, 1)]
        fields = [asarray(p, kernel.halo, includes_halo=True, device="cpu") for p in plain]
        outs = [empty(shape, kernel.halo, device="cpu") for _ in range(2)]
        launch = kernel.bind(*fields, *outs, c=0.0)
        launch.set_scalars([0.3])
        launch.launch()
        results.append([o.to_numpy() for o in outs])
        if schedule.strips == "xyz":
            assert [s.form.shape for s in launch.specs] == [(8, 8, 16), (8, 8, 3), (8, 1, 19), (1, 9, 19)]
            whole = schedule.with_(pair=1)  # the caller's rows start anywhere
            results.append([np.empty(shape), np.empty(shape)])
            compile(waves, shape=shape, schedule=whole)(*plain, *results[-1], c=0.3)
    for found in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], found, strict=True))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_two_dimensions(dtype) -> None:
    schedule = Schedule(tile=(4, 16), strips="xz")
    kernel = compile(more_stencils.plane_5, shape=(9, 35), dtype=dtype, schedule=schedule)
    assert kernel.validate(device="cpu").exact
    assert [s.form.shape for s in kernel.partition.specs] == [(8, 32), (8, 3), (1, 35)]


# -- what is compiled


def test_all_parts_are_compiled_and_reported() -> None:
    kernel = compile(waves, shape=(9, 9, 19), schedule=SMALL.with_(strips="yz"))
    assert len(kernel.entries) == 3 and kernel.entry is kernel.entries[0]
    text = kernel.report()
    for words in ("strips yz", "9 x 8 x 16", "9 x 8 x 3", "9 x 1 x 19"):
        assert words in text
    fields = [asarray(random(kernel, n), kernel.halo, includes_halo=True, device="cpu") for n in range(2)]
    outs = [empty(kernel.shape, kernel.halo, device="cpu") for _ in range(2)]
    sweep = BoundSweep(kernel, fields, outs, ("c",), "kernel")
    assert {e.path for e in sweep.compile()} == {e.path for e in kernel.entries}


def test_a_strip_has_an_ordinary_kernel() -> None:
    """Told of a region's layouts, under a schedule without strips, in the order of the main part."""
    kernel = compile(waves, shape=(9, 9, 19), schedule=SMALL.with_(strips="z"))
    main, strip = kernel.partition.specs
    assert main.schedule == SMALL
    assert strip.schedule.order == "source" and strip.schedule.strips == ""
    whole = kernel.default_form().inputs[0]
    assert strip.form.inputs[0] == Layout.part(whole, ((0, 9), (0, 9), (16, 19)))
    assert strip.form.inputs[0].strides == whole.strides


# -- what is chosen


@pytest.fixture(scope="module")
def wide():
    """A stencil of radius 4 on extents of one cell more than blocks divide."""
    definition = Definition.of(stencils.star_25, "float64")
    return definition, padded_form(definition, (513,) * 3)


def test_the_model_cuts_where_tiles_waste(wide) -> None:
    definition, form = wide
    ranked = select.rank(definition, form, "fast", H200)
    best, one = ranked[0], next(c for c in ranked if not c.schedule.strips)
    assert "z" in best.schedule.strips
    assert best.prediction.seconds < 0.9 * one.prediction.seconds
    assert 0 < best.prediction.strips < 0.1 * best.prediction.seconds
    assert one.prediction.strips == 0
    assert best.prediction == ranking.estimate(problem_of(definition, form), best.schedule, H200)
    assert "strips" in compile(stencils.star_25, shape=(513,) * 3).explain(1)
    # Where blocks divide the interior, or all of it is little work, there is nothing to gain.
    for shape in ((512,) * 3, (9, 20, 65)):
        found = select.rank(definition, padded_form(definition, shape), "fast", H200)
        assert not any(c.schedule.strips for c in found)


@pytest.mark.parametrize(("left", "tile"), [(1, 1), (3, 4)])
def test_thin_boxes_have_narrow_tiles(left: int, tile: int) -> None:
    """Whose loads are not checked where they divide what the strip has along x and y."""
    definition = Definition.of(stencils.star_7, "float64")
    whole = problem_of(definition, padded_form(definition, (512, 512, 512 + left)))
    problem = part(whole, ((0, 512), (0, 512), (512, 512 + left)))
    schedule, prediction = ranking.strip_schedule(problem, "fast", H200)
    assert schedule.kind == "shifted" and schedule.tile[-1] <= tile
    assert not shifted.outline(problem, schedule).checked
    assert prediction.seconds < 4e-5


def test_checked_loads_cost_more(wide) -> None:
    """A strip whose rows tiles do not divide has tiles that overhang it where memory ends."""
    problem = problem_of(*wide)
    odd, even = (part(problem, ((0, 513), (0, n), (512, 513))) for n in (513, 512))
    tall = Schedule(tile=(1, 128, 1), order="fast")
    assert shifted.outline(odd, tall).checked and not shifted.outline(even, tall).checked
    assert predict(odd, tall, H200).times["latency"] > 2 * predict(even, tall, H200).times["latency"]


def test_few_cells_are_worth_cutting() -> None:
    assert cuts((513,) * 3, WIDE) == ["z", "y", "yz", "xz", "xyz"]
    assert cuts((512, 513, 512), WIDE) == ["y"]
    assert cuts((512, 512, 250), WIDE) == []  # 122 of 250 cells are no strip
    assert cuts((513, 513), Schedule(tile=(2, 64))) == ["z", "xz"]
    assert cuts((513,), Schedule(tile=(64,))) == []


def test_neighbours_cut_more_or_less(wide) -> None:
    problem = problem_of(wide[0], wide[1])
    near = neighbours(problem, WIDE.with_(strips="z"), H200)
    assert {s.strips for s in near} == {"z", "y", "yz", "xz", "xyz"}
    assert {s.strips for s in neighbours(problem, WIDE, H200)} == {"", "z", "y", "yz", "xz", "xyz"}


def test_choices_are_stored_for_strips_as_wide(tmp_path) -> None:
    graph = Definition.of(stencils.star_25, "float64").graph
    store = TuningStore(tmp_path / "tuning.json")
    cutting = WIDE.with_(strips="xz")
    store.put("star_25", graph, "float64", (513,) * 3, "Some GPU", "default", cutting, {"shape": [513] * 3})
    again = TuningStore(store.path)

    def found(*shape: int):
        return again.find(graph, "float64", "fast", shape, "Some GPU", "default")

    assert found(513, 513, 513) == cutting
    assert found(513, 513, 641) == cutting
    assert found(513, 513, 570) is None  # a strip of 58 cells
    assert found(510, 513, 513) is None  # 62 planes
    assert compile(stencils.star_25, shape=(513,) * 3, schedule=cutting).schedule == Schedule.from_json(
        cutting.to_json()
    )


# -- what is refused


def test_strips_that_no_schedule_has() -> None:
    with pytest.raises(ScheduleError, match="Schedule.strips is one of .*'z'.*, got 'zy'"):
        Schedule(strips="zy")  # type: ignore[arg-type]
    with pytest.raises(ScheduleError, match="strips are cut off a shape that is compiled in"):
        Schedule(strips="z", static_shape=False)

    @stencil
    def line(u, i):
        return u[i - 1] + u[i + 1]

    with pytest.raises(ScheduleError, match="Schedule.strips of a 1-D stencil is '', got 'z'"):
        compile(line, shape=(100,), schedule=Schedule(tile=(64,), strips="z"))
    with pytest.raises(ScheduleError, match="Schedule.strips of a 2-D stencil is '' or axes of 'xz', got 'yz'"):
        compile(more_stencils.plane_5, shape=(9, 35), schedule=Schedule(tile=(1, 16), strips="yz"))


def test_one_kernel_has_no_strips(wide) -> None:
    with pytest.raises(ScheduleError, match="strips 'z' are kernels of their own and this is one"):
        lower(problem_of(*wide), WIDE.with_(strips="z"))
