"""An NVIDIA GPU through CuPy, with CUDA events as the clock."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stencil_dsl.errors import GpuUnavailableError
from stencil_dsl.testing.device import DeviceInfo
from stencil_dsl.testing.nvml import Nvml

#: Target length of one timing of short kernels, and the most launches captured in one graph.
_BATCH_MS, _BATCH_MAX = 4.0, 64
#: Longer kernels are launched one by one: they need no graph, and in one they can run unlike anywhere else
#: (a copy between buffers 1 GiB apart took 0.776 ms in a graph and 0.504 ms outside it on an H200).
_GRAPH_BELOW_MS = 0.25
#: Launches before the first timing of a variant, in milliseconds and in number.
_WARM_UP_MS, _WARM_UP_MAX = 20.0, 500
#: Timings of a flushed launch within one round (their median counts).
_FLUSHED_REPEATS = 7


_COPY = """
extern "C" __global__ void __launch_bounds__(256)
copy(const uint4* __restrict__ a, uint4* __restrict__ b, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n) b[i] = a[i];
}
"""


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
        # Entered and not made current by `use()`, which CuPy 14 forgets at the end of the next `with`.
        self._stream.__enter__()
        self.l2_bytes = int(self._device.attributes["L2CacheSize"])
        self._flush_buffer = cupy.empty(2 * self.l2_bytes, dtype=cupy.uint8)
        self._nvml = Nvml(number)
        self._folder, self._loaded = tempfile.TemporaryDirectory(prefix="stencil-dsl-"), 0

    @classmethod
    def describe(cls, number: int) -> DeviceInfo:
        return Nvml(number).describe()

    def synchronize(self) -> None:
        self._device.synchronize()

    def upload(self, values: Any) -> Any:
        return self.xp.asarray(values)

    def download(self, values: Any) -> Any:
        return self.xp.asnumpy(values)

    def copy_launch(self, nbytes: int) -> tuple[Callable[[Any], None], str]:
        """The faster of the runtime's copy and a plain kernel of 16 bytes a thread."""
        half = nbytes // 32 * 16
        source, target = self.xp.zeros(half, dtype="uint8"), self.xp.empty(half, dtype="uint8")

        def runtime(stream: Any) -> None:
            target.data.copy_from_device_async(source.data, half, stream)

        ways: dict[str, Callable[[Any], None]] = {"runtime copy": runtime}
        kernel, blocks = self.load_cuda(_COPY, "copy", ("-std=c++17",)), -(-half // (16 * 256))
        ways["copy kernel"] = lambda stream: kernel((blocks,), (256,), (source, target, half // 16), stream)
        times = {}
        for name, enqueue in ways.items():
            self._timed(_repeat(enqueue, self._stream, 2))
            times[name] = min(self._timed(_repeat(enqueue, self._stream, 4)) for _ in range(3))
        best = min(times, key=lambda name: times[name])
        return ways[best], best

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
        if capturable and batch > 1 and estimate < _GRAPH_BELOW_MS:
            graph = self._capture(body)
            if graph is not None:
                graph.launch(self._stream)  # the first launch uploads the graph
                return lambda: self._timed(lambda: graph.launch(self._stream)) / batch
        return lambda: self._queued(body) / batch

    def _queued(self, body: Callable[[], Any]) -> float:
        """Time of launches that wait in the queue: the device is kept busy until the host has enqueued them."""
        with self._stream:
            self._flush_buffer.fill(0)
        return self._timed(body)

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

    def profiled(self) -> contextlib.AbstractContextManager[Any]:
        from cupyx.profiler import profile

        return profile()

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
