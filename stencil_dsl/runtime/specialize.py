"""A kernel for one shape and one set of layouts: level 3, source, cubin and how its parameters are filled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd, prod
from typing import Any

from stencil_dsl.emit.cutile import emit, float_bits
from stencil_dsl.emit.host import paired
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.schedule.expr import accesses
from stencil_dsl.schedule.layout import ITEMSIZE, LINE_BYTES, Layout, round_up
from stencil_dsl.schedule.lower import lower
from stencil_dsl.schedule.problem import Lowered, Param, Problem, check_grid
from stencil_dsl.schedule.schedule import Schedule
from stencil_dsl.schedule.shifted import covering_extents, reach_of
from stencil_dsl.toolchain import ArrayParam, Entry, KernelCache, ScalarParam, Toolkit, build

INT32_ELEMENTS = 2**31


@dataclass(frozen=True)
class Form:
    """What a compiled kernel depends on besides the stencil: shape and layouts of its arguments."""

    shape: tuple[int, ...] | None
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    inplace: bool = False


def padded_form(definition: Definition, shape: Sequence[int]) -> Form:
    """The form of arrays that this package makes for an interior."""
    layout = Layout.padded(shape, definition.halo, definition.dtype)
    return Form(layout.shape, (layout,) * len(definition.fields), (layout,) * len(definition.outputs))


def dynamic_form(
    inputs: Sequence[Layout], outputs: Sequence[Layout], covered: bool, itemsize: int, inplace: bool
) -> Form:
    """What a kernel for any shape still depends on: where rows start, how they are aligned, whether tiles may overhang.

    Args:
        covered: memory behind every field holds whole tiles.
    """

    def general(layout: Layout) -> Layout:
        line = LINE_BYTES // itemsize
        strides = tuple(gcd(s, line) for s in layout.strides)
        ones = (1,) * layout.ndim
        extents = tuple(o + 1 for o in layout.origin)
        return Layout(ones, layout.origin, extents, strides, int(covered), layout.alignment)

    # An output's address is that of its first interior cell.
    moved = [replace(o, alignment=gcd(o.alignment, o.offset * itemsize), origin=(0,) * o.ndim) for o in outputs]
    return Form(None, tuple(map(general, inputs)), tuple(map(general, moved)), inplace)


def problem_of(definition: Definition, form: Form) -> Problem:
    """What a lowering is given."""
    return Problem(
        name=definition.name,
        graph=definition.graph,
        fields=definition.fields,
        scalars=definition.scalars,
        outputs=definition.outputs,
        dtype=definition.dtype,
        shape=form.shape,
        inputs=form.inputs,
        inplace=form.inplace,
        periodic=definition.periodic,
    )


class Specialization:
    """One kernel of one form under one schedule.

    Attributes:
        lowered: level 3 and the launch geometry.
        source: the emitted cuTile Python file.
    """

    def __init__(self, definition: Definition, form: Form, schedule: Schedule) -> None:
        self.definition, self.form, self.schedule = definition, form, schedule
        self.problem = problem_of(definition, form)
        self.lowered: Lowered = lower(self.problem, schedule)
        self.itemsize = ITEMSIZE[definition.dtype]

    @cached_property
    def source(self) -> str:
        return emit(self.problem, self.schedule, self.lowered)

    # -- compiling

    def _array_view(self, param: Param) -> tuple[tuple[int | None, ...], tuple[int | None, ...], int]:
        """Shape and strides in elements as the kernel is told them, and the alignment of its address."""
        if param.kind == "field":
            layout = self.form.inputs[param.index]
            alignment = layout.alignment
        else:
            layout = self.form.outputs[param.index]
            alignment = gcd(layout.alignment, layout.offset * self.itemsize)
        if param.shape is None:
            strides = (None,) * (layout.ndim - 1) + (1,)
            return (None,) * layout.ndim, strides, alignment
        pair = self.lowered.pair if param.kind == "field" and not param.single else 1
        shape, strides_known = paired(param.shape, layout.strides, pair)
        return shape, strides_known, alignment

    @property
    def index_dtype(self) -> str:
        """Integer type of extents, strides and indices."""
        layouts = [*self.form.inputs, *self.form.outputs]
        return "int64" if any(p.capacity >= INT32_ELEMENTS for p in layouts) else "int32"

    @cached_property
    def params(self) -> list[ArrayParam | ScalarParam]:
        """The facts that the compiler is given about each parameter."""
        result: list[ArrayParam | ScalarParam] = []
        for param in self.lowered.params:
            if param.kind == "scalar":
                # Scalars travel as bits, see the emitter.
                result.append(ScalarParam("int64" if self.itemsize == 8 else "int32"))
                continue
            shape, strides, alignment = self._array_view(param)
            layout = (self.form.inputs if param.kind == "field" else self.form.outputs)[param.index]
            even = tuple(gcd(s, LINE_BYTES // self.itemsize) for s in layout.strides)
            # A field's view may overlap itself behind the interior, but nobody writes through it.
            result.append(
                ArrayParam(
                    self.definition.dtype,
                    shape,
                    strides,
                    base_divisible_by=alignment,
                    stride_divisible_by=even if param.shape is None else None,
                    index_dtype=self.index_dtype,
                    alias_groups=self._alias_groups(param),
                )
            )
        return result

    def _alias_groups(self, param: Param) -> tuple[str, ...]:
        """In place, loads of the fields that may be overwritten keep their order among the stores."""
        may = param.kind == "output" or self.definition.pointwise[param.index]
        return ("inplace",) if self.form.inplace and may else ()

    def request(self, target: str) -> dict[str, Any]:
        """Arguments of `toolchain.build`."""
        return {
            "source": self.source,
            "function": self.definition.name,
            "params": self.params,
            "symbol": self.definition.name,
            "arch": target,
            "opt_level": self.schedule.opt_level,
            **({"libraries": self.lowered.libraries} if self.lowered.libraries else {}),
        }

    def compile(self, target: str, toolkit: Toolkit | str | None, cache: KernelCache | None) -> Entry:
        """The cubin, from the cache or the compiler.

        Raises:
            ToolchainError: where it is not cached and cannot be compiled here, or compiling fails.
        """
        return build(**self.request(target), toolkit=toolkit, cache=cache)

    # -- launching

    def grid(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Blocks along the grid's axes for an interior."""
        if self.lowered.grid is not None:
            return self.lowered.grid
        counts = [-(-n // t) for n, t in zip(shape, self.lowered.blocks_of, strict=True)]
        return check_grid(counts, self.lowered.grid_axes)

    def views(
        self, inputs: Sequence[Layout], outputs: Sequence[Layout]
    ) -> list[tuple[Param, int, tuple[int, ...], tuple[int, ...]]]:
        """For each array parameter: offset from its array's first element, shape and strides, in elements."""
        result = []
        for param in self.lowered.params:
            if param.kind == "scalar":
                continue
            if param.kind == "output":
                layout = outputs[param.index]
                result.append((param, layout.offset, layout.shape, layout.strides))
                continue
            layout = inputs[param.index]
            shape = param.shape or self._dynamic_extents(layout, param.index)
            result.append((param, 0, *paired(shape, layout.strides, 1 if param.single else self.lowered.pair)))
        return result

    def _dynamic_extents(self, layout: Layout, index: int) -> tuple[int, ...]:
        if self.lowered.checked:
            return layout.extents
        cover = tuple(round_up(n, t) for n, t in zip(layout.shape, self.schedule.tile, strict=True))
        reach = reach_of(accesses(self.definition.graph.outputs), index, layout.ndim)
        return covering_extents(layout, cover, reach)

    def scalar_bits(self, values: Sequence[float]) -> list[int]:
        return [float_bits(float(v), self.definition.dtype) for v in values]

    def cells(self) -> int:
        return prod(self.form.shape or (0,))
