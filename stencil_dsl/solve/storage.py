"""Gives every field of a step a place in memory, so that no field is ever copied.

A place is a number. The state's fields start in the places 0, 1, ...; a new field goes where a field lies that nobody
needs any more and that the kernels read at the cell itself only (an update in place), else into a spare place. What
comes out is which place each field has, and the permutation of places from one step to the next: after as many steps
as its order, every field is back where it started, so that a cycle of steps has fixed addresses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import lcm

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from stencil_dsl.dialects.timestep import StepOp, SweepOp, texts
from stencil_dsl.errors import StencilError
from stencil_dsl.transforms import steps


@dataclass
class Storage:
    """Where fields live.

    Attributes:
        place: of every value of the step.
        count: how many places there are.
        moves: for each place, the place whose memory it has in the next step.
        inplace: names of results that overwrite a field, with that field's name.
    """

    place: dict[SSAValue, int]
    count: int
    moves: tuple[int, ...]
    inplace: dict[str, str] = field(default_factory=dict)

    @property
    def cycle(self) -> int:
        """Steps after which every field is back in its place."""
        length, seen = 1, set[int]()
        for start in range(self.count):
            size, at = 0, start
            while at not in seen:
                seen.add(at)
                at, size = self.moves[at], size + 1
            length = lcm(length, max(size, 1))
        return length

    def buffers(self, phase: int) -> tuple[int, ...]:
        """For each place, which buffer it is after `phase` steps of a cycle."""
        now = tuple(range(self.count))
        for _ in range(phase):
            now = tuple(now[m] for m in self.moves)
        return now


def assign(module: ModuleOp) -> Storage:
    """Plan the memory of the module's step.

    Raises:
        StencilError: where a field must be updated in place and cannot, or the next state holds one field twice.
    """
    return _Planner(module, steps.the_step(module)).run()


class _Planner:
    def __init__(self, module: ModuleOp, step: StepOp) -> None:
        self.module, self.step = module, step
        self.place: dict[SSAValue, int] = {a: i for i, a in enumerate(step.body.block.args)}
        self.count = len(self.place)
        self.free: list[int] = []
        self.inplace: dict[str, str] = {}
        self.after = steps.yielded(step)
        self.sweeps = [op for op in step.body.block.ops if isinstance(op, SweepOp)]
        self.last_use: dict[SSAValue, int] = {}
        for index, sweep in enumerate(self.sweeps):
            for value in (*sweep.inputs(), *sweep.onto):
                self.last_use[value] = index

    def run(self) -> Storage:
        names = texts(self.step.state)
        if len(set(self.after)) < len(self.after):
            twice = [n for n, v in zip(names, self.after, strict=True) if list(self.after).count(v) > 1]
            raise StencilError(f"after a step {' and '.join(twice)} would be the same field; compute one of them anew")
        for index, sweep in enumerate(self.sweeps):
            self._sweep(index, sweep)
        return Storage(self.place, self.count, self._moves(), self.inplace)

    def _sweep(self, index: int, sweep: SweepOp) -> None:
        usable = self._overwritable(index, sweep)
        onto = dict(zip(texts(sweep.kept), sweep.onto, strict=True))
        for name, value in onto.items():
            if value not in usable:
                raise StencilError(self._why_not(index, sweep, name, value))
            usable.remove(value)
        for name, result in zip(texts(sweep.gives), sweep.results_, strict=True):
            target = onto.get(name) or (usable.pop(0) if usable else None)
            if target is not None:
                self.place[result] = self.place[target]
                self.inplace[name] = steps.field_name(self.step, target)
            elif self.free:
                self.place[result] = self.free.pop()
            else:
                self.place[result], self.count = self.count, self.count + 1
        taken = {self.place[r] for r in sweep.results_}
        for value in dict.fromkeys((*sweep.inputs(), *sweep.onto)):
            if self._dead(value, index) and self.place[value] not in taken:
                self.free.append(self.place[value])
        for result in sweep.results_:
            if result not in self.last_use and result not in self.after:
                self.free.append(self.place[result])

    def _dead(self, value: SSAValue, index: int) -> bool:
        return self.last_use[value] == index and value not in self.after

    def _overwritable(self, index: int, sweep: SweepOp) -> list[SSAValue]:
        """Fields that the sweep may overwrite, in the order in which it reads them."""
        pointwise: dict[SSAValue, bool] = dict.fromkeys(sweep.onto, True)
        for value, kernel, position, _ in steps.reads(self.module, sweep):
            pointwise[value] = pointwise.get(value, True) and kernel.pointwise(position)
        return [v for v, at_point in pointwise.items() if at_point and self._dead(v, index)]

    def _why_not(self, index: int, sweep: SweepOp, name: str, value: SSAValue) -> str:
        own = steps.field_name(self.step, value)
        text = f"{name!r} keeps cells of {own!r}, so it must be updated in place, but "
        if value in self.after:
            return text + f"{own!r} is needed in the next step"
        if self.last_use[value] != index:
            return text + f"{own!r} is read again later in the step"
        return text + f"{own!r} is read at neighbouring cells; let pieces cover the whole interior, or copy the field"

    def _moves(self) -> tuple[int, ...]:
        """Next state's places; spare places keep their memory where they can."""
        moves: list[int | None] = [self.place[v] for v in self.after] + [None] * (self.count - len(self.after))
        left = set(range(self.count)) - {m for m in moves if m is not None}
        for spare in range(len(self.after), self.count):
            if spare in left:
                moves[spare] = spare
                left.discard(spare)
        rest = sorted(left)
        return tuple(rest.pop(0) if m is None else m for m in moves)
