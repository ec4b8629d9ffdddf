"""Kernels bound to the arrays of a step, and how their scalars are kept up to date."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from stencil_dsl.errors import StencilError
from stencil_dsl.reference.numpy_eval import prepare
from stencil_dsl.runtime.arrays import PaddedArray
from stencil_dsl.runtime.definition import Definition
from stencil_dsl.runtime.kernel import Kernel
from stencil_dsl.toolchain import Entry

Engine = Literal["kernel", "reference"]

_FIRST_RUN = threading.Lock()
"""Ranks may be threads, and what happens once a kernel (ast.parse of the emitted file) is not safe in all of them at a
time with CPython 3.11."""


class ReferenceLaunch:
    """The NumPy meaning of a stencil in place of its kernel, on host arrays: slow on large fields, quick to start."""

    def __init__(
        self,
        definition: Definition,
        fields: Sequence[PaddedArray],
        outputs: Sequence[PaddedArray],
        scalars: Sequence[float],
    ) -> None:
        if any(a.device != "cpu" for a in (*fields, *outputs)):
            raise StencilError("engine='reference' runs on host arrays; use device='cpu'")
        arrays = [np.asarray(a.full) for a in fields]
        origins = [a.layout.origin for a in fields]
        self.evaluate = prepare(definition.stencil, arrays, origins, fields[0].shape)
        self.outputs = list(outputs)
        self.set_scalars(scalars)

    def set_scalars(self, scalars: Sequence[float]) -> None:
        self.scalars = list(scalars)

    def launch(self, stream: Any = None) -> None:
        for out, value in zip(self.outputs, self.evaluate(self.scalars), strict=True):
            out.interior[...] = value


class BoundSweep:
    """One kernel on fixed arrays.

    Attributes:
        launch: enqueues it on the current stream; on host arrays, runs it.
    """

    launch: Callable[[], Any]

    def __init__(
        self,
        kernel: Kernel,
        fields: Sequence[PaddedArray],
        outputs: Sequence[PaddedArray],
        scalars: Sequence[str],
        engine: Engine,
    ) -> None:
        self.kernel, self.scalars = kernel, tuple(scalars)
        self.values: list[float] = [0.0] * len(self.scalars)
        names = kernel.definition.scalars
        if engine == "reference":
            self.bound: Any = ReferenceLaunch(kernel.definition, fields, outputs, self.values)
        else:
            with _FIRST_RUN:
                self.bound = kernel.bind(*fields, *outputs, **dict(zip(names, self.values, strict=True)))
        self.launch = self._first

    def set(self, values: Mapping[str, float]) -> None:
        """Take over the run-time scalars, where one of this kernel's changed."""
        new = [values[name] for name in self.scalars]
        if new != self.values:
            self.values = new
            self.bound.set_scalars(new)

    def compile(self) -> list[Entry]:
        """The machine code, put into the cache even where it is interpreted; none without a kernel."""
        k = self.kernel
        return [spec.compile(k.target, k.toolkit, k.cache) for spec in getattr(self.bound, "specs", ())]

    def _first(self) -> None:
        with _FIRST_RUN:
            self.bound.launch()
        self.launch = self.bound.launch
