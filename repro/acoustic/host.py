"""Runs the kernels' own texts on the CPU, for values: the CUDA ones compiled by a C++ compiler, Triton's by NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from repro.acoustic import cuda
from repro.acoustic.grid import SERIES, Program, host_fields
from repro.acoustic.model import wavelet
from repro.acoustic.triton_text import HEADER
from repro.baselines import emulate


class HostRun:
    """A program on host arrays.

    Args:
        fields: cells of u, older, phi and vp; missing ones are zero.

    Raises:
        RuntimeError: for CUDA text without a C++ compiler.
    """

    def __init__(self, program: Program, fields: Mapping[str, Any]) -> None:
        grid = program.grid
        given = {name: np.asarray(fields.get(name, 0.0)) for name in ("u", "older", "phi", "vp")}
        self.program = program
        self.arrays: dict[str, Any] = host_fields(grid, given)
        self.arrays["series"] = np.array([wavelet(step) for step in range(SERIES)], "float32")
        self.arrays["clock"] = np.zeros(1, "int64")
        triton = program.variant == "triton"
        text = cuda.generate("plain", grid.cube) if triton else program
        kernels = [cuda.SOURCE.kernel] + ([] if triton else [k.kernel for k in program.launches])
        self._cuda = emulate.Library(text.source, kernels)
        self._triton = _functions(program.source) if triton else {}

    def step(self) -> None:
        """One step; u and older change places."""
        roles = self.arrays | {"v": self.arrays["older"]}
        for launch in (*self.program.launches, cuda.SOURCE):
            arguments = [roles[name] for name in launch.args]
            if launch.kernel in self._triton:
                _run(self._triton[launch.kernel], launch.grid, arguments)
            else:
                self._cuda.launch(launch.kernel, launch.grid, launch.block, arguments)
        self.arrays["u"], self.arrays["older"] = self.arrays["older"], self.arrays["u"]

    def cells(self, name: str) -> np.ndarray:
        return self.program.grid.cells(self.arrays[name])

    def padding_is_zero(self) -> bool:
        """Whether nothing but the cube was written."""
        for name in ("u", "older", "phi"):
            outside = self.arrays[name].copy()
            self.program.grid.cells(outside)[...] = 0.0
            if outside.any():
                return False
        return True


class _Pointer:
    """An address, or a tile of them."""

    def __init__(self, array: np.ndarray, index: Any = 0) -> None:
        self.array, self.index = array, index

    def __add__(self, by: Any) -> _Pointer:
        return _Pointer(self.array, self.index + by)

    def __sub__(self, by: Any) -> _Pointer:
        return _Pointer(self.array, self.index - by)


class _Language:
    """What the texts use of `triton.language`, on NumPy. An index outside the allocation is an error."""

    program = (0, 0, 0)
    arange = staticmethod(np.arange)
    range = staticmethod(range)

    def program_id(self, axis: int) -> int:
        return self.program[axis]

    def load(self, pointer: _Pointer) -> np.ndarray:
        _check(pointer)
        return pointer.array[pointer.index]

    def store(self, pointer: _Pointer, value: np.ndarray, mask: np.ndarray) -> None:
        _check(pointer)
        pointer.array[pointer.index[mask]] = value[mask]


def _check(pointer: _Pointer) -> None:
    low, high = int(np.min(pointer.index)), int(np.max(pointer.index))
    if low < 0 or high >= pointer.array.size:
        raise IndexError(f"elements {low} to {high} of an allocation of {pointer.array.size}")


_LANGUAGE = _Language()


def _functions(text: str) -> dict[str, Any]:
    """The kernels of a text, as functions of the stand-in language."""
    if not text.startswith(HEADER):
        raise ValueError("a Triton text starts with its imports")
    scope: dict[str, Any] = {"triton": SimpleNamespace(jit=lambda f: f), "tl": _LANGUAGE}
    exec(compile(text.removeprefix(HEADER), "<triton text>", "exec"), scope)  # noqa: S102 - our own text
    return {name: f for name, f in scope.items() if callable(f) and name not in ("triton", "tl")}


def _run(kernel: Any, grid: tuple[int, int, int], arrays: list[np.ndarray]) -> None:
    pointers = [_Pointer(a) for a in arrays]
    for x in range(grid[2]):
        for y in range(grid[1]):
            for z in range(grid[0]):
                _LANGUAGE.program = (z, y, x)
                kernel(*pointers)
