"""Clocks, power and throttle reasons of a card through NVML: read-only, settings are never changed."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from stencil_dsl.errors import GpuUnavailableError
from stencil_dsl.testing.device import DeviceInfo

#: Reasons (bits of NVML's clock event mask) that make a round unfit: the card was slower than its
#: settings say.
_THROTTLE = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "thermal (software)",
    0x40: "thermal",
    0x80: "power brake",
}


class Nvml:
    """One card."""

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
    visible = [entry.strip() for entry in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if entry.strip()]
    if visible and number < len(visible) and visible[number].isdigit():
        return int(visible[number])
    return number


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
