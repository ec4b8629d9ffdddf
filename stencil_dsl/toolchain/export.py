"""Python text of a kernel -> Tile IR bytecode -> cubin. Needs no GPU."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stencil_dsl.errors import ToolchainError
from stencil_dsl.toolchain import cutile_adapter
from stencil_dsl.toolchain.kit import Toolkit
from stencil_dsl.toolchain.paths import work_folder
from stencil_dsl.toolchain.process import run_tool
from stencil_dsl.toolchain.signature import Param
from stencil_dsl.toolchain.versions import release

if TYPE_CHECKING:
    from stencil_dsl.tilelib import TileLibrary


LIBRARY_BYTECODE = "13.5"
"""What kernels that call tile libraries are written in; the frontend holds it back from others."""


@dataclass(frozen=True)
class Artifact:
    """What compiling one kernel gave.

    Attributes:
        bytecode: Tile IR bytecode, what the frontend wrote.
        cubin: the device binary.
        remarks: tileiras' remarks as YAML; empty where not asked for or not supported (13.2).
        seconds: wall time of both steps.
        warnings: what the frontend ignored, for example num_worker_warps on 13.2.
    """

    bytecode: bytes
    cubin: bytes
    remarks: str
    seconds: float
    warnings: tuple[str, ...] = ()


def compile_source(
    source: str,
    function: str,
    params: Sequence[Param],
    *,
    symbol: str,
    arch: str,
    toolkit: Toolkit,
    opt_level: int | None = None,
    remarks: bool = True,
    timeout: float | None = 300,
    temporary: Path | None = None,
    libraries: Sequence[TileLibrary] = (),
) -> Artifact:
    """Compile one kernel.

    Args:
        source: a whole Python file that defines the kernel (`import cuda.tile as ct` included).
        function: name of the `@ct.kernel` function in it.
        params: one entry a parameter; int and float are compile-time constants.
        symbol: name of the kernel in the cubin.
        arch: for example "sm_90".
        opt_level: 0 to 3; None takes the kernel's own option.
        timeout: seconds for tileiras and what it starts; None waits for ever.
        temporary: folder for temporary files, the system's by default.
        libraries: tile libraries that the kernel calls; they are built for `arch` and linked in (13.5 on).

    Raises:
        ToolchainError: the frontend refuses the kernel, or (as ToolError, with command, words and
            return code) tileiras fails or runs out of time.
    """
    start = time.perf_counter()
    if libraries:
        _prepare_calls(toolkit)
    bytecode, own_level, warned = cutile_adapter.to_bytecode(
        source,
        function,
        params,
        symbol=symbol,
        arch=arch,
        bytecode_version=LIBRARY_BYTECODE if libraries else toolkit.bytecode_version,
        versions=toolkit.versions.as_dict(),
    )
    if libraries:
        _check_calls(function, symbol, libraries)
    cubin, notes = assemble(
        bytecode,
        arch=arch,
        toolkit=toolkit,
        opt_level=own_level if opt_level is None else opt_level,
        remarks=remarks,
        timeout=timeout,
        temporary=temporary,
        libraries=libraries,
    )
    return Artifact(bytecode, cubin, notes, time.perf_counter() - start, warned)


def assemble(
    bytecode: bytes,
    *,
    arch: str,
    toolkit: Toolkit,
    opt_level: int = 3,
    remarks: bool = True,
    timeout: float | None = 300,
    temporary: Path | None = None,
    libraries: Sequence[TileLibrary] = (),
) -> tuple[bytes, str]:
    """Tile IR bytecode -> (cubin, remarks as YAML). Raises ToolError with tileiras' words."""
    with work_folder(temporary) as folder:
        (folder / "kernel.bc").write_bytes(bytecode)
        env = toolkit.environment(folder)
        command = [str(toolkit.tileiras), "kernel.bc", "-o", "kernel.cubin", "--gpu-name", arch]
        if libraries:
            from stencil_dsl.toolchain.libraries import linking_environment, write_libraries

            command += write_libraries(libraries, arch, toolkit, folder, timeout)
            env = linking_environment(toolkit, folder)
        command += [f"-O{opt_level}", "--lineinfo"]
        if remarks and toolkit.writes_remarks:
            command += ["--remarks=all", "--remark-format=yaml", "--remarks-output-file=remarks.yaml"]
        run_tool(
            command,
            tool="tileiras",
            env=env,
            cwd=str(folder),
            timeout=timeout,
            versions=toolkit.versions.as_dict(),
            advice=_advice(toolkit),
        )
        notes = folder / "remarks.yaml"
        text = notes.read_text(errors="replace") if notes.exists() else ""
        return (folder / "kernel.cubin").read_bytes(), text


def _prepare_calls(toolkit: Toolkit) -> None:
    """Let the frontend know calls of tile libraries. Raises ToolchainError where it or the toolkit cannot."""
    from stencil_dsl.tilelib import TileLibraryError, adapter
    from stencil_dsl.toolchain.libraries import check_toolkit

    check_toolkit(toolkit)
    try:
        adapter.install()
    except TileLibraryError as error:
        raise ToolchainError(str(error)) from error


def _check_calls(function: str, symbol: str, libraries: Sequence[TileLibrary]) -> None:
    """tileiras would only say that a symbol is unknown. Raises ToolchainError."""
    from stencil_dsl.tilelib import adapter

    if any(export.name == symbol for library in libraries for export in library.exports):
        raise ToolchainError(f"kernel {symbol!r} has the name of an export that is linked to it; rename one of them")
    given = {library.digest for library in libraries}
    for path, digest in adapter.called_libraries():
        if digest not in given:
            raise ToolchainError(
                f"kernel {function!r} calls library {path!r} (digest {digest[:12]}), which is not among those given"
                f" ({', '.join(f'{b.name} {b.digest[:12]}' for b in libraries)}); pass it in libraries="
            )


def _advice(toolkit: Toolkit) -> str:
    """A hint where the three tools are of different releases, which tileiras does not say itself."""
    tools = toolkit.versions
    if len({release(tools.tileiras), release(tools.nvvm), release(tools.ptxas)}) == 1:
        return ""
    return "its tools are of different releases, which may be the reason"


def tile_ir(bytecode: bytes, toolkit: Toolkit, timeout: float | None = 60) -> str:
    """Tile IR text of a bytecode file. Raises ToolchainError where no tileirdisasm is found (13.4 on)."""
    if toolkit.tileirdisasm is None:
        raise ToolchainError(
            f"toolkit {toolkit.name} has no tileirdisasm, and none was found elsewhere; it ships from "
            "13.4 on and reads older bytecode too: python -m stencil_dsl.toolchain install 13.5"
        )
    with work_folder() as folder:
        (folder / "kernel.bc").write_bytes(bytecode)
        command = [str(toolkit.tileirdisasm), "kernel.bc"]
        command += ["--preview=simt"] if bytecode[10:11] == b"\x01" else []
        return run_tool(command, tool="tileirdisasm", cwd=str(folder), timeout=timeout).stdout
