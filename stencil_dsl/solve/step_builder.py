"""The step program (IR) of a system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from xdsl.dialects import stencil
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from stencil_dsl.dialects.source import ELEMENT_TYPES
from stencil_dsl.dialects.timestep import IntegrateOp, PieceOp, StepOp, SweepOp, YieldOp
from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.runtime.fused import fuse
from stencil_dsl.solve.parts import Integrate, Sweep
from stencil_dsl.transforms.analysis import the_func
from stencil_dsl.transforms.steps import set_origin

if TYPE_CHECKING:
    from stencil_dsl.solve.system import System


class StepBuilder:
    """Makes one `timestep.step` and the level-2 functions that it sweeps."""

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
