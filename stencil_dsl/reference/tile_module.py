"""The stand-in for the module ``cuda.tile`` and the loading of emitted source with it.

The source is executed with its own ``__import__``; `sys.modules` and an installed cuda.tile are
never touched.
"""

from __future__ import annotations

import builtins
import sys
import types
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from stencil_dsl.reference import tile_dtypes as dt
from stencil_dsl.reference import tile_math, tile_reductions, tile_shaping
from stencil_dsl.reference.tile_access import gather_elements, load_box, store_box, stored_values
from stencil_dsl.reference.tile_arrays import Array, TiledView, check_hints, place
from stencil_dsl.reference.tile_dtypes import InterpreterError, MemoryOrder, MemoryScope, PaddingMode
from stencil_dsl.reference.tile_memory import Memory
from stencil_dsl.reference.tile_shaping import power_of_two_shape
from stencil_dsl.reference.tile_values import Tile

_HELPERS = {"power_of_two_shape"}
# Every public function written in these modules is a function of cuda.tile, of the same name.
VALUE_FUNCTIONS = {
    name: value
    for module in (tile_shaping, tile_math, tile_reductions)
    for name, value in vars(module).items()
    if isinstance(value, types.FunctionType)
    and value.__module__ == module.__name__
    and not name.startswith("_")
    and name not in _HELPERS
}

_TYPES = (
    dt.ArrayAnnotation,
    dt.ConstantAnnotation,
    dt.DType,
    dt.MemoryOrder,
    dt.MemoryScope,
    dt.PaddingMode,
    dt.RoundingMode,
)
TYPES: dict[str, Any] = {d.name: d for d in dt.ALL_DTYPES} | {t.__name__: t for t in _TYPES}
TYPES |= {"Constant": dt.Constant, "IndexedWithInt64": dt.IndexedWithInt64, "ScalarInt64": dt.ScalarInt64}


def load(
    array: Any,
    /,
    index: Any,
    shape: Any,
    *,
    order: Any = "C",
    padding_mode: PaddingMode = PaddingMode.UNDETERMINED,
    check_bounds: bool = True,
    latency: int | None = None,
    allow_tma: bool | None = None,
    memory_order: MemoryOrder = MemoryOrder.WEAK,
    memory_scope: MemoryScope = MemoryScope.NONE,
) -> Tile:
    """A tile of `array`; `index` counts tiles of `shape`."""
    _is_array(array, "load")
    if latency is not None or allow_tma is not None:
        check_hints(latency, allow_tma)
    wanted = power_of_two_shape(shape)
    box = wanted or (1,) * len(array.shape)
    if order != "C":
        array = array.permuted(order)
    line = sys._getframe(1).f_lineno
    tile = load_box(array, place(array, index, box), box, check_bounds, padding_mode, line)
    return tile if wanted else tile.item()


def store(
    array: Any,
    /,
    index: Any,
    tile: Any,
    *,
    order: Any = "C",
    check_bounds: bool = True,
    latency: int | None = None,
    allow_tma: bool | None = None,
    memory_order: MemoryOrder = MemoryOrder.WEAK,
    memory_scope: MemoryScope = MemoryScope.NONE,
) -> None:
    """Store a tile; `index` counts tiles of its shape."""
    _is_array(array, "store")
    if latency is not None or allow_tma is not None:
        check_hints(latency, allow_tma)
    values = stored_values(array, tile)
    if values.ndim == 0:
        values = values.reshape((1,) * len(array.shape))
    if order != "C":
        array = array.permuted(order)
    store_box(array, place(array, index, values.shape), values, check_bounds)


def gather(
    array: Any,
    indices: Any,
    /,
    *,
    mask: Any = None,
    padding_value: Any = 0,
    check_bounds: bool = True,
    latency: int | None = None,
) -> Tile:
    """Elements of `array`, one index tile (or scalar) an axis."""
    _is_array(array, "gather")
    if mask is not None or padding_value != 0:
        raise InterpreterError("ct.gather with a mask or a padding value is not interpreted")
    if latency is not None:
        check_hints(latency, None)
    return gather_elements(array, indices, check_bounds, sys._getframe(1).f_lineno)


def num_tiles(array: Any, /, axis: int, shape: Any, order: Any = "C") -> int:
    _is_array(array, "num_tiles")
    return -(-array.permuted(order).shape[axis] // power_of_two_shape(shape)[axis])


def launch(stream: Any, grid: Any, kernel: Any, kernel_args: Any, /) -> None:
    raise InterpreterError(
        "ct.launch needs a device; give the source to stencil_dsl.reference.tile_interpreter.run instead"
    )


def _is_array(array: Any, what: str) -> None:
    if type(array) is not Array:
        raise InterpreterError(f"ct.{what} takes a global array first, got {array!r}")


class Kernel:
    """A function marked with ``@ct.kernel``; its options are checked, otherwise unused."""

    def __init__(
        self,
        function: Callable[..., None],
        /,
        *,
        num_ctas: Any = None,
        occupancy: Any = None,
        opt_level: Any = 3,
        num_worker_warps: Any = None,
    ) -> None:
        if not isinstance(function, types.FunctionType):
            raise InterpreterError("ct.kernel marks a Python function")
        ranges = {
            "num_ctas": (num_ctas, (1, 2, 4, 8, 16)),
            "occupancy": (occupancy, range(1, 33)),
            "opt_level": (opt_level, range(4)),
            "num_worker_warps": (num_worker_warps, (1, 2, 4, 8, 16, 32)),
        }
        for name, (value, allowed) in ranges.items():
            if value is not None and value not in allowed:
                raise InterpreterError(f"kernel option {name}={value!r}: allowed is one of {list(allowed)}")
        self.function = function
        self.options = {name: value for name, (value, _) in ranges.items()}

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        raise InterpreterError("a kernel is not called; it is launched")


def kernel(function: Any = None, /, **options: Any) -> Any:
    if function is None:
        return lambda f: Kernel(f, **options)
    return Kernel(function, **options)


def function(func: Any = None, /, *, host: bool = False, tile: bool = True) -> Any:
    """Marks a helper of kernels, which runs as it is."""
    return func if func is not None else lambda f: f


class _StandIn(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        raise InterpreterError(f"cuda.tile.{name} is not offered by the interpreter")


def stand_in(memory: Memory) -> types.ModuleType:
    """A module with the names of cuda.tile, bound to the blocks of one run."""

    def bid(axis: Any) -> int:
        """Index of the running block along `axis`; an int, as index arithmetic is exact."""
        return _block_axis(memory.block_index(memory.block), axis, 0)

    def num_blocks(axis: Any) -> int:
        return _block_axis(memory.grid, axis, 1)

    module = _StandIn("cuda.tile")
    module.__dict__.update(TYPES)
    module.__dict__.update(VALUE_FUNCTIONS)
    module.__dict__.update(
        load=load,
        store=store,
        gather=gather,
        num_tiles=num_tiles,
        launch=launch,
        kernel=kernel,
        function=function,
        bid=bid,
        num_blocks=num_blocks,
    )
    module.__dict__.update(Array=Array, Tile=Tile, TiledView=TiledView, Scalar=int | float)
    return module


def _block_axis(values: tuple[int, ...], axis: Any, missing: int) -> int:
    if axis not in (0, 1, 2):
        raise InterpreterError(f"block axis {axis!r}: allowed are 0, 1 and 2")
    return values[axis] if axis < len(values) else missing


@lru_cache(maxsize=256)
def _compiled(source: str, filename: str) -> types.CodeType:
    return compile(source, filename, "exec", dont_inherit=True)


def execute(source: str, filename: str, tile_module: types.ModuleType) -> dict[str, Any]:
    """Globals of the emitted file, executed with `tile_module` in the place of cuda.tile."""
    package = types.ModuleType("cuda")
    package.tile = tile_module  # type: ignore[attr-defined]

    def import_(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if level == 0 and name == "cuda.tile":
            return tile_module if fromlist else package
        if level == 0 and name == "cuda":
            return package
        return builtins.__import__(name, globals, locals, fromlist, level)

    own = dict(vars(builtins))
    own.update(__import__=import_, min=_builtin(tile_math.minimum, min), max=_builtin(tile_math.maximum, max))
    space: dict[str, Any] = {"__builtins__": own, "__name__": "emitted_kernel", "__file__": filename}
    try:
        exec(_compiled(source, filename), space)
    except SyntaxError as error:
        raise InterpreterError(f"the source is no Python: {error.msg}", line=error.lineno) from error
    return space


def _builtin(on_tiles: Any, plain: Any) -> Any:
    """Python's min or max, which mean the tile operation where an operand is a tile."""

    def chosen(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2 and any(isinstance(a, Tile) for a in args):
            return on_tiles(*args)
        return plain(*args, **kwargs)

    return chosen
