"""Read helpers on modules that hold a `timestep.step` beside the level-2 functions it sweeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import func, stencil
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import SSAValue

from stencil_dsl.dialects.timestep import IntegrateOp, PieceOp, StepOp, SweepOp, YieldOp
from stencil_dsl.errors import StencilError
from stencil_dsl.transforms import analysis


def the_step(module: ModuleOp) -> StepOp:
    """The one step of a module; StencilError if there is none or more than one."""
    found = [op for op in module.walk() if isinstance(op, StepOp)]
    if len(found) != 1:
        raise StencilError(f"expected a module with exactly one timestep.step, found {len(found)}")
    return found[0]


@dataclass(frozen=True)
class Callee:
    """A level-2 function as sweeps see it."""

    function: func.FuncOp
    apply: stencil.ApplyOp

    @property
    def name(self) -> str:
        return self.function.sym_name.data

    def _names(self, key: str) -> tuple[str, ...]:
        attr = self.function.attributes.get(key)
        if not isinstance(attr, ArrayAttr):
            raise StencilError(f"func.func @{self.name} needs an attribute {key!r}")
        return tuple(a.data for a in attr if isinstance(a, StringAttr))

    @property
    def fields(self) -> tuple[str, ...]:
        return self._names("fields")

    @property
    def scalars(self) -> tuple[str, ...]:
        return self._names("scalars")

    @property
    def outputs(self) -> tuple[str, ...]:
        return self._names("outputs")

    def offsets(self, field: int) -> list[tuple[int, ...]]:
        """Where a field is read, relative to the cell that is computed."""
        return [offset for index, offset in analysis.accesses(self.apply) if index == field]

    def beyond(self, field: int) -> list[tuple[int, ...]]:
        """The same as far as ghost cells are concerned: periodic rows have none at their ends."""
        found = self.offsets(field)
        if analysis.periodic_rows(self.apply, len(self.fields))[field]:
            return [(*offset[:-1], 0) for offset in found]
        return found

    def pointwise(self, field: int) -> bool:
        """Whether a field is read at the cell itself only, or not at all."""
        return not any(any(offset) for offset in self.offsets(field))


def callee(module: ModuleOp, name: str) -> Callee:
    """The function of that name with its one apply.

    Raises:
        StencilError: where the module has no such function, or it holds not exactly one stencil.apply.
    """
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == name:
            applies = [a for a in op.walk() if isinstance(a, stencil.ApplyOp)]
            if len(applies) != 1:
                raise StencilError(f"func.func @{name} needs exactly one stencil.apply, it has {len(applies)}")
            return Callee(op, applies[0])
    raise StencilError(f"the step sweeps @{name}, which the module does not define")


Ranges = tuple[tuple[int, int], ...]


def reads(module: ModuleOp, sweep: SweepOp) -> Iterator[tuple[SSAValue, Callee, int, Ranges | None]]:
    """What a sweep reads: field, kernel, position among the kernel's fields, and the box it is read for."""
    for piece in sweep.pieces:
        kernel = callee(module, piece.callee.string_value())
        if len(kernel.fields) != len(piece.fields):
            raise StencilError(f"@{kernel.name} takes {len(kernel.fields)} fields, a piece passes {len(piece.fields)}")
        for index, value in enumerate(piece.fields):
            yield value, kernel, index, piece.box


def called(module: ModuleOp) -> set[str]:
    """Names of the functions that steps of the module still use."""
    return {op.callee.string_value() for op in module.walk() if isinstance(op, PieceOp | IntegrateOp)}


def field_name(step: StepOp, value: SSAValue) -> str:
    """Name of a field of the step."""
    for name, known in step.named_values():
        if known is value:
            return name
    raise StencilError("a value of the step has no name")


def yielded(step: StepOp) -> tuple[SSAValue, ...]:
    """What the state holds after the step."""
    last = step.body.block.last_op
    assert isinstance(last, YieldOp)
    return tuple(last.values)


def constants(step: StepOp) -> set[SSAValue]:
    """Fields of the state that a step leaves as they are."""
    return {a for a, after in zip(step.body.block.args, yielded(step), strict=True) if a is after}


def origin(step: StepOp, name: str) -> str:
    """The field that a new field is a later value of, by the step's attribute `continues`; else the name itself."""
    attr = step.attributes.get("continues")
    seen = [name]
    while isinstance(attr, DictionaryAttr) and isinstance(source := attr.data.get(seen[-1]), StringAttr):
        if source.data in seen:
            raise StencilError(f"the fields {seen} continue each other")
        seen.append(source.data)
    return seen[-1]


def set_origin(step: StepOp, name: str, source: str) -> None:
    """Record that a new field is a later value of another."""
    attr = step.attributes.get("continues")
    known = dict(attr.data) if isinstance(attr, DictionaryAttr) else {}
    step.attributes["continues"] = DictionaryAttr({**known, name: StringAttr(source)})
