"""Launching cubins on a GPU, and emitted files in the interpreter."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from stencil_dsl.errors import GpuUnavailableError
from stencil_dsl.runtime.arguments import Argument
from stencil_dsl.runtime.devices import require_cupy
from stencil_dsl.runtime.specialize import Specialization
from stencil_dsl.schedule.layout import ITEMSIZE
from stencil_dsl.toolchain import Entry
from stencil_dsl.toolchain.entry import cubin_file


@lru_cache(maxsize=256)
def _function(path: str, symbol: str, device: int) -> Any:
    cupy = require_cupy()
    with cupy.cuda.Device(device):
        try:
            function = cupy.RawModule(path=path).get_function(symbol)
            # Loads it now: the file may be a temporary one, and code that is loaded by a first launch stops the device
            # until all that runs there is over, which never is where an exchange waits for another rank of the process.
            function.num_regs  # noqa: B018
            return function
        except cupy.cuda.driver.CUDADriverError as error:
            have = cupy.cuda.Device(device).compute_capability
            raise GpuUnavailableError(
                f"the kernel {symbol} does not load on this device (compute capability {have}): {error};"
                f" compile with target='sm_{have}'"
            ) from error


class Launch:
    """A kernel with its arguments filled in.

    `launch()` does no checks and allocates nothing, so it can be timed, repeated and captured in a CUDA graph; the
    arrays have to outlive it, which this object sees to.
    """

    def __init__(
        self,
        spec: Specialization,
        entry: Entry,
        inputs: Sequence[Argument],
        outputs: Sequence[Argument],
        scalars: Sequence[float],
    ) -> None:
        self.spec, self.specs, self.entry = spec, (spec,), entry
        self.device = inputs[0].device
        assert self.device is not None
        self.owners = [a.owner for a in (*inputs, *outputs)]
        self.grid = spec.grid(inputs[0].layout.shape)
        with cubin_file(entry) as file:
            self.kernel = _function(str(file), entry.resources.symbol, self.device)
        self._pack(inputs, outputs, scalars)

    def _pack(self, inputs: Sequence[Argument], outputs: Sequence[Argument], scalars: Sequence[float]) -> None:
        size = ITEMSIZE[self.spec.definition.dtype]
        integer = ctypes.c_int64 if self.spec.index_dtype == "int64" else ctypes.c_int32
        values: list[Any] = []
        layouts = ([a.layout for a in inputs], [a.layout for a in outputs])
        for param, offset, shape, strides in self.spec.views(*layouts):
            owner = (inputs if param.kind == "field" else outputs)[param.index]
            values.append(ctypes.c_void_p(owner.pointer + offset * size))
            values += [integer(n) for n in (*shape, *strides)]
        bits = ctypes.c_int64 if size == 8 else ctypes.c_int32
        self.scalars = [bits(v) for v in self.spec.scalar_bits(scalars)]
        values += self.scalars
        self.values = values
        self.pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))

    def set_scalars(self, scalars: Sequence[float]) -> None:
        """Change the run-time scalars of later launches."""
        for slot, value in zip(self.scalars, self.spec.scalar_bits(scalars), strict=True):
            slot.value = value

    def launch(self, stream: Any = None) -> None:
        """Enqueue one sweep on a CuPy stream, or on the current one."""
        cupy = require_cupy()
        if stream is None:
            stream = cupy.cuda.get_current_stream()
        handle = getattr(stream, "ptr", None)
        handle = getattr(stream, "cuda_stream", stream) if handle is None else handle
        x, y, z = self.grid
        cupy.cuda.driver.launchKernel(
            self.kernel.kernel.ptr, x, y, z, 1, 1, 1, 0, int(handle), ctypes.addressof(self.pointers), 0
        )


class HostLaunch:
    """The same on host arrays: the emitted file runs in the interpreter, block by block."""

    def __init__(
        self,
        spec: Specialization,
        inputs: Sequence[Argument],
        outputs: Sequence[Argument],
        scalars: Sequence[float],
    ) -> None:
        from stencil_dsl.reference.tile_interpreter import ArrayArg

        self.spec, self.specs = spec, (spec,)
        self.inplace = spec.form.inplace
        self.grid = spec.grid(inputs[0].layout.shape)
        self.arrays: list[Any] = []
        layouts = ([a.layout for a in inputs], [a.layout for a in outputs])
        for param, offset, shape, strides in spec.views(*layouts):
            owner = (inputs if param.kind == "field" else outputs)[param.index]
            flat = _flat(owner)
            self.arrays.append(ArrayArg(flat, offset + _start(owner, flat), shape, strides, param.name))
        self.set_scalars(scalars)

    def set_scalars(self, scalars: Sequence[float]) -> None:
        self.args = [*self.arrays, *self.spec.scalar_bits(scalars)]

    def launch(self, stream: Any = None) -> Any:
        """Run to completion; returns the interpreter's counts."""
        from stencil_dsl.reference.tile_interpreter import run

        return run(self.spec.source, self.spec.definition.name, self.grid, self.args, allow_inplace=self.inplace)


def _flat(argument: Argument) -> np.ndarray:
    array = argument.owner
    while isinstance(array.base, np.ndarray):
        if array.base.dtype != array.dtype:
            break
        array = array.base
    return array.reshape(-1)


def _start(argument: Argument, flat: np.ndarray) -> int:
    return (argument.pointer - flat.ctypes.data) // flat.itemsize
