"""A stencil at levels 1 and 2, with the facts that do not depend on shape, schedule or target."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp

from stencil_dsl.errors import StencilError
from stencil_dsl.frontend.stencil import Stencil
from stencil_dsl.schedule.expr import Graph, accesses
from stencil_dsl.schedule.layout import ITEMSIZE, Halo
from stencil_dsl.transforms.analysis import field_names, output_names, periodic_rows, scalar_names, the_apply, the_func
from stencil_dsl.transforms.compose_steps import ComposeStepsPass
from stencil_dsl.transforms.footprint import FootprintPass
from stencil_dsl.transforms.pipeline import PassManager, default_pipeline
from stencil_dsl.transforms.roofline import RooflinePass


@dataclass
class Definition:
    """What is computed.

    Attributes:
        source: level-1 module, or None where the stencil was not read from one function.
        stencil: level-2 module after the pipeline.
        dtype: element type of all fields.
        steps: applications of `single` that one sweep makes.
        single: level-2 module of one application, which validation repeats; None where it is `stencil`.
    """

    source: ModuleOp | None
    stencil: ModuleOp
    dtype: str
    steps: int = 1
    single: ModuleOp | None = None

    @staticmethod
    def of(f: Stencil, dtype: str, pipeline: PassManager | None = None, steps: int = 1) -> Definition:
        """Run the pipeline on a stencil.

        Args:
            steps: applications that one sweep makes; more than one needs a linear stencil of one field.

        Raises:
            StencilError: for an element type that is not supported, or where a pass refuses the stencil.
        """
        if dtype not in ITEMSIZE:
            raise StencilError(f"dtype is one of {sorted(ITEMSIZE)}, got {dtype!r}")
        if not isinstance(f, Stencil):
            raise StencilError(f"expected a function under @stencil, got {type(f).__name__}")
        source = f.module(dtype)
        single = lower_to_stencil(source, pipeline)
        if steps == 1:
            return Definition(source, single, dtype)
        wider = PassManager((ComposeStepsPass(steps), FootprintPass(), RooflinePass())).run(single.clone())
        return Definition(source, wider, dtype, steps, single)

    @cached_property
    def name(self) -> str:
        return the_func(self.stencil).sym_name.data

    @cached_property
    def fields(self) -> tuple[str, ...]:
        return field_names(self.stencil)

    @cached_property
    def scalars(self) -> tuple[str, ...]:
        return scalar_names(self.stencil)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        return output_names(self.stencil)

    @cached_property
    def graph(self) -> Graph:
        return Graph.from_apply(the_apply(self.stencil))

    @property
    def ndim(self) -> int:
        return self.graph.ndim

    @cached_property
    def field_halos(self) -> tuple[Halo, ...]:
        """Per field and axis the cells read before and behind a cell."""
        nodes = accesses(self.graph.outputs)
        halos = []
        for index in range(len(self.fields)):
            offsets = [n.offset for n in nodes if n.field == index] or [(0,) * self.ndim]
            halos.append(
                tuple(
                    (max(0, -min(o[a] for o in offsets)), max(0, *(o[a] for o in offsets), 0)) for a in range(self.ndim)
                )
            )
        return tuple(halos)

    @cached_property
    def halo(self) -> Halo:
        """The union of the fields' halos: what arrays should be allocated with."""
        return tuple(
            (max(h[axis][0] for h in self.field_halos), max(h[axis][1] for h in self.field_halos))
            for axis in range(self.ndim)
        )

    @cached_property
    def periodic(self) -> tuple[bool, ...]:
        """For each field, whether its rows are read as periodic ones, by the attribute `periodic_rows`."""
        return periodic_rows(the_apply(self.stencil), len(self.fields))

    @cached_property
    def pointwise(self) -> tuple[bool, ...]:
        """For each field, whether it is read at the cell itself only."""
        return tuple(not any(w for pair in halo for w in pair) for halo in self.field_halos)


def lower_to_stencil(source: ModuleOp, pipeline: PassManager | None = None) -> ModuleOp:
    """Level 2 of a level-1 module; the module given is left as it is."""
    return (pipeline or default_pipeline()).run(source.clone())
