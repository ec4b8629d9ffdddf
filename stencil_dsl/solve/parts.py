"""What a time step consists of, as the user says it: stencils on boxes, sweeps, integrators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stencil_dsl.dialects.timestep import METHODS, TWO_LEVEL
from stencil_dsl.errors import StencilError
from stencil_dsl.frontend.stencil import Stencil


@dataclass(frozen=True)
class Piece:
    """A stencil on the whole interior or on a box of it.

    Attributes:
        box: per axis a half-open range; negative numbers count from the end, as does 0 as an upper bound.
        gives: names of the new fields, where they are not the stencil's outputs.
        names: fields and scalars of the step for parameters of the stencil that are called otherwise.
    """

    stencil: Stencil
    box: Sequence[tuple[int, int]] | None = None
    gives: Sequence[str] | None = None
    names: Mapping[str, str] = field(default_factory=dict)

    def outputs(self) -> tuple[str, ...]:
        return tuple(self.stencil.outputs if self.gives is None else self.gives)

    def fields(self) -> tuple[str, ...]:
        return tuple(self.names.get(f, f) for f in self.stencil.fields)

    def scalars(self) -> tuple[str, ...]:
        return tuple(self.names.get(s, s) for s in self.stencil.scalars)


@dataclass(frozen=True)
class Sweep:
    """Pieces that make new fields together, all from what was there before; their boxes must not overlap.

    Attributes:
        onto: new field to the field whose values it keeps where no piece writes; that one is updated in place.
    """

    pieces: Sequence[Piece | Stencil]
    onto: Mapping[str, str] = field(default_factory=dict)

    def all(self) -> list[Piece]:
        return [p if isinstance(p, Piece) else Piece(p) for p in self.pieces]

    def outputs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for p in self.all() for name in p.outputs()))

    def inputs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*(f for p in self.all() for f in p.fields()), *self.onto.values()]))


@dataclass(frozen=True)
class Integrate:
    """Fields that advance by their rates of change, with a method of `METHODS`.

    Attributes:
        rates: stencils whose outputs, in order, are the rates of the fields in `state`.
        state: the fields that are advanced.
        older: for leapfrog (u' = f) and verlet (u'' = f) the older level of each.
        dt: the run-time scalar that holds the step's length.
        time: a scalar of the rates that holds the time; each stage adds its share of dt.
    """

    rates: Sequence[Stencil]
    state: Sequence[str]
    method: str = "ssp-rk3"
    dt: str = "dt"
    time: str | None = None
    older: Sequence[str] = ()

    def outputs(self) -> tuple[str, ...]:
        return tuple(f"{name}_next" for name in self.state)

    def inputs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*(f for r in self.rates for f in r.fields), *self.state, *self.older]))


Part = Sweep | Integrate


def as_part(part: Stencil | Piece | Part) -> Part:
    if isinstance(part, Stencil | Piece):
        return Sweep([part])
    if isinstance(part, Integrate):
        if part.method not in METHODS:
            raise StencilError(f"unknown method {part.method!r}; known are {', '.join(METHODS)}")
        if len(part.older) != (len(part.state) if part.method in TWO_LEVEL else 0):
            raise StencilError(f"{part.method} needs older=[...] with {len(part.state)} names, got {list(part.older)}")
        return part
    if isinstance(part, Sweep):
        return part
    raise StencilError(f"a system consists of stencils, Piece, Sweep and Integrate, got {type(part).__name__}")


def stencils_of(part: Part) -> list[Stencil]:
    return list(part.rates) if isinstance(part, Integrate) else [p.stencil for p in part.all()]


def readers(part: Part) -> list[tuple[Stencil, Mapping[str, str]]]:
    """Stencils with the names of the step for some of their parameters."""
    return [(r, {}) for r in part.rates] if isinstance(part, Integrate) else [(p.stencil, p.names) for p in part.all()]


def common_rank(parts: Sequence[Part]) -> int:
    ranks = {f.name: f.ndim for p in parts for f in stencils_of(p)}
    if len(set(ranks.values())) != 1:
        raise StencilError(f"stencils of one system have one number of dimensions, got {ranks}")
    return next(iter(ranks.values()))


def makers(parts: Sequence[Part]) -> dict[str, int]:
    """Part that makes each new field."""
    made: dict[str, int] = {}
    for index, p in enumerate(parts):
        for name in p.outputs():
            if name in made:
                raise StencilError(
                    f"two sweeps make {name!r}; rename one output with Piece(gives=...), or put pieces into one Sweep"
                )
            made[name] = index
    return made


def ordered(parts: list[Part], made: Mapping[str, int]) -> list[Part]:
    """The parts so that each comes after those it reads from; otherwise in the order given."""
    after = [{made[name] for name in p.inputs() if name in made} for p in parts]
    order: list[int] = []
    while len(order) < len(parts):
        ready = [i for i in range(len(parts)) if i not in order and after[i] <= set(order)]
        if not ready:
            names = [parts[i].outputs() for i in range(len(parts)) if i not in order]
            raise StencilError(f"these fields are computed from each other: {names}; read the old values of one")
        order.append(ready[0])
    return [parts[i] for i in order]
