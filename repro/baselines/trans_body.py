"""The text of a brick kernel: straight code, all planes of a brick and its surroundings one after the other.

The cells that a brick needs of its neighbours along z come in one vector: its low lanes hold the first cells of
the next brick, its high lanes the last cells of the previous one, so that a rotation brings either to its place.
Along y the same is done where the reach leaves room in the fold.
"""

from __future__ import annotations

from repro.baselines.base import Shape, parameters
from repro.baselines.bricks import NEIGHBOURS
from repro.baselines.groups import (
    Block,
    Group,
    contributions,
    plane_groups,
    relu_text,
    scale,
    signed_sum,
    source_text,
)
from repro.baselines.model import Model, Source

#: A row of vectors: its index in the brick, or BOTH for the one that serves both neighbours along y.
BOTH = "both"
Row = int | str


class Scatter:
    """Writes the kernel of one output."""

    def __init__(self, model: Model, name: str, brick: Shape, warps: int, blocks: int, count: int) -> None:
        self.model, self.name, self.warps, self.blocks, self.count = model, name, warps, blocks, count
        self.bx, self.by, self.bz = brick
        self.fold_y = 32 // self.bz
        self.rows = self.by // self.fold_y  # vectors of a plane
        self.reach, self.reach_y, self.reach_z = model.radius
        self.merged = 2 * self.reach_y <= self.fold_y
        self.groups = plane_groups(model.sums[0])
        self.block = Block()
        self._opened: set[str] = set()

    def text(self) -> str:
        """The whole source."""
        bounds = f"{32 * self.warps}" + (f", {self.blocks}" if self.blocks else "")
        tables = "const int* __restrict__ bricks, const int* __restrict__ near"
        self._place()
        self._body()
        lines = [
            f'extern "C" __global__ void __launch_bounds__({bounds})',
            f"{self.name}({parameters(self.model.fields, self.model.outputs)}, {tables}) {{",
            *self.block.lines,
            "}",
            "",
        ]
        return "\n".join(lines)

    def _body(self) -> None:
        for x in range(-self.reach, self.bx + self.reach):
            self._plane(x)

    def _place(self) -> None:
        add = self.block.add
        add("const int lane = threadIdx.x;")
        add(f"const int lane_z = lane & {self.bz - 1};")
        add(f"const int lane_y = lane / {self.bz};")
        if self.count % self.warps:
            add(f"if (blockIdx.x * {self.warps} + threadIdx.y >= {self.count}) return;")
        add(f"const int brick = bricks[blockIdx.x * {self.warps} + threadIdx.y];")
        add("near += brick * 27;")

    def _plane(self, x: int) -> None:
        """Scatters plane x to the outputs of planes x - reach .. x + reach, and stores the one that is done."""
        sums = self.model.outputs[0]
        factor = scale(self.model)
        for row in range(self.rows):
            by_dx: dict[int, list[tuple[float, str]]] = {}
            for group in self.groups:
                wanted = [(dx, c) for dx, c in group.by_dx if 0 <= x - dx < self.bx]
                if wanted:
                    value = self._value(group, x, row)
                for dx, c in wanted:
                    by_dx.setdefault(dx, []).append((factor * c, value))
            for dx, text in contributions(by_dx, self.block).items():
                self._add(f"{sums}_{x - dx}_{row}", text)
            done = x - self.reach
            if done >= 0:
                self._store(done, row)

    def _add(self, name: str, text: str) -> None:
        """Adds to an open sum, or opens it."""
        opened = name in self._opened
        self.block.add(f"{name} = {name} + {text};" if opened else f"double {name} = {text};")
        self._opened.add(name)

    def _store(self, x: int, row: int) -> None:
        output = self.model.outputs[0]
        centre = {f: self._load(f, x, row, False) for f in self.model.finish_fields}
        value = self.model.finish.format(s=f"{output}_{x}_{row}", **centre)
        here = self.block.let(f"brick * {self._volume} + lane", "own", "const int")
        self.block.add(f"{output}[{here} + {self._vector(x, row)}] = {value};")

    @property
    def _volume(self) -> int:
        return self.bx * self.by * self.bz

    def _vector(self, x: int, row: int) -> int:
        """Offset of a vector in its brick."""
        return ((x % self.bx) * self.rows + row) * 32

    # Values, from sums of shifted vectors down to loads.

    def _value(self, group: Group, x: int, row: int) -> str:
        """A group's sum for the cells of a vector."""
        parts = [(self._row_sum(group.source, x, row, dy, zset), 1) for dy, zset in group.rows]
        if len(parts) == 1:
            return parts[0][0]
        return self.block.let(signed_sum(parts), "g")

    def _row_sum(self, source: Source, x: int, row: int, dy: int, zset: tuple[tuple[int, int], ...]) -> str:
        """The signed sum over dz, dy rows away: summed where the rows are, then moved as one vector."""
        step, rest = divmod(dy, self.fold_y)
        near = self._z_sum(source, x, self._row(row + step), zset)
        if rest == 0:
            return near
        far = self._z_sum(source, x, self._row(row + step + 1), zset)
        # A lane sends what the lane `rest` rows before it needs: the low rows are asked for by those that wrap.
        sent = self.block.let(f"lane_y < {rest} ? {far} : {near}", "send")
        place = self.block.let(f"(lane + {rest * self.bz}) & 31", "from", "const int")
        return self.block.let(f"__shfl_sync(0xffffffffu, {sent}, {place})", "y")

    def _row(self, row: int) -> Row:
        return BOTH if self.merged and not 0 <= row < self.rows else row

    def _z_sum(self, source: Source, x: int, row: Row, zset: tuple[tuple[int, int], ...]) -> str:
        parts = [(self._shifted(source, x, row, dz), sign) for dz, sign in zset]
        return parts[0][0] if parts == [(parts[0][0], 1)] else self.block.let(signed_sum(parts), "s")

    def _shifted(self, source: Source, x: int, row: Row, dz: int) -> str:
        own = self._source(source, x, row, False)
        if dz == 0:
            return own
        around = self._source(source, x, row, True)
        rest = dz % self.bz
        chosen = f"{around} : {own}" if dz > 0 else f"{own} : {around}"
        sent = self.block.let(f"lane_z < {rest} ? {chosen}", "send")
        place = self.block.let(f"(lane - lane_z) | ((lane_z + {rest}) & {self.bz - 1})", "from", "const int")
        return self.block.let(f"__shfl_sync(0xffffffffu, {sent}, {place})", "z")

    def _source(self, source: Source, x: int, row: Row, around: bool) -> str:
        """Products are formed before they are moved: one shuffle for two fields."""
        value = {f: self._load(f, x, row, around) for f in sorted({f for p in source for f in p})}
        if self.model.relu:
            value = {f: self.block.let(relu_text(v), "r") for f, v in value.items()}
        text = source_text(source, value, self.block)
        return text if text in value.values() else self.block.let(text, "p")

    # Loads.

    def _load(self, field: str, x: int, row: Row, around: bool) -> str:
        """A vector; with `around` the cells before and behind it along z."""
        x_brick = -1 if x < 0 else 1 if x >= self.bx else 0
        place, needed = self._address(x_brick, row, around)
        inner = row % self.rows if isinstance(row, int) else 0
        value = f"{field}[{place} + {self._vector(x, inner)}]"
        return self.block.let(f"{needed} ? {value} : 0.0" if needed else value, field)

    def _address(self, x_brick: int, row: Row, around: bool) -> tuple[str, str]:
        """Index of the lane's cell in vector 0 of the brick it reads, and the condition that it reads at all."""
        low_y = f"lane_y < {self.reach_y}"
        if isinstance(row, int):
            choices = [(-1 if row < 0 else 1 if row >= self.rows else 0, "")]
        else:  # low rows come from the next brick's first vector, high rows from the previous one's last
            choices = [(1, low_y), (-1, "")]
        texts = []
        for y_brick, _ in choices:
            brick = self._near(x_brick, y_brick, 0)
            if around:
                after, before = self._near(x_brick, y_brick, 1), self._near(x_brick, y_brick, -1)
                brick = f"(lane_z < {self.reach_z} ? {after} : {before})"
            last = (self.rows - 1) * 32 if row == BOTH and y_brick < 0 else 0
            texts.append(f"{brick} * {self._volume} + lane" + (f" + {last}" if last else ""))
        text = texts[0] if len(texts) == 1 else f"{low_y} ? {texts[0]} : {texts[1]}"
        conditions = []
        if around and 2 * self.reach_z < self.bz:
            conditions.append(f"(lane_z < {self.reach_z} || lane_z >= {self.bz - self.reach_z})")
        if row == BOTH and 2 * self.reach_y < self.fold_y:
            conditions.append(f"({low_y} || lane_y >= {self.fold_y - self.reach_y})")
        needed = self.block.let(" && ".join(conditions), "need", "const bool") if conditions else ""
        return self.block.let(text, "at", "const int"), needed

    def _near(self, x: int, y: int, z: int) -> str:
        if (x, y, z) == (0, 0, 0):
            return "brick"
        return self.block.let(f"near[{NEIGHBOURS.index((x, y, z))}]", "brick", "const int")
