"""The only module that touches cuda.tile. Written against cuda-tile 1.7.0.

Public names: `cuda.tile.compilation` (export_kernel, KernelSignature, the constraints,
CallingConvention). Private ones, each with its reason:

- `kernel._compiler_options.opt_level_for_target(arch)`: `export_kernel` to bytecode does not carry the
  optimisation level, which tileiras takes on its command line, and there is no public way to read it.
"""

from __future__ import annotations

import hashlib
import io
import linecache
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from stencil_dsl.errors import ToolchainError
from stencil_dsl.toolchain.signature import ArrayParam, Param, ScalarParam
from stencil_dsl.toolchain.versions import package_version

# cuda.tile compiles under a lock of its own; ours also covers the registered source text.
_LOCK = threading.RLock()


def available() -> bool:
    """Whether cuda.tile is installed; does not import it."""
    return package_version("cuda-tile") is not None


def to_bytecode(
    source: str,
    function: str,
    params: Sequence[Param],
    *,
    symbol: str,
    arch: str,
    bytecode_version: str,
    versions: dict[str, str] | None = None,
) -> tuple[bytes, int, tuple[str, ...]]:
    """Run cuTile's frontend on a kernel given as Python text.

    Returns:
        Tile IR bytecode; the optimisation level that the kernel's options ask for on `arch`; the
        frontend's warnings (an option that this bytecode version cannot express, and that is ignored).

    Raises:
        ToolchainError: cuda.tile is not installed, or it refuses the kernel (its words included).
    """
    try:
        import cuda.tile
        from cuda.tile.compilation import CallingConvention, KernelSignature, export_kernel
    except ImportError as error:
        raise ToolchainError(
            f"compiling needs cuda.tile, which cannot be imported ({error}); "
            "install it with: pip install 'stencil-dsl[toolchain]'"
        ) from error
    with _LOCK, _registered(source, function) as filename:
        try:
            namespace: dict[str, Any] = {"__name__": f"stencil_dsl_kernel_{function}", "__file__": filename}
            exec(compile(source, filename, "exec"), namespace)  # the text is what we were asked to compile
            kernel = namespace[function]
            signature = KernelSignature(
                [_constraint(p, cuda.tile) for p in params],
                CallingConvention.cutile_python_v2(),
                symbol=symbol,
            )
            buffer = io.BytesIO()
            with warnings.catch_warnings(record=True) as noted:
                warnings.simplefilter("always")
                export_kernel(
                    kernel,
                    [signature],
                    buffer,
                    gpu_code=arch,
                    output_format="tileir_bytecode",
                    bytecode_version=bytecode_version,
                )
            words = dict.fromkeys(str(w.message) for w in noted)
            return buffer.getvalue(), _opt_level(kernel, arch), tuple(words)
        except Exception as error:
            name = "no such function" if isinstance(error, KeyError) else type(error).__name__
            raise ToolchainError(
                f"the cuTile frontend refused kernel {function!r} for {arch} (bytecode {bytecode_version}): {name}",
                stderr=str(error),
                versions=versions or {"cuda-tile": package_version("cuda-tile") or "unknown"},
            ) from error


@contextmanager
def _registered(source: str, function: str) -> Iterator[str]:
    """Make the text readable for `inspect` under a name that depends on nothing but the text.

    No file is written: the name lands in the cubin's debug sections, and so the same kernel gives the
    same cubin, byte for byte, wherever it is compiled.
    """
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    filename = f"/stencil_dsl/{digest}/{function}.py"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    try:
        yield filename
    finally:
        linecache.cache.pop(filename, None)


def _constraint(param: Param, ct: Any) -> Any:
    from cuda.tile.compilation import ArrayConstraint, ConstantConstraint, ScalarConstraint

    if isinstance(param, ScalarParam):
        return ScalarConstraint(getattr(ct, param.dtype))
    if not isinstance(param, ArrayParam):
        return ConstantConstraint(param)
    return ArrayConstraint(
        getattr(ct, param.dtype),
        param.ndim,
        index_dtype=getattr(ct, param.index_dtype),
        stride_lower_bound_incl=0,
        alias_groups=param.alias_groups,
        may_alias_internally=param.may_alias_internally,
        stride_constant=param.strides,
        shape_constant=param.shape,
        # a known value makes its divisibility redundant, and the constraint refuses the pair when
        # the known value contradicts it
        stride_divisible_by=_unknown_only(param.strides, param.stride_divisible_by),
        shape_divisible_by=_unknown_only(param.shape, param.shape_divisible_by),
        base_addr_divisible_by=param.base_divisible_by,
    )


def _unknown_only(values: tuple[int | None, ...], factors: tuple[int, ...] | None) -> list[int]:
    if factors is None:
        return [1] * len(values)
    return [factor if value is None else 1 for value, factor in zip(values, factors, strict=True)]


def _opt_level(kernel: Any, arch: str) -> int:
    return int(kernel._compiler_options.opt_level_for_target(arch))
