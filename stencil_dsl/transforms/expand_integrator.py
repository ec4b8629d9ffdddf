"""Pass `expand-integrator`: a step of an integrator becomes one sweep a stage, with its sums inside the kernel.

Each stage evaluates the rate of change k of the current values v and combines it, in the same kernel, with what the
method still needs: the values u at the start of the step, or a running sum s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, stencil
from xdsl.dialects.builtin import FloatAttr, ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass

from stencil_dsl.dialects.timestep import IntegrateOp, PieceOp, StepOp, SweepOp, names, texts
from stencil_dsl.errors import StencilError
from stencil_dsl.transforms import analysis, steps
from stencil_dsl.transforms.pipeline import PassManager

CLEAN_UP = "fold-constants,stencil-cse,stencil-dce,footprint,roofline"


@dataclass(frozen=True)
class Combination:
    """`start` u + `current` v + `other` s + `rate` dt^`power` k; s is the running sum, or the older level."""

    start: float = 0.0
    current: float = 0.0
    other: float = 0.0
    rate: float = 1.0
    power: int = 1


@dataclass(frozen=True)
class Stage:
    """What a stage hands on: the next values, and the next running sum where the method has one.

    Attributes:
        time: the rate is evaluated at t + time dt.
    """

    next: Combination
    sum: Combination | None = None
    time: float = 0.0


C = Combination
STAGES: dict[str, tuple[Stage, ...]] = {
    "euler": (Stage(C(current=1)),),
    "leapfrog": (Stage(C(other=1, rate=2)),),
    "verlet": (Stage(C(current=2, other=-1, rate=1, power=2)),),
    # Shu and Osher's forms: convex combinations of Euler steps.
    "ssp-rk2": (Stage(C(current=1)), Stage(C(start=1 / 2, current=1 / 2, rate=1 / 2), time=1.0)),
    "ssp-rk3": (
        Stage(C(current=1)),
        Stage(C(start=3 / 4, current=1 / 4, rate=1 / 4), time=1.0),
        Stage(C(start=1 / 3, current=2 / 3, rate=2 / 3), time=0.5),
    ),
    "rk4": (
        Stage(C(current=1, rate=1 / 2), C(current=1, rate=1 / 6)),
        Stage(C(start=1, rate=1 / 2), C(other=1, rate=1 / 3), time=0.5),
        Stage(C(start=1), C(other=1, rate=1 / 3), time=0.5),
        Stage(C(other=1, rate=1 / 6), time=1.0),
    ),
}


@dataclass(frozen=True)
class ExpandIntegratorPass(ModulePass):
    """Replace every `timestep.integrate` by sweeps over stage kernels, which join the module.

    A stage kernel takes the rate's fields with the state's current values, then `NAME_start` and `NAME_sum` (or
    `NAME_older`) as far as the stage needs them; its scalars are the rate's and dt.
    """

    name = "expand-integrator"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for child in list(op.walk()):
            if isinstance(child, IntegrateOp):
                Expansion(op, child).run()


class Expansion:
    """The replacement of one operation."""

    def __init__(self, module: ModuleOp, op: IntegrateOp) -> None:
        self.module, self.op = module, op
        self.kernel = steps.callee(module, op.callee.string_value())
        self.method, self.dt = op.method.data, op.dt.data
        self.state = [int(i) for i in op.state.get_values()]
        if len(self.kernel.outputs) != len(self.state):
            raise StencilError(
                f"@{self.kernel.name} gives {len(self.kernel.outputs)} rates for {len(self.state)} fields of the state"
            )
        if op.time is not None and op.time.data not in self.kernel.scalars:
            raise StencilError(f"the time {op.time.data!r} is no scalar of @{self.kernel.name}")
        step = op.parent_op()
        assert isinstance(step, StepOp)
        self.step, self.taken = step, set(step.value_names())

    def run(self) -> None:
        start = [self.op.fields[i] for i in self.state]
        current, other = list(start), list(self.op.older)
        block = self.op.parent
        assert block is not None
        stages = STAGES[self.method]
        newest = self.kernel.function
        for number, stage in enumerate(stages, 1):
            function = self._stage_kernel(number, stage)
            self.module.body.block.insert_op_after(function, newest)
            newest = function
            last = number == len(stages)
            gives = list(texts(self.op.gives)) if last else [self._new_name(i, f"stage{number}") for i in self.state]
            if stage.sum is not None:
                gives += [self._new_name(i, f"sum{number}") for i in self.state]
            sweep = self._sweep(function, stage, number == 1, current, start, other, gives)
            block.insert_op_before(sweep, self.op)
            current = list(sweep.results_[: len(self.state)])
            other = list(sweep.results_[len(self.state) :]) or other
        for old, new in zip(self.op.results_, current, strict=True):
            old.replace_all_uses_with(new)
        self.op.detach()
        self.op.erase()
        if self.kernel.name not in steps.called(self.module):
            self.kernel.function.detach()
            self.kernel.function.erase()

    def _new_name(self, field: int, suffix: str) -> str:
        own = steps.field_name(self.step, self.op.fields[field])
        name = f"{own}_{suffix}"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        steps.set_origin(self.step, name, own)
        return name

    # -- the kernels

    def _extra_fields(self, stage: Stage, first: bool) -> list[tuple[str, int]]:
        """Fields that a stage takes besides the rate's: kind and position in the state."""
        parts = [stage.next, *([stage.sum] if stage.sum else [])]
        kinds = []
        if any(p.start for p in parts) and not first:
            kinds.append("start")
        if any(p.other for p in parts):
            kinds.append("older" if self.op.older else "sum")
        return [(kind, i) for kind in kinds for i in range(len(self.state))]

    def _scalars(self) -> list[str]:
        time = [self.op.time.data] if self.op.time is not None else []
        return list(dict.fromkeys([*self.kernel.scalars, self.dt, *time]))

    def _stage_kernel(self, number: int, stage: Stage) -> func.FuncOp:
        """Name and body of the kernel of one stage; footprint and counts included."""
        name = f"{self.kernel.name}_{self.method.replace('-', '_')}_{number}"
        extra = self._extra_fields(stage, number == 1)
        field_names = [*self.kernel.fields, *(f"{self.kernel.fields[self.state[i]]}_{kind}" for kind, i in extra)]
        scalars = self._scalars()
        if len({*field_names, *scalars}) < len(field_names) + len(scalars):
            raise StencilError(f"names of the fields and scalars of @{name} must differ: {field_names}, {scalars}")
        temp = self.kernel.apply.res[0].type
        assert isinstance(temp, stencil.TempType)
        types = [temp] * len(field_names) + [temp.element_type] * len(scalars)
        inner, outer = Block(arg_types=types), Block(arg_types=types)
        for block in (inner, outer):
            for argument, label in zip(block.args, field_names + scalars, strict=True):
                argument.name_hint = label
        results = StageBody(self, inner, stage, extra, dict(zip(field_names + scalars, inner.args, strict=True))).run()
        inner.add_op(stencil.ReturnOp.build(operands=[results]))
        apply = stencil.ApplyOp(list(outer.args), Region(inner), [temp] * len(results))
        outer.add_ops([apply, func.ReturnOp(*apply.res)])
        function = func.FuncOp(name, (types, [temp] * len(results)), Region(outer))
        outputs = [name] if len(results) == 1 else [f"{name}_{i}" for i in range(len(results))]
        for key, labels in (("fields", field_names), ("scalars", scalars), ("outputs", outputs)):
            function.attributes[key] = names(labels)
        wrapper = ModuleOp([function])
        PassManager.from_spec(CLEAN_UP).run(wrapper)
        function.detach()
        return function

    # -- the sweeps

    def _sweep(
        self,
        function: func.FuncOp,
        stage: Stage,
        first: bool,
        current: Sequence[SSAValue],
        start: Sequence[SSAValue],
        other: Sequence[SSAValue],
        gives: Sequence[str],
    ) -> SweepOp:
        fields = list(self.op.fields)
        for i, value in zip(self.state, current, strict=True):
            fields[i] = value
        sources = {"start": start, "sum": other, "older": other}
        fields += [sources[kind][i] for kind, i in self._extra_fields(stage, first)]
        given = dict(zip(self.kernel.scalars, texts(self.op.scalars), strict=True))
        piece = PieceOp(function.sym_name.data, fields, [given.get(s, s) for s in self._scalars()], gives)
        types = [current[n % len(current)].type for n in range(len(gives))]
        sweep = SweepOp(gives, types, Region(Block([piece])))
        for result, name in zip(sweep.results_, gives, strict=True):
            result.name_hint = name
        return sweep


class StageBody:
    """Writes the body of a stage kernel: the rate's operations, then the combinations."""

    def __init__(
        self,
        expansion: Expansion,
        block: Block,
        stage: Stage,
        extra: Sequence[tuple[str, int]],
        arguments: dict[str, SSAValue],
    ) -> None:
        self.e, self.block, self.stage, self.arguments = expansion, block, stage, arguments
        self.element = analysis.element_type(expansion.kernel.apply)
        self.extra = set(extra)

    def add(self, op: arith.AddfOp | arith.MulfOp | arith.ConstantOp | stencil.AccessOp) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def constant(self, value: float) -> SSAValue:
        return self.add(arith.ConstantOp(FloatAttr(value, self.element)))

    def times(self, factor: float, value: SSAValue) -> SSAValue:
        return value if factor == 1 else self.add(arith.MulfOp(self.constant(factor), value))

    def run(self) -> list[SSAValue]:
        rates = self._rates()
        parts = [self.stage.next, *([self.stage.sum] if self.stage.sum else [])]
        return [self._combine(part, i, rate) for part in parts for i, rate in enumerate(rates)]

    def _rates(self) -> list[SSAValue]:
        kernel = self.e.kernel
        labels = [*kernel.fields, *kernel.scalars]
        values: dict[SSAValue, SSAValue] = {
            old: self.arguments[label] for old, label in zip(kernel.apply.region.block.args, labels, strict=True)
        }
        time = self.e.op.time
        if time is not None and self.stage.time:
            for old, label in zip(kernel.apply.region.block.args, labels, strict=True):
                if label == time.data:
                    shift = self.times(self.stage.time, self.arguments[self.e.dt])
                    values[old] = self.add(arith.AddfOp(self.arguments[label], shift))
        for op in kernel.apply.region.block.ops:
            if isinstance(op, stencil.ReturnOp):
                return [values[a] for a in op.arg]
            self.block.add_op(op.clone(values))
        raise StencilError(f"@{kernel.name} returns nothing")

    def _centre(self, label: str) -> SSAValue:
        access = stencil.AccessOp(self.arguments[label], (0,) * self.e.kernel.apply.get_rank())
        return self.add(access)

    def _combine(self, part: Combination, i: int, rate: SSAValue) -> SSAValue:
        own = self.e.kernel.fields[self.e.state[i]]
        other = "older" if self.e.op.older else "sum"
        # Before the first stage the current values are those at the start.
        begin = f"{own}_start" if ("start", i) in self.extra else own
        factor = self.arguments[self.e.dt]
        for _ in range(part.power - 1):
            factor = self.add(arith.MulfOp(factor, self.arguments[self.e.dt]))
        terms = [(part.start, begin), (part.current, own), (part.other, f"{own}_{other}")]
        total: SSAValue | None = None
        for weight, label in terms:
            if weight:
                term = self.times(weight, self._centre(label))
                total = term if total is None else self.add(arith.AddfOp(total, term))
        term = self.add(arith.MulfOp(self.times(part.rate, factor), rate))
        return term if total is None else self.add(arith.AddfOp(total, term))
