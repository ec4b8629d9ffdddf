"""Everything of cuda.tile's private side that tile libraries need, in one place.

cuda-tile 1.7.0 compiles foreign calls, but the module that offers them, `cuda.tile_preview`, is not part of it: its
compiler looks for one (`_preview_loader`), asks it for the class `PreviewForeignCall`, orders such operations among
loads and stores, collects their libraries, and marks the bytecode. This stand-in supplies that class. Where the real
module is installed, calls go through it.

Hooks, as read in 1.7.0:

- `_ir.ops.tile_impl_registry.impl(function)`: how a Python function gets a meaning inside kernels;
- `_ir.ir.Operation` with `generate_bytecode`, and `_bytecode.encode_PreviewCallOp`;
- `_preview_loader.get_preview_foreign_call_type`: remembers whether there is a preview module;
- `_compile._get_bytecode`: collects libraries; wrapped, because calls without effects are not to be ordered and so
  must not be of the class that it knows;
- `_compile._SUPPORTED_VERSIONS`: bytecode 13.5 is there, but has to be let in.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import sys
import threading
import types
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from stencil_dsl.tilelib.errors import TileLibraryError
from stencil_dsl.tilelib.library import is_known
from stencil_dsl.tilelib.preview import Kind, Tilelib, check_call, find_exporter, foreign_call, sized_name

READ_IN = "1.7.0"
PREVIEW = "cuda.tile_preview"
_HOOKS = {
    "cuda.tile._ir.ops": ("tile_impl_registry",),
    "cuda.tile._ir.ir": ("Operation", "MemoryEffect", "attribute", "operand", "add_operation_variadic"),
    "cuda.tile._ir.type": ("TileTy", "TokenTy"),
    "cuda.tile._ir.core_ops": ("build_tuple", "sym2var"),
    "cuda.tile._ir.op_impl": ("require_tuple_type", "require_constant_str", "ensure_tile"),
    "cuda.tile._passes.hir2ir": ("call_function",),
    "cuda.tile._bytecode": ("encode_PreviewCallOp", "patch_header_preview_flag", "BytecodeVersion"),
    "cuda.tile._preview_loader": ("get_preview_foreign_call_type",),
    "cuda.tile._compile": ("_get_bytecode", "_SUPPORTED_VERSIONS", "_BytecodeResult"),
}
_lock = threading.Lock()
_last = threading.local()
_installed: dict[str, Any] = {}


def missing_hooks() -> list[str]:
    """Private names that this version of cuda.tile no longer has; empty where all is well."""
    missing = []
    for module, names in _HOOKS.items():
        try:
            found = importlib.import_module(module)
        except ImportError:
            missing.append(module)
            continue
        missing += [f"{module}.{n}" for n in names if not hasattr(found, n)]
    return missing


def install() -> None:
    """Teach cuda.tile to compile `foreign_call`; doing so again does nothing.

    Raises:
        TileLibraryError: cuda.tile is missing, or is a version without the names that are needed.
    """
    with _lock:
        if _installed:
            return
        try:
            found = version("cuda-tile")
        except PackageNotFoundError:
            raise TileLibraryError("tile libraries in kernels need cuda-tile, which is not installed") from None
        missing = missing_hooks()
        if missing:
            raise TileLibraryError(
                f"cuda-tile {found} has no {', '.join(missing)}, which calls of tile libraries are made of; they were"
                f" written for cuda-tile {READ_IN}: pip install cuda-tile=={READ_IN}"
            )
        _installed["real"] = _real_preview()
        pure, ordered = _operations()
        _let_version_in()
        if _installed["real"] is None:
            stand_in = types.ModuleType(PREVIEW, __doc__)
            stand_in.__dict__.update(Tilelib=Tilelib, foreign_call=foreign_call, PreviewForeignCall=ordered)
            sys.modules[PREVIEW] = stand_in
            importlib.import_module("cuda.tile._preview_loader").get_preview_foreign_call_type.cache_clear()
        _collect_pure()
        _register(pure, ordered)


def called_libraries() -> tuple[tuple[str, str], ...]:
    """Path and version of the libraries that this thread's last compiled kernel calls."""
    return getattr(_last, "called", ())


def uses_real_preview() -> bool:
    """Whether ordered calls go through an installed `cuda.tile_preview`."""
    install()
    return _installed["real"] is not None


def _real_preview() -> Any:
    if importlib.util.find_spec(PREVIEW) is None:
        return None
    return importlib.import_module(PREVIEW)


def _let_version_in() -> None:
    compiler = importlib.import_module("cuda.tile._compile")
    newest = importlib.import_module("cuda.tile._bytecode").BytecodeVersion.V_13_5
    if newest not in compiler._SUPPORTED_VERSIONS:
        compiler._SUPPORTED_VERSIONS.append(newest)


def _operations() -> tuple[type, type]:
    """The two classes of calls: without effects, and ordered among loads and stores by tokens."""
    from cuda.tile import _bytecode as bc
    from cuda.tile._ir.ir import MemoryEffect, Operation, attribute, operand

    def call(op: Any, ctx: Any, operands: list[Any], results: list[Any]) -> Any:
        return bc.encode_PreviewCallOp(ctx.builder, results, operands, op.symbol_name, (), None, None)

    class PureForeignCall(Operation, opcode="pure_foreign_call", memory_effect=MemoryEffect.NONE):  # type: ignore[call-arg]
        symbol_name: str = attribute()
        tilelibs: tuple = attribute()
        inputs: tuple = operand()

        def generate_bytecode(self, ctx: Any) -> Any:
            _last.pure.update(self.tilelibs)
            values = [ctx.get_value(v) for v in self.inputs]
            return call(self, ctx, values, [ctx.typeid_of(v) for v in self.result_vars])

    class PreviewForeignCall(Operation, opcode="preview_foreign_call", memory_effect=MemoryEffect.STORE):  # type: ignore[call-arg]
        symbol_name: str = attribute()
        tilelibs: tuple = attribute()
        inputs: tuple = operand()
        token: Any = operand(default=None)

        def generate_bytecode(self, ctx: Any) -> Any:
            values = [ctx.get_value(v) for v in self.inputs]
            values += [ctx.get_value(self.token)] if self.token is not None else []
            results = [ctx.typeid_of(v) for v in self.result_vars[:-1]]
            return call(self, ctx, values, [*results, ctx.type_table.Token])

    make = dataclasses.dataclass(eq=False)
    return make(PureForeignCall), make(PreviewForeignCall)


def _collect_pure() -> None:
    """Let the compiler see the libraries of calls without effects, and mark their bytecode."""
    compiler = importlib.import_module("cuda.tile._compile")
    original = compiler._get_bytecode

    def get_bytecode(ir_keeper: Any, *args: Any, **kwargs: Any) -> Any:
        # Operations note themselves as they are written: asking for the IR again would build it again.
        _last.pure = {}
        result = original(ir_keeper, *args, **kwargs)
        found = dict(result.linker_inputs) | _last.pure
        _last.called = tuple(found.items())
        if not _last.pure:
            return result
        compiler.bc.patch_header_preview_flag(result.bytecode, ir_keeper.bytecode_version)
        features = tuple(sorted({*result.preview_features, "simt"}))
        inputs = tuple(sorted(found.items(), key=lambda item: str(item[0])))
        return dataclasses.replace(result, preview_features=features, linker_inputs=inputs)

    compiler._get_bytecode = get_bytecode  # type: ignore[attr-defined]


def _register(pure_call: type, ordered_call: type) -> None:
    from cuda.tile._ir.core_ops import build_tuple, sym2var
    from cuda.tile._ir.ir import add_operation_variadic
    from cuda.tile._ir.op_impl import ensure_tile, require_constant_str, require_tuple_type
    from cuda.tile._ir.ops import tile_impl_registry
    from cuda.tile._ir.type import TileTy, TokenTy
    from cuda.tile._passes.hir2ir import call_function

    async def implementation(
        tilelibs: Any, symbol_name: Any, constant_params: Any, inputs: Any, output_types: Any, pure: Any
    ) -> Any:
        from cuda.tile._exception import TileTypeError

        for name, value in (("tilelibs", tilelibs), ("constant_params", constant_params), ("pure", pure)):
            if not value.is_constant():
                raise TileTypeError(f"{name} of foreign_call is a compile-time constant, such as a module's global")
        require_tuple_type(inputs)
        name = sized_name(require_constant_str(symbol_name), constant_params.get_constant())
        libraries = tilelibs.get_constant()
        real = _installed["real"]
        if real is not None and not pure.get_constant():
            named = tuple(real.Tilelib(path=t.path, version=t.version) for t in libraries)
            return await call_function(
                real.foreign_call,
                tilelibs=sym2var(named),
                symbol_name=sym2var(name),
                constant_params=sym2var(()),
                inputs=inputs,
                output_types=output_types,
            )
        tiles = tuple(ensure_tile(v) for v in inputs.get_aggregate().items)
        outputs = output_types.get_constant()
        types_ = tuple(TileTy(dtype, shape) for dtype, shape in outputs)
        kinds = [(t.get_type().dtype.name, t.get_type().shape) for t in tiles]
        _check(libraries, name, kinds, [(dtype.name, tuple(shape)) for dtype, shape in outputs])
        facts = {"symbol_name": name, "tilelibs": tuple((t.path, t.version) for t in libraries), "inputs": tiles}
        if pure.get_constant():
            return build_tuple(add_operation_variadic(pure_call, types_, **facts))
        results = add_operation_variadic(ordered_call, (*types_, TokenTy()), **facts)
        return build_tuple(results[:-1])

    tile_impl_registry.impl(foreign_call)(implementation)


def _check(libraries: Sequence[Tilelib], name: str, inputs: list[Kind], outputs: list[Kind]) -> None:
    """Compare a call with descriptions of this process; a library that was only built elsewhere is not known here."""
    from cuda.tile._exception import TileTypeError

    if all(is_known(t.version) for t in libraries):
        try:
            check_call(find_exporter(libraries, name).export(name), inputs, outputs)
        except TileLibraryError as error:
            raise TileTypeError(str(error)) from error
