"""Which schedules are legal, what is said of others, and what is made to fit."""

from __future__ import annotations

import pytest

from stencil_dsl import Schedule, ScheduleError, compile, stencil
from stencil_dsl.schedule.problem import check_grid, grid_axes


@stencil
def line(u, i):
    return u[i - 1] + u[i + 1]


@stencil
def plane(u, i, j):
    return u[i - 2, j] + u[i + 2, j - 1]


@stencil
def cube(u, i, j, k):
    return u[i - 1, j, k] + u[i + 3, j + 1, k] - u[i, j, k - 1]


MARCH = Schedule("streaming", tile=(1, 1, 8), order="fast", chunk=4)


# -- a schedule by itself


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "blocked"}, "Schedule.kind is one of .*'shifted', 'streaming'.*, got 'blocked'"),
        ({"order": "any"}, "Schedule.order is one of"),
        ({"warps": 3}, r"Schedule.warps is one of \(1, 2, 4, 8, 16\), got 3"),
        ({"tile": (1, 1, 100)}, r"powers of two, got \(1, 1, 100\)"),
        ({"tile": (0, 8)}, "powers of two"),
        ({"tile": ()}, "one to three extents"),
        ({"tile": (1, 1, 1, 8)}, "one to three extents"),
        ({"rows": 0}, "Schedule.rows is at least 1, got 0"),
        ({"chunk": 0}, "Schedule.chunk is at least 1"),
        ({"unroll": -1}, "Schedule.unroll is at least 1"),
        ({"occupancy": 0}, "Schedule.occupancy is None or 1 to 32, got 0"),
        ({"latency": 11}, "Schedule.latency is None or 1 to 10, got 11"),
        ({"opt_level": 4}, "Schedule.opt_level is one of"),
        ({"kind": "streaming", "static_shape": False}, "a streaming schedule compiles the shape in"),
    ],
)
def test_values_that_no_schedule_has(options, message) -> None:
    with pytest.raises(ScheduleError, match=message):
        Schedule(**options)


def test_tiles_may_be_lists_and_schedules_are_keys() -> None:
    assert Schedule(tile=[1, 2, 8]) == Schedule(tile=(1, 2, 8))
    assert len({Schedule(tile=(1, 2, 8)), Schedule(tile=[1, 2, 8])}) == 1


def test_json_holds_what_differs_from_the_defaults() -> None:
    assert MARCH.to_json() == {"kind": "streaming", "tile": [1, 1, 8], "order": "fast", "chunk": 4}
    assert Schedule.from_json(MARCH.to_json()) == MARCH
    assert Schedule.from_json(Schedule().to_json()) == Schedule()
    with pytest.raises(ScheduleError, match=r"unknown schedule fields \['chunks'\]; known: \["):
        Schedule.from_json({"kind": "streaming", "tile": [8], "chunks": 3})


def test_text_names_what_matters() -> None:
    assert str(MARCH.with_(pair=2, unroll=2, carry="queue", occupancy=3)) == (
        "streaming (1,1,8,2), rows 1, chunk 4, unroll 2, queue, occupancy 3, fast"
    )


# -- with a stencil


@pytest.mark.parametrize(
    ("f", "dtype", "schedule", "message"),
    [
        (plane, "float64", Schedule(tile=(1, 1, 8)), r"2-D stencil needs a tile of 2 extents, got \(1, 1, 8\)"),
        (line, "float64", Schedule("streaming", tile=(8,)), "1-D stencil has no axis to stream along"),
        (cube, "float64", MARCH.with_(tile=(2, 1, 8)), "streaming tiles are one plane thick"),
        (cube, "float64", MARCH.with_(pair=4), "Schedule.pair is 1 or 2 here, got 4"),
        (cube, "float32", MARCH.with_(pair=2), "Schedule.pair is 1 or 4 here, got 2"),
        (plane, "float64", MARCH.with_(tile=(1, 8), rows=2), "2-D stencil has no rows beside the streamed axis"),
    ],
)
def test_schedules_that_do_not_fit_a_stencil(f, dtype, schedule, message) -> None:
    with pytest.raises(ScheduleError, match=message):
        compile(f, dtype=dtype, schedule=schedule)


def test_streaming_never_checks_its_loads() -> None:
    with pytest.raises(ScheduleError, match="streaming loads are unchecked; use kind='shifted'"):
        compile(cube, shape=(8, 8, 64), schedule=MARCH.with_(loads="checked"))


# -- the grid


def test_blocks_walk_the_contiguous_axis_first_unless_asked_otherwise() -> None:
    assert [grid_axes(n, "z") for n in (1, 2, 3)] == [(0,), (1, 0), (2, 1, 0)]
    assert [grid_axes(n, "y") for n in (1, 2, 3)] == [(0,), (0, 1), (1, 2, 0)]


def test_only_the_first_axis_of_a_grid_is_long() -> None:
    assert check_grid([5, 70000], (1, 0)) == (70000, 5, 1)
    with pytest.raises(ScheduleError, match="70000 blocks along axis 0 exceed the 65535 of a grid's later axes"):
        check_grid([70000, 5], (1, 0))


def test_too_many_blocks_name_the_remedy() -> None:
    with pytest.raises(ScheduleError, match="use larger tiles or chunks, or the other block_order"):
        compile(plane, shape=(70000, 64), schedule=Schedule(tile=(1, 64)))
    assert compile(plane, shape=(70000, 64), schedule=Schedule(tile=(1, 64), block_order="y")).lowered.grid[0] == 70000


@pytest.mark.parametrize(("nx", "chunk", "chunks"), [(8, 4, 2), (9, 4, 3), (3, 64, 1), (7, 1, 7), (130, 64, 3)])
def test_chunks_are_balanced(nx, chunk, chunks) -> None:
    """The planes are dealt out evenly: no chunk is longer than asked, none is shorter by more than one than another."""
    kernel = compile(cube, shape=(nx, 4, 16), schedule=MARCH.with_(chunk=chunk))
    assert kernel.lowered.grid[2] == chunks
    assert kernel.validate(device="cpu")


@pytest.mark.parametrize(("ny", "rows", "blocks"), [(8, 4, 2), (9, 4, 3), (2, 4, 1), (1, 3, 1), (5, 3, 2)])
def test_rows_that_do_not_divide(ny, rows, blocks) -> None:
    kernel = compile(cube, shape=(5, ny, 16), schedule=MARCH.with_(rows=rows))
    assert kernel.lowered.grid[1] == blocks
    assert kernel.validate(device="cpu")


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("nx", [1, 2, 3, 4, 5, 9])
def test_interiors_thinner_than_the_halo(nx, ahead, split) -> None:
    schedule = MARCH.with_(chunk=64, split_tail=split, ahead=ahead)
    assert compile(cube, shape=(nx, 3, 10), schedule=schedule).validate(device="cpu")


@stencil
def uneven(u, v, i, j):
    """v ends with the interior, u reaches three rows further."""
    return u[i + 3, j] + u[i, j] + 0.5 * v[i, j]


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("nx", [1, 2, 3, 4, 7])
def test_a_field_is_not_read_behind_its_own_halo(nx, split) -> None:
    """The sum is one, and its foremost row is u's; v has no such row."""
    from stencil_dsl import empty, zeros

    schedule = Schedule("streaming", tile=(1, 16), order="fast", chunk=64, split_tail=split)
    kernel = compile(uneven, schedule=schedule)
    u = zeros((nx, 16), ((0, 3), (0, 0)), device="cpu")
    v = zeros((nx, 16), 0, device="cpu")
    u.fill(1.0)
    v.fill(2.0)
    out = empty((nx, 16), 0, device="cpu")
    kernel(u, v, out)
    assert (out.interior == 3.0).all()
