"""What every baseline has in common: a source text, its launches, and where the fields lie."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from repro.baselines.model import Model, model
from stencil_dsl.schedule.layout import Halo, Layout

Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Launch:
    """One kernel launch: its name, extents, and the names of its arguments (fields, outputs, tables)."""

    kernel: str
    grid: Shape
    block: Shape
    args: tuple[str, ...]


@dataclass(frozen=True)
class Baseline:
    """One way to compute a row that is not the DSL's.

    Attributes:
        row: id of the row.
        variant: "arr", "stream", "trans" or "triton".
        config: the choices it was generated with.
        shape: extents of the interior, compiled in.
        source: CUDA C++ text, for nvcc and NVRTC (of triton: Python text).
        launches: what computes all outputs once, in this order on one stream.
        dtype: element type.
        bricks: brick extents where fields lie in bricks; None where they lie as `layout` says.
        reads: what it reads, where it is no row of the table.
    """

    row: str
    variant: str
    config: Mapping[str, Any]
    shape: Shape
    source: str = field(repr=False)
    launches: tuple[Launch, ...]
    dtype: str = "float64"
    bricks: Shape | None = None
    reads: Model | None = None

    @property
    def id(self) -> str:
        """A name that works as a test id: "stream-z64-y4-p2-u2-cx64"."""
        return "-".join([self.variant, *(f"{key}{value}" for key, value in self.config.items())])

    @property
    def model(self) -> Model:
        return self.reads or model(self.row)

    @property
    def halo(self) -> Halo:
        """Halo that inputs and outputs are allocated with: the row's own, as the DSL's kernels want it."""
        return tuple((r, r) for r in self.model.radius)

    @property
    def layout(self) -> Layout:
        """Where a field lies; kernels get the address of the allocation's first element."""
        return Layout.padded(self.shape, self.halo, self.dtype)

    @property
    def bytes_moved(self) -> int:
        """Compulsory bytes of one sweep; for separate kernels the sum of what each must move."""
        points = self.shape[0] * self.shape[1] * self.shape[2]
        names = {*self.model.fields, *self.model.outputs}
        return 8 * points * sum(len(names.intersection(launch.args)) for launch in self.launches)

    # A baseline with one launch can be used as if it were that launch.
    @property
    def kernel_name(self) -> str:
        return self._single.kernel

    @property
    def grid(self) -> Shape:
        return self._single.grid

    @property
    def block(self) -> Shape:
        return self._single.block

    @property
    def args(self) -> tuple[str, ...]:
        return self._single.args

    @property
    def _single(self) -> Launch:
        if len(self.launches) != 1:
            raise ValueError(f"{self.id} of {self.row} launches {len(self.launches)} kernels; use .launches")
        return self.launches[0]


#: What is CUDA C++.
CUDA_VARIANTS = ("arr", "stream", "trans")
VARIANTS = (*CUDA_VARIANTS, "triton")


def _module(variant: str) -> Any:
    if variant not in VARIANTS:
        raise KeyError(f"no baseline {variant!r}; there are {', '.join(VARIANTS)}")
    return importlib.import_module(f"repro.baselines.{'triton_kernels' if variant == 'triton' else variant}")


def generator(variant: str) -> Callable[..., Baseline]:
    """The function ``(row, shape, config=None) -> Baseline`` of a variant."""
    return _module(variant).generate


def configs(variant: str, row: str) -> list[dict[str, Any]]:
    """What is searched for a row, the default first."""
    return _module(variant).configs(row)


def symbol(text: str) -> str:
    """A C++ name from an id."""
    return "".join(c if c.isalnum() else "_" for c in text)


def literal(value: float) -> str:
    """A double as C++ text, with all its digits."""
    text = repr(float(value))
    return text if any(c in text for c in ".einf") else text + ".0"


def ceil_div(n: int, d: int) -> int:
    return -(-n // d)


def parameters(inputs: tuple[str, ...], outputs: tuple[str, ...]) -> str:
    """Parameter list of a kernel: read-only fields, then outputs; none of them overlap."""
    reads = [f"const double* __restrict__ {name}" for name in inputs]
    return ", ".join(reads + [f"double* __restrict__ {name}" for name in outputs])
