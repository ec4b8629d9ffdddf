"""CUDA C++ text -> LTOIR, through NVRTC where it is installed."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
from pathlib import Path

from stencil_dsl.errors import ToolchainError
from stencil_dsl.toolchain.kit import Toolkit
from stencil_dsl.toolchain.versions import package_version

_WHEEL = "nvidia-cuda-nvrtc"
_NAMES = ("libnvrtc.so.13", "libnvrtc.so")


def find_nvrtc(toolkit: Toolkit) -> Path | None:
    """NVRTC's library: beside the toolkit's, of the wheel, or below CUDA_HOME; None where there is none."""
    folders = [toolkit.root / "lib", toolkit.root / "lib64"]
    if package_version(_WHEEL):
        folders.append(Path(str(importlib.metadata.distribution(_WHEEL).locate_file("nvidia/cu13/lib"))))
    home = os.environ.get("CUDA_HOME")
    folders += [Path(home) / "lib64"] if home else []
    return next((f / n for f in folders for n in _NAMES if (f / n).exists()), None)


def compile_cuda(text: str, arch: str, toolkit: Toolkit, name: str = "device functions") -> bytes:
    """Compile one translation unit to LTOIR. Raises ToolchainError with NVRTC's words."""
    path = find_nvrtc(toolkit)
    if path is None:
        raise ToolchainError(
            f"CUDA C++ {name} need NVRTC, which is not installed: pip install {_WHEEL}=={toolkit.versions.tileiras};"
            " or write them in NVVM IR"
        )
    library = ctypes.CDLL(str(path))
    program = ctypes.c_void_p()
    status = library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"device.cu", 0, None, None)
    if status:
        raise ToolchainError(f"NVRTC at {path} makes no program (status {status})")
    try:
        options = [f"--gpu-architecture={arch}", "-dlto", "--relocatable-device-code=true", "--std=c++17"]
        array = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
        if library.nvrtcCompileProgram(program, len(options), array):
            raise ToolchainError(
                f"NVRTC refuses the {name} for {arch}",
                stderr=_read(library, program, "ProgramLog").decode(errors="replace").rstrip("\0\n"),
                versions=toolkit.versions.as_dict(),
            )
        return _read(library, program, "LTOIR")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _read(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(max(1, size.value))
    getattr(library, f"nvrtcGet{what}")(program, buffer)
    return buffer.raw[: size.value]
