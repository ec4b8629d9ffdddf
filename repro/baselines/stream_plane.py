"""What a streaming kernel loads of one plane, and the sums it forms of it, for all cells of a thread."""

from __future__ import annotations

from repro.baselines.groups import Block, Group, relu_text, signed_sum, source_text


class Plane:
    """Loads and sums of one plane.

    Args:
        relu: values are replaced by twice max(value, 0).
        stride_y: elements between rows.
        at: the plane's distance from the pointers, in elements.
    """

    def __init__(self, relu: bool, stride_y: int, block: Block, at: int) -> None:
        self._relu, self._stride_y, self._block, self._at = relu, stride_y, block, at
        self.pairs: set[tuple[str, int, int]] | None = None  # (field, row, pair) of which both halves are read
        self.read: set[tuple[str, int, int]] = set()

    def field(self, field: str, row: int, z: int) -> str:
        """The value of a field in row `row` of the thread, `z` cells from its first cell."""
        self.read.add((field, row, z))
        index = self._at + row * self._stride_y
        pair = z // 2
        if self.pairs is None or (field, row, pair) not in self.pairs:
            return self._block.let(f"{field}[{index + z}]", field)
        wide = self._block.let(
            f"*reinterpret_cast<const double2*>({field} + {index + 2 * pair})", field, "const double2"
        )
        return f"{wide}.{'xy'[z % 2]}"

    def value(self, group: Group, row: int, cell: int) -> str:
        """A group's sum for one output cell."""
        parts = []
        for dy, zset in group.rows:
            leaves = [(self._source(group, row + dy, cell + dz), sign) for dz, sign in zset]
            if len(leaves) == 1:
                parts.append(leaves[0])
            elif all(sign < 0 for _, sign in leaves):
                parts.append((self._block.let(signed_sum((n, 1) for n, _ in leaves), "s"), -1))
            else:
                parts.append((self._block.let(signed_sum(leaves), "s"), 1))
        return parts[0][0] if parts == [(parts[0][0], 1)] else self._block.let(signed_sum(parts), "g")

    def _source(self, group: Group, row: int, z: int) -> str:
        fields = {f for product in group.source for f in product}
        value = {f: self.field(f, row, z) for f in sorted(fields)}
        if self._relu:
            value = {f: self._block.let(relu_text(v), "r") for f, v in value.items()}
        text = source_text(group.source, value, self._block)
        return text if group.source == ((text,),) or text in value.values() else self._block.let(text, "p")
