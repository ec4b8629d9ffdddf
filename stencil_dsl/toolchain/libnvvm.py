"""NVVM IR text -> LTOIR, through the libNVVM of a toolkit."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

from stencil_dsl.errors import ToolchainError
from stencil_dsl.toolchain.kit import Toolkit

# Places of the math functions below a toolkit's root.
_LIBDEVICE = "nvvm/libdevice/libdevice.10.bc"
_MATH = re.compile(r"@__nv_\w+\(")


def compile_nvvm(text: str, arch: str, toolkit: Toolkit, name: str = "device functions") -> bytes:
    """Compile one module to LTOIR for an architecture such as "sm_90".

    Raises:
        ToolchainError: with libNVVM's words.
    """
    library = ctypes.CDLL(str(toolkit.nvvm))
    program = ctypes.c_void_p()
    if library.nvvmCreateProgram(ctypes.byref(program)):
        raise ToolchainError(f"libNVVM {toolkit.versions.nvvm} makes no program", versions=toolkit.versions.as_dict())
    try:
        options = [f"-arch={_virtual(arch)}".encode(), b"-gen-lto"]
        array = (ctypes.c_char_p * len(options))(*options)
        steps = [("nvvmAddModuleToProgram", lambda f: f(program, text.encode(), _size(text), name.encode()))]
        if _MATH.search(text):
            math = _libdevice(toolkit).read_bytes()
            steps.append(
                ("nvvmLazyAddModuleToProgram", lambda f: f(program, math, ctypes.c_size_t(len(math)), b"libdevice"))
            )
        steps += [(f"nvvm{s}Program", lambda f: f(program, len(options), array)) for s in ("Verify", "Compile")]
        for step, call in steps:
            status = call(getattr(library, step))
            if status:
                raise ToolchainError(
                    f"libNVVM refuses the {name} for {arch}: {_status(library, status)} in {step}",
                    stderr=_read(library, program, "ProgramLog").decode(errors="replace").rstrip("\0\n"),
                    versions=toolkit.versions.as_dict(),
                )
        return _read(library, program, "CompiledResult")
    finally:
        library.nvvmDestroyProgram(ctypes.byref(program))


def _size(text: str) -> ctypes.c_size_t:
    return ctypes.c_size_t(len(text.encode()))


def _virtual(arch: str) -> str:
    """The virtual architecture of a real one: sm_90a -> compute_90."""
    match = re.fullmatch(r"sm_(\d+)[af]?", arch)
    if match is None:
        raise ToolchainError(f"{arch!r} is no architecture; write it like sm_90")
    return f"compute_{match[1]}"


def _libdevice(toolkit: Toolkit) -> Path:
    path = toolkit.root / _LIBDEVICE
    if not path.exists():
        raise ToolchainError(
            f"toolkit {toolkit.name} has no {_LIBDEVICE}, which exp, sin, pow and others of device functions need"
        )
    return path


def _status(library: ctypes.CDLL, status: int) -> str:
    library.nvvmGetErrorString.restype = ctypes.c_char_p
    return library.nvvmGetErrorString(status).decode()


def _read(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(library, f"nvvmGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(max(1, size.value))
    getattr(library, f"nvvmGet{what}")(program, buffer)
    return buffer.raw[: size.value]
