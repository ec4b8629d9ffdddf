"""Device functions of the shuffle schedule: what one thread does with the rows that its warp holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xdsl.ir import SSAValue

from stencil_dsl.schedule.builder import Numbering, Value
from stencil_dsl.tilelib.exports import LLVM_TYPES, Export, Parameter
from stencil_dsl.tilelib.layouts import Layout, warpwise
from stencil_dsl.tilelib.nvvm import FunctionBuilder, Register

WARP = 32


class DeviceNumbering(Numbering):
    """Expressions as registers of a device function."""

    def __init__(self, function: FunctionBuilder, dtype: str, fast: bool, splat: Callable[[int], Register]) -> None:
        super().__init__((), (), fast)
        self.function, self.type, self.scalar = function, LLVM_TYPES[dtype], splat

    def _make(self, kind: str, make: Callable[[], Any], hint: str | None = None, outer: bool = False) -> Value:
        return make()

    def map_op(self, op: str, args: Sequence[Value]) -> Callable[[], Any]:
        return lambda: self.function.op(op, *args)

    def constant(self, value: float) -> Value:
        return FunctionBuilder.constant(value, self.type)

    def splat(self, scalar: Value) -> Value:
        return self.scalar(scalar)


@dataclass(frozen=True)
class Shapes:
    """Tiles of one block.

    Attributes:
        lanes: threads, or warps times invocations times 32: the extent of a tile of one element a lane.
        footprint: neighbouring elements of a row that one lane holds.
        rank: of the stencil.
    """

    lanes: int
    footprint: int
    rank: int

    @property
    def row(self) -> tuple[int, ...]:
        return (1,) * (self.rank - 1) + (self.lanes * self.footprint,)

    @property
    def lane(self) -> tuple[int, ...]:
        return (1,) * (self.rank - 1) + (self.lanes,)

    @property
    def one(self) -> tuple[int, ...]:
        return (1,) * self.rank

    def row_map(self) -> Layout:
        return warpwise(self.lanes * self.footprint, self.footprint)

    def lane_map(self) -> Layout:
        return warpwise(self.lanes)

    def one_map(self) -> Layout:
        """The same element for everybody."""
        return Layout((self.lanes // WARP, WARP, 1), (0, 0, 0))


class DeviceFunction:
    """One device function while it is written: parameters appear as they are asked for.

    Attributes:
        inputs: the tile that each input parameter is given in the call.
        results: what each output parameter is given by the function.
    """

    def __init__(self, name: str, dtype: str, shapes: Shapes, fast: bool, scalars: Callable[[int], SSAValue]) -> None:
        self.dtype, self.shapes, self.scalars = dtype, shapes, scalars
        self.code = FunctionBuilder(Export(name, f"{name}_impl", (), "warp"))
        self.b = DeviceNumbering(self.code, dtype, fast, self._scalar)
        self.inputs: list[SSAValue] = []
        self.outputs: list[Parameter] = []
        self.results: list[list[Register]] = []
        self.known: dict[SSAValue, list[Register]] = {}

    @property
    def name(self) -> str:
        return self.code.export.name

    def _input(self, tile: SSAValue, kind: str, shape: tuple[int, ...], fragmap: Layout) -> list[Register]:
        if tile not in self.known:
            number = len(self.inputs)
            p = Parameter(f"{kind}{number}", self.dtype, "in", shape, fragmap)
            self.code.export = replace(self.code.export, parameters=(*self.code.export.parameters, p))
            self.inputs.append(tile)
            self.known[tile] = [self.code.read(number, e) for e in range(p.footprint)]
        return self.known[tile]

    def row(self, tile: SSAValue) -> list[Register]:
        """This lane's elements of a row."""
        return self._input(tile, "row", self.shapes.row, self.shapes.row_map())

    def lane(self, tile: SSAValue, kind: str) -> Register:
        """This lane's element of a tile that nobody else looks into, or that was gathered by lane."""
        return self._input(tile, kind, self.shapes.lane, self.shapes.lane_map())[0]

    def _scalar(self, number: int) -> Register:
        return self._input(self.scalars(number), "scalar", self.shapes.one, self.shapes.one_map())[0]

    def neighbour(self, row: Register, halo: Register, distance: int) -> Register:
        """The element that the lane `distance` further holds; beyond the warp's ends that of the halo.

        The halo's right side lies in the first lanes, its left side in the last ones, so that one choice before the
        shuffle serves all lanes.
        """
        relation, bound = ("slt", distance) if distance > 0 else ("sge", WARP + distance)
        outside = self.code.lane_is(relation, bound)
        return self.code.shuffle(self.code.op("select", outside, halo, row), self.code.lane_plus(distance))

    def give_lane(self, value: Register) -> int:
        """Make a value a result, one element a lane; returns the result's number."""
        return self._output("acc", self.shapes.lane, self.shapes.lane_map(), [value])

    def give_row(self, values: Sequence[Register]) -> int:
        """Make a lane's elements a result in the form of a row."""
        return self._output("out", self.shapes.row, self.shapes.row_map(), list(values))

    def _output(self, kind: str, shape: tuple[int, ...], fragmap: Layout, values: list[Register]) -> int:
        self.outputs.append(Parameter(f"{kind}_new{len(self.outputs)}", self.dtype, "out", shape, fragmap))
        self.results.append(values)
        return len(self.outputs) - 1

    def finish(self) -> tuple[Export, str, list[SSAValue]]:
        """Description, code and the tiles to call it with; inputs that are not used are left out."""
        inputs = self.code.export.parameters
        self.code.export = replace(self.code.export, parameters=(*inputs, *self.outputs))
        for number, values in enumerate(self.results, start=len(inputs)):
            for element, value in enumerate(values):
                self.code.write(number, element, value)
        used = _live(self.code)
        kept = [k for k, p in enumerate(inputs) if f"%{p.name}" in used]
        parameters = (*(inputs[k] for k in kept), *self.outputs)
        self.code.export = replace(self.code.export, parameters=parameters).check()
        return self.code.export, self.code.text(), [self.inputs[k] for k in kept]


def _live(code: FunctionBuilder) -> set[str]:
    """Drop lines whose values nobody uses; returns the names that are read."""
    used: set[str] = set()
    kept: list[str] = []
    for line in reversed(code.lines):
        target, equals, right = line.partition(" = ")
        if not equals:
            right = line
        elif target not in used:
            continue
        kept.append(line)
        used |= {word.rstrip(",)") for word in right.replace("(", " ").split() if word.startswith("%")}
    code.lines[:] = reversed(kept)
    return used
