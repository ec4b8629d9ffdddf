"""The device that variants are timed on: a small interface, and CuPy's implementation of it.

A fake for tests implements the same methods on NumPy (see tests/plugin).
"""

from __future__ import annotations

import contextlib
import importlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
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

    def copy_launch(self, nbytes: int) -> Callable[[Any], None]:
        """An enqueue function for a device-to-device copy that reads and writes nbytes in total."""

    def load_cubin(self, cubin: bytes, symbol: str) -> Callable[..., None]:
        """A function (grid, block, args, stream) that launches the kernel."""

    def load_cuda(self, source: str, name: str, options: tuple[str, ...]) -> Callable[..., None]:
        """Compiles CUDA C++ on the device's machine; returns the same kind of function."""

    def timer(self, enqueue: Callable[[Any], None], *, capturable: bool, flush: bool) -> Callable[[], float]:
        """A function that runs one timing and returns milliseconds per launch."""

    def launch(self, enqueue: Callable[[Any], None]) -> None:
        """Enqueues one launch on the device's stream."""

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


#: Reasons (bits of NVML's clock event mask) that make a round unfit: the card was slower than its
#: settings say.
_THROTTLE = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "thermal (software)",
    0x40: "thermal",
    0x80: "power brake",
}
#: Target length of one timing of short kernels, and the most launches captured in one graph.
_BATCH_MS, _BATCH_MAX = 4.0, 64
#: Launches before the first timing of a variant, in milliseconds and in number.
_WARM_UP_MS, _WARM_UP_MAX = 20.0, 500
#: Timings of a flushed launch within one round (their median counts).
_FLUSHED_REPEATS = 7


class CupyDevice:
    """An NVIDIA GPU through CuPy, with clocks, power and throttle reasons through NVML."""

    def __init__(self, number: int = 0) -> None:
        try:
            import cupy
        except ImportError as error:
            raise GpuUnavailableError(
                f"CuPy is needed on the GPU machine: pip install 'stencil-dsl[gpu]' ({error})"
            ) from error
        self.xp = cupy
        try:
            self._device = cupy.cuda.Device(number)
            self._device.use()
            self._stream = cupy.cuda.Stream(non_blocking=True)
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise GpuUnavailableError(f"CUDA device {number} cannot be used: {error}") from error
        self._stream.use()
        self.l2_bytes = int(self._device.attributes["L2CacheSize"])
        self._flush_buffer = cupy.empty(2 * self.l2_bytes, dtype=cupy.uint8)
        self._nvml = _Nvml(number)
        self._folder, self._loaded = tempfile.TemporaryDirectory(prefix="stencil-dsl-"), 0

    @classmethod
    def describe(cls, number: int) -> DeviceInfo:
        return _Nvml(number).describe()

    def synchronize(self) -> None:
        self._device.synchronize()

    def upload(self, values: Any) -> Any:
        return self.xp.asarray(values)

    def download(self, values: Any) -> Any:
        return self.xp.asnumpy(values)

    def copy_launch(self, nbytes: int) -> Callable[[Any], None]:
        half = nbytes // 2
        source, target = self.xp.zeros(half, dtype="uint8"), self.xp.empty(half, dtype="uint8")

        def enqueue(stream: Any) -> None:
            target.data.copy_from_device_async(source.data, half, stream)

        return enqueue

    def load_cubin(self, cubin: bytes, symbol: str) -> Callable[..., None]:
        # CuPy may read the file as late as at the first launch: it stays as long as the device object.
        self._loaded += 1
        path = Path(self._folder.name) / f"{self._loaded}.cubin"
        path.write_bytes(cubin)
        return _launcher(self.xp.RawModule(path=str(path)).get_function(symbol))

    def load_cuda(self, source: str, name: str, options: tuple[str, ...]) -> Callable[..., None]:
        module = self.xp.RawModule(code=source, options=options, name_expressions=(name,) if "<" in name else None)
        return _launcher(module.get_function(name))

    def launch(self, enqueue: Callable[[Any], None]) -> None:
        with self._stream:
            enqueue(self._stream)

    def timer(self, enqueue: Callable[[Any], None], *, capturable: bool, flush: bool) -> Callable[[], float]:
        # The first launch loads code; the clock rises while the rest run.
        self._timed(_repeat(enqueue, self._stream, 1))
        estimate = self._timed(_repeat(enqueue, self._stream, 3)) / 3
        self._timed(_repeat(enqueue, self._stream, max(1, min(_WARM_UP_MAX, round(_WARM_UP_MS / max(estimate, 1e-3))))))
        if flush:
            return lambda: self._flushed(enqueue)
        batch = max(1, min(_BATCH_MAX, round(_BATCH_MS / max(estimate, 1e-3))))
        body = _repeat(enqueue, self._stream, batch)
        if capturable and batch > 1:
            graph = self._capture(body)
            if graph is not None:
                graph.launch(self._stream)  # the first launch uploads the graph
                return lambda: self._timed(lambda: graph.launch(self._stream)) / batch
        return lambda: self._timed(body) / batch

    def _capture(self, body: Callable[[], Any]) -> Any | None:
        """The launches as a CUDA graph, or None where the library behind them cannot be captured."""
        try:
            with self._stream:
                self._stream.begin_capture()
                try:
                    body()
                finally:
                    graph = self._stream.end_capture()
            return graph
        except self.xp.cuda.runtime.CUDARuntimeError:
            return None

    def _timed(self, body: Callable[[], Any]) -> float:
        start, stop = self.xp.cuda.Event(), self.xp.cuda.Event()
        with self._stream:
            start.record(self._stream)
            body()
            stop.record(self._stream)
        stop.synchronize()
        return float(self.xp.cuda.get_elapsed_time(start, stop))

    def _flushed(self, enqueue: Callable[[Any], None]) -> float:
        """Median over launches that each find L2 filled with something else.

        The flush is enqueued before the first event, so the events and the launch are queued while it runs.
        """
        times = []
        for _ in range(_FLUSHED_REPEATS):
            with self._stream:
                self._flush_buffer.fill(0)
            times.append(self._timed(lambda: enqueue(self._stream)))
        return sorted(times)[len(times) // 2]

    def state(self) -> dict[str, Any]:
        return self._nvml.state()

    def release(self) -> None:
        self.synchronize()
        self.xp.get_default_memory_pool().free_all_blocks()


def _repeat(enqueue: Callable[[Any], None], stream: Any, times: int) -> Callable[[], None]:
    def body() -> None:
        for _ in range(times):
            enqueue(stream)

    return body


def _launcher(function: Any) -> Callable[..., None]:
    def launch(grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...], stream: Any = None) -> None:
        # CuPy's raw kernels run on the current stream.
        with contextlib.nullcontext() if stream is None else stream:
            function(grid, block, args)

    return launch


class _Nvml:
    """Read-only NVML access to one device; settings are never changed."""

    def __init__(self, number: int) -> None:
        try:
            import pynvml
        except ImportError as error:
            raise GpuUnavailableError(f"nvidia-ml-py is needed on the GPU machine ({error})") from error
        self._n = pynvml
        try:
            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByIndex(_physical_number(number))
        except pynvml.NVMLError as error:
            raise GpuUnavailableError(f"no NVIDIA device {number}: {error}") from error

    def describe(self) -> DeviceInfo:
        n, handle = self._n, self._handle
        major, minor = n.nvmlDeviceGetCudaComputeCapability(handle)
        facts: dict[str, Any] = {}
        queries = {
            "memory_bytes": lambda: int(n.nvmlDeviceGetMemoryInfo(handle).total),
            "power_limit_w": lambda: n.nvmlDeviceGetPowerManagementLimit(handle) / 1000.0,
            "ecc": lambda: bool(n.nvmlDeviceGetEccMode(handle)[0]),
            "sm_max_mhz": lambda: n.nvmlDeviceGetMaxClockInfo(handle, n.NVML_CLOCK_SM),
            "mem_mhz": lambda: n.nvmlDeviceGetClockInfo(handle, n.NVML_CLOCK_MEM),
            "cuda_driver": lambda: _cuda_version(n.nvmlSystemGetCudaDriverVersion()),
            "mig": lambda: bool(n.nvmlDeviceGetMigMode(handle)[0]),
        }
        for name, query in queries.items():
            with contextlib.suppress(n.NVMLError):  # not every card answers every question
                facts[name] = query()
        return DeviceInfo(
            _text(n.nvmlDeviceGetName(handle)),
            f"sm_{major}{minor}",
            _text(n.nvmlSystemGetDriverVersion()),
            facts,
        )

    def state(self) -> dict[str, Any]:
        n, handle = self._n, self._handle
        state: dict[str, Any] = {}
        with contextlib.suppress(n.NVMLError):
            state["sm_mhz"] = n.nvmlDeviceGetClockInfo(handle, n.NVML_CLOCK_SM)
        with contextlib.suppress(n.NVMLError):
            state["power_w"] = n.nvmlDeviceGetPowerUsage(handle) / 1000.0
        with contextlib.suppress(n.NVMLError):
            mask = n.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
            state["throttle"] = [reason for bit, reason in _THROTTLE.items() if mask & bit]
        return state


def _physical_number(number: int) -> int | Any:
    """NVML counts all cards; CUDA counts those CUDA_VISIBLE_DEVICES leaves."""
    import os

    visible = [entry.strip() for entry in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if entry.strip()]
    if visible and number < len(visible) and visible[number].isdigit():
        return int(visible[number])
    return number


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
