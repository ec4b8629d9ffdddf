"""The text of a streaming kernel.

Names: ``sum_<output>_<slot>_<row>_<cell>`` is the open sum of output plane x + slot; the row is one of the U
rows of the thread, the cell one of its P cells in z. A slot moves down by one each plane, which costs nothing:
it is the destination of the addition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from repro.baselines.base import parameters
from repro.baselines.groups import Block, contributions, plane_groups, scale
from repro.baselines.model import Model
from repro.baselines.stream_plane import Plane
from stencil_dsl.schedule.layout import Layout


class Marching:
    """Writes the kernel of one model, layout and configuration."""

    def __init__(self, model: Model, layout: Layout, name: str, config: Mapping[str, Any], chunks: int) -> None:
        self.model, self.layout, self.name, self.config, self.chunks = model, layout, name, config, chunks
        self.stride_x, self.stride_y, _ = layout.strides
        self.reach = model.radius[0]
        self.u, self.p = int(config["u"]), int(config["p"])
        self.cells = [(row, cell) for row in range(self.u) for cell in range(self.p)]
        self.groups = [plane_groups(terms) for terms in model.sums]
        # Fields that the finish reads and that have passed by already are carried along.
        summed = {f for terms in model.sums for t in terms for f in t.product}
        self.carried = [f for f in model.finish_fields if f in summed]
        self.open = 2 * self.reach  # sums that are open between two planes

    def text(self) -> str:
        """The whole source."""
        z, y = int(self.config["z"]), int(self.config["y"])
        bounds = f"{z * y}, {self.config['o']}" if self.config.get("o") else f"{z * y}"
        lines = [
            f'extern "C" __global__ void __launch_bounds__({bounds})',
            f"{self.name}({self._parameters()}) {{",
            *self._place(z, y),
            *self._head(),
            *self._main(),
            *self._tail(),
            "}",
            "",
        ]
        return "\n".join(lines)

    @property
    def _arrays(self) -> tuple[str, ...]:
        return (*self.model.fields, *self.model.outputs)

    @property
    def _by_index(self) -> bool:
        """Whether the kernel carries one index instead of a pointer an array: fewer registers, more additions."""
        return self.config.get("at") == "index"

    def _parameters(self) -> str:
        if not self._by_index:
            return parameters(self.model.fields, self.model.outputs)
        return parameters(tuple(f"{f}_base" for f in self.model.fields), tuple(f"{o}_base" for o in self.model.outputs))

    def _pointers(self, indent: str) -> list[str]:
        """The arrays' addresses at the current plane, in a block of their own where they are not carried."""
        if not self._by_index:
            return []
        reads = [f"{indent}const double* {f} = {f}_base + at;" for f in self.model.fields]
        return reads + [f"{indent}double* {o} = {o}_base + at;" for o in self.model.outputs]

    @property
    def _split(self) -> bool:
        """Whether every chunk is long enough for its last planes to be written out."""
        return self.layout.shape[0] // self.chunks >= self.open

    def _place(self, z: int, y: int) -> list[str]:
        nx, ny, nz = self.layout.shape
        lines = [
            f"  const int z = (blockIdx.x * {z} + threadIdx.x) * {self.p};",
            f"  const int y = (blockIdx.y * {y} + threadIdx.y) * {self.u};",
        ]
        if nz % (z * self.p):
            lines.append(f"  if (z >= {nz}) return;")
        if ny % (y * self.u):
            lines.append(f"  if (y >= {ny}) return;")
        if nx % self.chunks:
            lines.append(f"  const int x0 = (int)((long long)blockIdx.z * {nx} / {self.chunks});")
            lines.append(f"  const int x1 = (int)((long long)(blockIdx.z + 1) * {nx} / {self.chunks});")
            lines.append("  const int planes = x1 - x0;")
        else:
            lines.append(f"  const int x0 = blockIdx.z * {nx // self.chunks};")
            lines.append(f"  const int planes = {nx // self.chunks};")
        at = f"{self.layout.offset}LL + (long long)x0 * {self.stride_x} + y * {self.stride_y} + z"
        if self._by_index:
            return [*lines, f"  int at = (int)({at});"]
        return [*lines, f"  const long long at = {at};", *(f"  {array} += at;" for array in self._arrays)]

    def _sum(self, output: int, slot: int, cell: tuple[int, int]) -> str:
        return f"sum_{self.model.outputs[output]}_{slot}_{cell[0]}_{cell[1]}"

    def _passed(self, field: str, slot: int, cell: tuple[int, int]) -> str:
        return f"old_{field}_{slot}_{cell[0]}_{cell[1]}"

    def _plane(self, indent: str, at: int, slots: range) -> tuple[Block, Plane, dict[Any, dict[int, str]]]:
        """What the plane at distance `at` (in planes) adds to each open slot: (output, cell) -> slot -> text.

        Only slots in `slots` are wanted; slot k is the output plane k behind the first open one.
        """

        def emit(pairs: set[tuple[str, int, int]] | None) -> tuple[Block, Plane, dict[Any, dict[int, str]]]:
            block = Block(indent)
            plane = Plane(self.model.relu, self.stride_y, block, at * self.stride_x)
            plane.pairs = pairs
            added: dict[Any, dict[int, str]] = {}
            for output, groups in enumerate(self.groups):
                for cell in self.cells:
                    by_slot: dict[int, list[tuple[float, str]]] = {}
                    for group in groups:
                        wanted = [(self.reach - dx, c) for dx, c in group.by_dx if self.reach - dx in slots]
                        if wanted:
                            value = plane.value(group, *cell)
                        for slot, c in wanted:
                            by_slot.setdefault(slot, []).append((scale(self.model) * c, value))
                    added[output, cell] = contributions(by_slot, block)
            for field in self.carried:
                for cell in self.cells:
                    plane.field(field, *cell)
            return block, plane, added

        block, plane, added = emit(None)
        if self.p > 1:  # now that the reads are known: those of which both halves are used become wide
            halves: dict[tuple[str, int, int], set[int]] = {}
            for field, row, z in plane.read:
                halves.setdefault((field, row, z // 2), set()).add(z % 2)
            block, plane, added = emit({pair for pair, used in halves.items() if len(used) == 2})
        return block, plane, added

    def _head(self) -> list[str]:
        """The planes before the first output is complete."""
        lines = [f"  // planes {-self.reach} .. {self.reach - 1} of the chunk"]
        declared: set[str] = set()
        for i in range(self.open):
            # The plane lies i planes behind the first; slots are counted from the chunk's first output.
            first = i - self.open
            block, plane, added = self._plane("    ", i - self.reach, range(-first, self.open + 1))
            kept = []
            for (output, cell), texts in added.items():
                for slot, text in texts.items():
                    name = self._sum(output, slot + first, cell)
                    kept.append(f"    {name} = {name + ' + ' if name in declared else ''}{text};")
                    declared.add(name)
            if i >= self.reach:
                for field in self.carried:
                    for cell in self.cells:
                        name = self._passed(field, i - self.reach, cell)
                        declared.add(name)
                        kept.append(f"    {name} = {plane.field(field, *cell)};")
            lines += ["  {", *self._pointers("    "), *block.lines, *kept, "  }"]
        return [f"  double {', '.join(sorted(declared))};", *lines]

    def _main(self) -> list[str]:
        """One output plane a trip."""
        lines = [f"  int trips = planes{f' - {self.open}' if self._split else ''};"]
        lines += [f"#pragma unroll {self.config.get('unroll', 1)}", "  for (; trips > 0; --trips) {"]
        block, plane, added = self._plane("    ", self.reach, range(self.open + 1))
        if self._by_index:  # the compiler must not turn the index into pointers again
            lines.append('    asm("" : "+r"(at));')
        lines += [*self._pointers("    "), *block.lines]
        finished: dict[Any, str] = {}
        for (output, cell), texts in added.items():
            first = self._sum(output, 0, cell)
            finished[output, cell] = f"{first} + {texts[0]}" if 0 in texts else first
            lines.append(f"    const double done_{output}_{cell[0]}_{cell[1]} = {finished[output, cell]};")
            finished[output, cell] = f"done_{output}_{cell[0]}_{cell[1]}"
            for slot in range(1, self.open + 1):
                parts = [] if slot == self.open else [self._sum(output, slot, cell)]
                parts += [texts[slot]] if slot in texts else []
                lines.append(f"    {self._sum(output, slot - 1, cell)} = {' + '.join(parts) or '0.0'};")
        lines += self._store("    ", finished, {f: self._passed(f, 0, (0, 0))[:-4] for f in self.carried}, 0)
        for field in self.carried:
            for cell in self.cells:
                for k in range(1, self.reach):
                    lines.append(f"    {self._passed(field, k - 1, cell)} = {self._passed(field, k, cell)};")
                lines.append(f"    {self._passed(field, self.reach - 1, cell)} = {plane.field(field, *cell)};")
        # plane.field names what was loaded above, so it adds no line.
        moved = ("at",) if self._by_index else self._arrays
        return [*lines, *(f"    {a} += {self.stride_x};" for a in moved), "  }"]

    def _tail(self) -> list[str]:
        """The planes behind which no output is opened."""
        if not self._split:
            return []
        lines = [f"  // the last {self.open} outputs of the chunk"]
        for t in range(self.open):
            block, plane, added = self._plane("    ", self.reach + t, range(self.open - t))
            lines += ["  {", *self._pointers("    "), *block.lines]
            finished = {}
            for (output, cell), texts in added.items():
                for slot, text in texts.items():
                    name = self._sum(output, t + slot, cell)
                    lines.append(f"    {name} = {name} + {text};")
                finished[output, cell] = self._sum(output, t, cell)
            stem = {f: f"old_{f}_{t % self.reach}" for f in self.carried}
            lines += self._store("    ", finished, stem, t)
            for field in self.carried:
                for cell in self.cells:
                    name = self._passed(field, t % self.reach, cell)
                    lines.append(f"    {name} = {plane.field(field, *cell)};")
            lines.append("  }")
        return lines

    def _store(self, indent: str, sums: Mapping[Any, str], carried: Mapping[str, str], t: int) -> list[str]:
        """Finishes the sums of an output plane t planes from the pointers and writes them."""
        _, ny, nz = self.layout.shape
        block = Block(indent)
        for output, array in enumerate(self.model.outputs):
            for row in range(self.u):
                at = t * self.stride_x + row * self.stride_y
                done = []
                for cell in range(self.p):
                    centre = {f: f"{stem}_{row}_{cell}" for f, stem in carried.items()}
                    for f in self.model.finish_fields:
                        centre.setdefault(f, self._centre(f, at, cell, block))
                    done.append(self.model.finish.format(s=sums[output, (row, cell)], **centre))
                writes = self._writes(f"{array} + {at}", done, nz)
                if ny % self.u and row:
                    writes = [f"if (y + {row} < {ny}) {{", *("  " + w for w in writes), "}"]
                for line in writes:
                    block.add(line)
        return block.lines

    def _centre(self, field: str, at: int, cell: int, block: Block) -> str:
        if self.p == 1:
            return f"{field}[{at}]"
        pair = f"*reinterpret_cast<const double2*>({field} + {at + cell // 2 * 2})"
        return f"{block.let(pair, 'centre_' + field, 'const double2')}.{'xy'[cell % 2]}"

    def _writes(self, address: str, values: list[str], nz: int) -> list[str]:
        cast = "__stcs({0}, {1});" if self.config.get("st") == "cs" else "*({0}) = {1};"
        if self.p == 1:
            return [cast.format(address, values[0])]
        lines = []
        for k in range(0, self.p, 2):
            pair = cast.format(
                f"reinterpret_cast<double2*>({address} + {k})", f"make_double2({values[k]}, {values[k + 1]})"
            )
            if not nz % self.p:
                lines.append(pair)
                continue
            # The last cells of a row may lie outside: loads there are legal, stores are not.
            lines.append(f"if (z + {k + 1} < {nz}) {{ {pair} }}")
            lines.append(f"else if (z + {k} < {nz}) {{ {cast.format(f'{address} + {k}', values[k])} }}")
        return lines
