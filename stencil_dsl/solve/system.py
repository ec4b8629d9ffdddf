"""What a time step consists of, as the user says it, and the step program (IR) that it becomes.

A stencil makes a new field, named like the stencil's output; another stencil that has a field of that name reads it.
That alone orders the sweeps. `advance` says which field of the state continues as which field when the step is over:

    System([e_next, h_next], advance={"e": "e_next", "h": "h_next"})
    System([wave], advance={"u": "wave", "u_prev": "u"})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import stencil
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from stencil_dsl.dialects.source import ELEMENT_TYPES
from stencil_dsl.dialects.timestep import METHODS, TWO_LEVEL, IntegrateOp, PieceOp, StepOp, SweepOp, YieldOp
from stencil_dsl.errors import StencilError
from stencil_dsl.frontend.stencil import Stencil
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.runtime.fused import fuse
from stencil_dsl.transforms.analysis import the_func
from stencil_dsl.transforms.steps import set_origin


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


class System:
    """Sweeps of one time step and how the state goes on.

    Args:
        parts: stencils, sweeps of several pieces, or integrators, in any order.
        advance: field of the state to the field, new or old, that it is in the next step. Left away, an integrator
            advances its own state, and a single stencil with one output advances its first field.

    Raises:
        StencilError: where names do not fit together.
    """

    def __init__(
        self, parts: Sequence[Stencil | Piece | Part] | Stencil | Integrate, advance: Mapping[str, str] | None = None
    ) -> None:
        given = parts if isinstance(parts, Sequence) else [parts]
        self.parts: list[Part] = [_part(p) for p in given]
        if not self.parts:
            raise StencilError("a system needs at least one stencil")
        self.ndim = _rank(self.parts)
        self.made = _made(self.parts)
        self.parts = _ordered(self.parts, self.made)
        self.advance = dict(advance) if advance is not None else self._default_advance()
        reads = [name for p in self.parts for name in p.inputs()]
        self.state = tuple(n for n in dict.fromkeys([*reads, *self.advance]) if n not in self.made)
        self._check()

    @property
    def profiles(self) -> dict[str, tuple[int, ...]]:
        """Fields that are read with some indices only, everywhere with the same, with the axes of these."""
        found: dict[str, set[tuple[int, ...]]] = {}
        for part in self.parts:
            for each, names in _read_as(part):
                for f in each.fields:
                    axes = each.profiles.get(f, tuple(range(self.ndim)))
                    found.setdefault(names.get(f, f), set()).add(axes)
        only = {name: next(iter(axes)) for name, axes in found.items() if len(axes) == 1}
        return {name: axes for name, axes in only.items() if len(axes) < self.ndim}

    def profile_values(self, given: Mapping[str, Any]) -> dict[str, tuple[tuple[int, ...], Any]]:
        """Axes and values of every profile.

        Args:
            given: values, or (axes, values), by name; what the stencils read with some indices only must be among them.

        Raises:
            StencilError: for a profile without values, or axes that are unknown or other than those of the stencils.
        """
        known = self.profiles
        if missing := [name for name in known if name not in given]:
            raise StencilError(
                f"{missing[0]!r} is read with some indices only: give profiles={{{missing[0]!r}: values}}"
            )
        found = {}
        for name, value in given.items():
            axes, values = value if isinstance(value, tuple) and len(value) == 2 else (known.get(name), value)
            if axes is None:
                raise StencilError(f"say along which axes {name!r} varies: profiles={{{name!r}: (axes, values)}}")
            if name in known and tuple(axes) != known[name]:
                raise StencilError(f"{name!r} is read along the axes {known[name]}, its values are along {tuple(axes)}")
            found[name] = (tuple(axes), values)
        return found

    def _default_advance(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for p in self.parts:
            if isinstance(p, Integrate):
                found |= dict(zip(p.state, p.outputs(), strict=True))
                found |= dict(zip(p.older, p.state, strict=False))
        if found:
            return found
        only = self.parts[0]
        if len(self.parts) > 1 or isinstance(only, Integrate) or len(only.outputs()) != 1:
            raise StencilError(
                f"say which fields continue as which: advance={{field: new field}}; new fields are {list(self.made)}"
            )
        return {only.inputs()[0]: only.outputs()[0]}

    def _check(self) -> None:
        known = {*self.state, *self.made}
        for name, value in self.advance.items():
            if name in self.made:
                raise StencilError(f"{name!r} is computed in every step, so it cannot be a field of the state")
            if value not in known:
                raise StencilError(f"{name!r} advances to {value!r}; fields are {sorted(known)}")
        for p in self.parts:
            for result, source in getattr(p, "onto", {}).items():
                if result not in p.outputs() or source not in known:
                    raise StencilError(f"onto={{{result!r}: {source!r}}}: fields are {sorted(known)}")

    @property
    def scalars(self) -> tuple[str, ...]:
        """Run-time scalars of all stencils."""
        found: list[str] = []
        for p in self.parts:
            if isinstance(p, Integrate):
                found += [*(s for r in p.rates for s in r.scalars), p.dt]
            else:
                found += [s for piece in p.all() for s in piece.scalars()]
        return tuple(dict.fromkeys(found))

    def module(self, dtype: str) -> ModuleOp:
        """The step program: one `timestep.step` and the level-2 functions it sweeps."""
        return _Builder(self, dtype).build()


def _part(part: Stencil | Piece | Part) -> Part:
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


def _stencils(part: Part) -> list[Stencil]:
    return list(part.rates) if isinstance(part, Integrate) else [p.stencil for p in part.all()]


def _read_as(part: Part) -> list[tuple[Stencil, Mapping[str, str]]]:
    """Stencils with the names of the step for some of their parameters."""
    return [(r, {}) for r in part.rates] if isinstance(part, Integrate) else [(p.stencil, p.names) for p in part.all()]


def _rank(parts: Sequence[Part]) -> int:
    ranks = {f.name: f.ndim for p in parts for f in _stencils(p)}
    if len(set(ranks.values())) != 1:
        raise StencilError(f"stencils of one system have one number of dimensions, got {ranks}")
    return next(iter(ranks.values()))


def _made(parts: Sequence[Part]) -> dict[str, int]:
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


def _ordered(parts: list[Part], made: Mapping[str, int]) -> list[Part]:
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


class _Builder:
    def __init__(self, system: System, dtype: str) -> None:
        self.system, self.dtype = system, dtype
        self.functions: dict[object, Definition] = {}
        self.module = ModuleOp([])

    def build(self) -> ModuleOp:
        s = self.system
        temp = stencil.TempType(IntAttr(s.ndim), ELEMENT_TYPES[self.dtype])
        block = Block(arg_types=[temp] * len(s.state))
        values: dict[str, SSAValue] = dict(zip(s.state, block.args, strict=True))
        for name, value in values.items():
            value.name_hint = name
        for part in s.parts:
            op = self._integrate(part, values) if isinstance(part, Integrate) else self._sweep(part, values, temp)
            block.add_op(op)
            for name, result in zip(part.outputs(), op.results_, strict=True):
                values[name] = result
                result.name_hint = name
        block.add_op(YieldOp([values[s.advance.get(name, name)] for name in s.state]))
        symbol = "timestep"
        while symbol in {the_func(d.stencil).sym_name.data for d in self.functions.values()}:
            symbol += "_"
        step = StepOp(symbol, s.ndim, s.state, Region(block))
        self.module.body.block.add_op(step)
        for name, later in s.advance.items():
            if later in s.made:
                set_origin(step, later, name)
        self.module.verify()
        return self.module

    def _function(self, key: object, definition: Definition) -> str:
        """Add a stencil's function once, under a name of its own."""
        if key not in self.functions:
            function = the_func(definition.stencil).clone()
            taken = {the_func(d.stencil).sym_name.data for d in self.functions.values()}
            if function.sym_name.data in taken:
                raise StencilError(f"two stencils are called {function.sym_name.data!r}; rename one")
            self.functions[key] = definition
            self.module.body.block.add_op(function)
        return the_func(self.functions[key].stencil).sym_name.data

    def _sweep(self, sweep: Sweep, values: Mapping[str, SSAValue], temp: Attribute) -> SweepOp:
        body = Block()
        for p in sweep.all():
            if len(p.outputs()) != len(p.stencil.outputs):
                raise StencilError(f"{p.stencil.name} has {len(p.stencil.outputs)} outputs, gives={list(p.outputs())}")
            if unknown := set(p.names) - {*p.stencil.fields, *p.stencil.scalars}:
                raise StencilError(f"{p.stencil.name} has no parameters {sorted(unknown)}")
            symbol = self._function(id(p.stencil), Definition.of(p.stencil, self.dtype))
            body.add_op(PieceOp(symbol, [values[f] for f in p.fields()], p.scalars(), p.outputs(), p.box))
        onto = {name: values[source] for name, source in sweep.onto.items()}
        return SweepOp(sweep.outputs(), [temp] * len(sweep.outputs()), Region(body), onto)

    def _integrate(self, part: Integrate, values: Mapping[str, SSAValue]) -> IntegrateOp:
        rates = tuple(part.rates)
        whole = fuse(rates, self.dtype, None) if len(rates) > 1 else Definition.of(rates[0], self.dtype)
        symbol = self._function(tuple(map(id, rates)), whole)
        fields = list(whole.fields)
        if missing := [name for name in part.state if name not in fields]:
            raise StencilError(f"the rates do not read {missing}; every field of the state is a field of its rates")
        return IntegrateOp(
            part.method,
            symbol,
            [values[f] for f in fields],
            whole.scalars,
            [fields.index(name) for name in part.state],
            part.dt,
            part.outputs(),
            [values[name] for name in part.older],
            part.time,
        )
