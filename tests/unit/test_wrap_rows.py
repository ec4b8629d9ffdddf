"""Rows that close to a ring: which kernels read them so, what is refused, and what it costs in the machine code."""

from __future__ import annotations

import numpy as np
import pytest

from repro.stencils import star_7, star_13, star_25
from stencil_dsl import Schedule, ScheduleError, StencilError, stencil
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.runtime.kernel import Kernel
from stencil_dsl.solve import Outflow, Periodic, Piece, Sweep, System, TimeLoop
from stencil_dsl.transforms.analysis import periodic_rows, set_periodic_rows, the_apply

MARCH = Schedule("streaming", tile=(1, 4, 32), pair=2, rows=2, chunk=8, order="fast")


@stencil
def drift(u, v, i, j):
    return u[i, j - 1] + v[i, j + 1] + u[i + 1, j]


def ringed(f, *rows: bool) -> Definition:
    definition = Definition.of(f, "float64")
    set_periodic_rows(the_apply(definition.stencil), rows)
    return definition


def wrapped(loop: TimeLoop) -> dict[str, tuple[bool, ...]]:
    return {name: k.definition.periodic for name, k in loop.program.kernels.items()}


def on_host(what, shape, boundaries, **options) -> TimeLoop:
    return TimeLoop(what, shape, boundaries, device="cpu", **options)


def test_fields_that_change_and_are_periodic_along_the_last_axis_are_wrapped() -> None:
    both = {"u": Periodic(), "v": Periodic()}
    loop = on_host(drift, (6, 8), both)
    # v never changes: its ghost cells are filled once.
    assert wrapped(loop) == {"drift": (True, False)}
    assert (
        "timestep.fill %u lo [0, 0] hi [1, 0]" in loop.ir() and "timestep.fill %v lo [0, 0] hi [0, 1] once" in loop.ir()
    )
    other = on_host(drift, (6, 8), {"u": {"x": Periodic(), "z": Outflow()}, "v": Periodic()})
    assert wrapped(other) == {"drift": (False, False)}
    assert wrapped(on_host(drift, (6, 8), both, wrap_rows=0)) == {"drift": (False, False)}
    assert wrapped(on_host(drift, (6, 8), both, engine="reference")) == {"drift": (False, False)}

    @stencil
    def across(u, i, j):
        return u[i - 1, j] + u[i + 1, j]

    # Nothing is read along rows: schedules that read rings badly stay candidates.
    assert wrapped(on_host(across, (6, 8), {"u": Periodic()})) == {"across": (False,)}


@pytest.mark.parametrize(
    ("f", "dtype", "given", "rows"),
    [
        (star_13, "float64", None, True),
        (star_25, "float64", None, False),
        (star_25, "float64", 4, True),
        (star_25, "float32", None, True),
        (star_13, "float64", 1, False),
    ],
)
def test_far_neighbours_are_read_from_ghost_cells(f, dtype: str, given: int | None, rows: bool) -> None:
    loop = on_host(f, (4, 4, 32), {"u": Periodic()}, dtype=dtype, wrap_rows=given)
    assert list(wrapped(loop).values()) == [(rows,)]


@pytest.mark.parametrize(
    ("schedule", "rows"),
    [
        (MARCH, True),
        (MARCH.with_(pair=1), False),
        (MARCH.with_(pair=1, tile=(1, 1, 32)), True),
        (Schedule(tile=(1, 1, 32)), True),
        (Schedule(tile=(1, 4, 32)), False),
        (Schedule(tile=(1, 1, 32), static_shape=False), False),
        (Schedule("shuffle", tile=(1, 1, 32), pair=2, warps=1), False),
    ],
    ids=str,
)
def test_a_schedule_that_wraps_badly_gets_ghost_cells(schedule: Schedule, rows: bool) -> None:
    assert wrapped(on_host(star_7, (4, 4, 64), {"u": Periodic()}, schedule=schedule)) == {"star_7": (rows,)}


def test_pieces_of_rows_have_ghost_cells_and_whole_rows_do_not() -> None:
    @stencil
    def kept(u, i, j):
        return 1.0 * u[i, j]

    def split(first, second) -> TimeLoop:
        sweep = Sweep([Piece(drift, box=first, gives=["w"]), Piece(kept, box=second, gives=["w"])])
        return on_host(System([sweep], {"u": "w"}), (6, 8), {"u": Periodic(), "v": Periodic()})

    assert wrapped(split(((0, 3), (0, 0)), ((3, 0), (0, 0))))["drift"] == (True, False)
    assert wrapped(split(((0, 0), (0, 5)), ((0, 0), (5, 0))))["drift"] == (False, False)


@pytest.mark.parametrize("temporal", [1, 2])
@pytest.mark.parametrize("shape", [(5, 6, 32), (4, 3, 7), (3, 4, 2)])
def test_loops_have_the_bits_of_those_with_ghost_cells(shape: tuple[int, ...], temporal: int) -> None:
    u = np.random.default_rng(3).random(shape)
    found = []
    for rows in (8, 0):
        loop = on_host(star_7, shape, {"u": Periodic()}, wrap_rows=rows, temporal_steps=temporal)
        loop.set("u", u)
        loop.run(4)
        found.append(loop.to_numpy("u"))
    assert np.array_equal(*found)


@pytest.mark.parametrize(
    ("shape", "schedule", "message"),
    [
        ((4, 8, 33), MARCH, r"'u' has periodic rows of 33 cells, which pairs of 2 do not divide; use pair=1"),
        ((4, 8, 3), MARCH.with_(pair=1), r"'u' has periodic rows of 3 cells and is read 4 cells away"),
        ((4, 8, 64), Schedule("shuffle", tile=(1, 1, 32), pair=2, warps=1), r"which kind='shuffle' cannot read"),
    ],
)
def test_what_cannot_be_wrapped_is_refused(shape, schedule: Schedule, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        Kernel(ringed(star_25, True), shape, schedule).ir("tile")


def test_a_length_that_is_not_compiled_in_is_refused() -> None:
    kernel = Kernel(ringed(star_7, True), None, Schedule(tile=(1, 1, 32), static_shape=False))
    with pytest.raises(ScheduleError, match=r"whose length must be known; use static_shape=True"):
        kernel.ir("tile")


def test_the_attribute_has_one_entry_a_field() -> None:
    definition = ringed(drift, True)
    with pytest.raises(StencilError, match="periodic_rows needs one truth value for each of 2 fields"):
        periodic_rows(the_apply(definition.stencil), 2)


@pytest.mark.parametrize("f", [star_7, star_13])
def test_wrapped_rows_cost_a_few_additions(f) -> None:
    """As many and as wide loads a trip as with ghost cells, all straight into the threads that want them."""
    plain, rings = (Kernel(ringed(f, r), (512,) * 3) for r in (False, True))
    assert plain.schedule == rings.schedule
    a, b = plain.resources, rings.resources
    loads = ("LDG.E.64", "LDG.E.128", "STG.E.128", "DFMA", "DADD", "DMUL")
    trips = [r.loop_classes["STG.E.128"] for r in (a, b)]
    assert [a.loop_classes.get(k, 0) * trips[1] for k in loads] == [b.loop_classes.get(k, 0) * trips[0] for k in loads]
    assert (b.shared_bytes, b.spill_bytes) == (0, 0) and b.registers <= a.registers


def test_parts_of_periodic_rows_are_no_strips() -> None:
    cut = MARCH.with_(strips="z")
    assert wrapped(on_host(star_7, (4, 8, 66), {"u": Periodic()}, schedule=cut)) == {"star_7": (False,)}
    assert wrapped(on_host(star_7, (4, 9, 64), {"u": Periodic()}, schedule=MARCH.with_(strips="y"))) == {
        "star_7": (True,)
    }
    with pytest.raises(ScheduleError, match="periodic rows have no strips along z: .* use strips along x or y"):
        Kernel(ringed(star_7, True), (4, 8, 66), cut).ir("tile")


@pytest.mark.parametrize("schedule", [MARCH.with_(pair=1), Schedule(tile=(1, 4, 32))], ids=str)
def test_single_elements_of_several_rows_go_through_shared_memory(schedule: Schedule) -> None:
    """Why `suits_rings` leaves such schedules out; where this fails, it need not any more."""
    plain, rings = (Kernel(ringed(star_7, r), (64,) * 3, schedule).resources.shared_bytes for r in (False, True))
    assert plain == 0 and rings > 0
