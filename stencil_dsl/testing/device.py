"""The device that variants are timed on, as sampling and variants see it.

CuPy's implementation is in `cupy_device`. A fake for tests implements the same methods on NumPy (see tests/plugin).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from stencil_dsl.errors import GpuUnavailableError


@dataclass(frozen=True)
class DeviceInfo:
    """What is known of a device without starting work on it."""

    name: str
    arch: str
    driver: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        """Folder name: "NVIDIA H200" -> "nvidia-h200"."""
        return "-".join("".join(c if c.isalnum() else " " for c in self.name.lower()).split())


class Device(Protocol):
    """What sampling and variants need of a device. Streams are opaque; None means the device's own stream."""

    xp: Any
    l2_bytes: int

    @classmethod
    def describe(cls, number: int) -> DeviceInfo:
        """Facts of device `number` without creating a context. Raises GpuUnavailableError."""

    def synchronize(self) -> None:
        """Waits for all work; raises what the work raised."""

    def upload(self, values: Any) -> Any:
        """Copies a NumPy array to the device."""

    def download(self, values: Any) -> Any:
        """Copies a device array (or view) to a NumPy array."""

    def copy_launch(self, nbytes: int) -> tuple[Callable[[Any], None], str]:
        """An enqueue function for the device's fastest copy that reads and writes nbytes in total, and its name."""

    def load_cubin(self, cubin: bytes, symbol: str) -> Callable[..., None]:
        """A function (grid, block, args, stream) that launches the kernel."""

    def load_cuda(self, source: str, name: str, options: tuple[str, ...]) -> Callable[..., None]:
        """Compiles CUDA C++ on the device's machine; returns the same kind of function."""

    def timer(self, enqueue: Callable[[Any], None], *, capturable: bool, flush: bool) -> Callable[[], float]:
        """A function that runs one timing and returns milliseconds per launch."""

    def launch(self, enqueue: Callable[[Any], None]) -> None:
        """Enqueues one launch on the device's stream."""

    def profiled(self) -> AbstractContextManager[Any]:
        """What is launched within is what a profiler that waits for it measures."""

    def state(self) -> dict[str, Any]:
        """``sm_mhz``, ``power_w``, ``throttle`` (list of reasons) now; empty where it cannot be read."""

    def release(self) -> None:
        """Gives memory back after a group."""


def device_class(spec: str) -> type[Device]:
    """Imports "module:Class"."""
    module, _, name = spec.partition(":")
    return getattr(importlib.import_module(module), name)


def describe(spec: str, number: int) -> DeviceInfo | None:
    """Facts of the device, or None where there is none."""
    return _described(spec, number)[0]


def missing(spec: str, number: int) -> str:
    """Why there is no device, or ""."""
    return _described(spec, number)[1]


@cache
def _described(spec: str, number: int) -> tuple[DeviceInfo | None, str]:
    try:
        return device_class(spec).describe(number), ""
    except GpuUnavailableError as error:
        return None, str(error)
