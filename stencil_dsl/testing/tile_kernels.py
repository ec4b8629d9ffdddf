"""Variants that are plain ``@ct.kernel`` functions, described once for the compiler, the interpreter and a device.

A `Problem` says what is computed; a `Call` says what one launch of a kernel gets, for any extents. From the two
follow the compile-time signature, the check of values on a small problem without a GPU, and the launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import TYPE_CHECKING, Any, ClassVar

from stencil_dsl.errors import ToolchainError
from stencil_dsl.testing.older import lacking
from stencil_dsl.testing.problem import Call, In, Out, Problem, Scalar, compare_small, small_outputs
from stencil_dsl.testing.question import Prepared, Target, Variant
from stencil_dsl.testing.variants import resource_facts

if TYPE_CHECKING:
    import numpy as np

    from stencil_dsl.testing.bench import Bench
    from stencil_dsl.tilelib import TileLibrary
    from stencil_dsl.toolchain import ArrayParam, Entry, ScalarParam

#: Elements before and behind every output that nobody may write.
_GUARD = 1024
#: cuTile looks at divisibility up to this, in elements.
_DIVISOR = 16


@dataclass(frozen=True)
class FunctionVariant(Variant):
    """A tile function.

    Attributes:
        problem: what it computes.
        source, function: a Python text and the name of its kernel (see `kernel_text`).
        call: the launch for given extents of the problem.
        opt_level: of the tile assembler; None takes the kernel's own.
        symbol: the kernel's name in the cubin, by default the function's.
        toolkit: compile with this one whatever was asked for.
        interpreted: False for kernels that the interpreter cannot run; their values are checked on a device only.
        libraries: tile libraries that the kernel calls.
        capturable: launches can be captured in a CUDA graph; False times them as the host enqueues them.
        older: a text that is compiled instead where the toolkit is too old for `source`; None: it then fails.
    """

    remembered: ClassVar[bool] = True

    id: str
    problem: Problem
    source: str
    function: str
    call: Callable[[tuple[int, ...]], Call]
    opt_level: int | None = None
    symbol: str | None = None
    toolkit: str | None = None
    interpreted: bool = True
    libraries: tuple[TileLibrary, ...] = ()
    capturable: bool = True
    older: str | None = None

    def build(self, target: Target) -> Entry:
        """The kernel's cache entry for a target."""
        return self._built(target)[0]

    def _built(self, target: Target) -> tuple[Entry, str]:
        """The entry, and why it is that of `older` ("" where it is not)."""
        try:
            return self._compile(self.source, target), ""
        except ToolchainError as error:
            why = lacking(str(error))
            if self.older is None or why is None:
                raise
            return self._compile(self.older, target), why

    def _compile(self, source: str, target: Target) -> Entry:
        from stencil_dsl import toolchain

        return toolchain.build(
            source,
            self.function,
            self.params(),
            symbol=self.symbol or self.function,
            arch=target.arch,
            toolkit=self.toolkit or target.toolkit,
            opt_level=self.opt_level,
            libraries=self.libraries,
        )

    def params(self) -> list[ArrayParam | ScalarParam | int | float]:
        """The signature that the compiler is given."""
        from stencil_dsl.toolchain import ScalarParam

        shape = self.problem.shape
        result: list[Any] = []
        for arg in self.call(shape).args:
            if isinstance(arg, (In, Out)):
                result.append(self._array_param(arg, shape))
            else:
                result.append(ScalarParam(arg.dtype) if isinstance(arg, Scalar) else arg)
        return result

    def _array_param(self, arg: In | Out, shape: tuple[int, ...]) -> ArrayParam:
        from stencil_dsl.toolchain import ArrayParam

        extents = arg.view or (arg.shape if isinstance(arg, In) and arg.shape else shape)
        strides = tuple(prod(extents[axis + 1 :]) for axis in range(len(extents)))
        dtype = self.problem.dtype_of(arg.name) if isinstance(arg, In) else self.problem.dtype
        if arg.static:
            return ArrayParam(dtype, extents, strides, base_divisible_by=arg.align)
        unknown = (None,) * len(extents)
        return ArrayParam(
            dtype,
            unknown,
            (*unknown[:-1], 1),
            base_divisible_by=min(arg.align, 16),
            shape_divisible_by=tuple(gcd(n, _DIVISOR) for n in extents),
            stride_divisible_by=tuple(gcd(n, _DIVISOR) for n in strides),
        )

    def compile_facts(self, target: Target) -> dict[str, Any]:
        entry, why = self._built(target)
        facts = resource_facts(entry.resources, entry.tool_versions)
        facts |= {"older": why} if why else {}
        return facts | {"warnings": w} if (w := entry.meta.get("warnings")) else facts

    def artefacts(self, target: Target) -> dict[str, str]:
        from stencil_dsl import toolchain

        entry = self.build(target)
        texts = {"kernel.py": entry.source, "kernel.sass": entry.sass or "", "remarks.yaml": entry.remarks}
        try:
            texts["kernel.tileir"] = toolchain.tile_ir(entry.bytecode, toolchain.find(self.toolkit or target.toolkit))
        except ToolchainError as error:  # tileirdisasm ships from 13.4 on
            texts["kernel.tileir.missing"] = str(error)
        return {name: text for name, text in texts.items() if text}

    # -- values without a device

    def validate(self, target: Target) -> dict[str, Any] | None:
        if not self.interpreted or not self.problem.check:
            return None
        outputs = small_outputs(self.problem)
        self.interpret(outputs, self.text(target))
        return compare_small(self.problem, outputs)

    def text(self, target: Target) -> str:
        """The text that is compiled for a target."""
        return self.source if self.older is None else self.build(target).source

    def interpret(self, outputs: Sequence[np.ndarray], source: str) -> None:
        """Runs a text of the kernel on the problem's small extents."""
        import numpy as np

        from stencil_dsl.reference.tile_interpreter import ArrayArg, run

        shape = self.problem.check
        call = self.call(shape)
        args: list[Any] = []
        for arg in call.args:
            if isinstance(arg, In):
                array = np.ascontiguousarray(self._values(arg, shape, np))
                args.append(ArrayArg.of(array.reshape(arg.view) if arg.view else array))
            elif isinstance(arg, Out):
                array = outputs[arg.k]
                args.append(ArrayArg.of(array.reshape(arg.view) if arg.view else array))
            else:
                args.append(np.dtype(arg.dtype).type(arg.value) if isinstance(arg, Scalar) else arg)
        run(source, self.function, call.grid, args)

    def _values(self, arg: In, shape: tuple[int, ...], xp: Any) -> Any:
        extents = arg.shape or shape
        lo = arg.lo or (0,) * len(extents)
        return self.problem.inputs[arg.name](lo, extents, xp).astype(self.problem.dtype_of(arg.name))

    # -- on a device

    def prepare(self, bench: Bench) -> Prepared:
        entry = self.build(bench.target)
        call = self.call(self.problem.shape)
        launch = bench.device.load_cubin(entry.cubin, self.symbol or self.function)
        outputs: dict[int, tuple[Any, Any]] = {}
        arguments: list[Any] = []
        for arg in call.args:
            if isinstance(arg, In):
                arguments.append(self._input(bench, arg))
            elif isinstance(arg, Out):
                guard, array = outputs.setdefault(arg.k, _guarded(bench, arg.k))
                arguments.append(array.reshape(arg.view) if arg.view else array)
            elif isinstance(arg, Scalar):
                arguments.append(arg)
        flat = flatten(arguments)
        ordered = [outputs[k] for k in sorted(outputs)]
        return Prepared(
            # A tile kernel is launched with one "thread" a block; the cubin says how many there really are.
            enqueue=lambda stream: launch(call.grid, (1, 1, 1), flat, stream),
            outputs=[array for _, array in ordered],
            guards=[guard for guard, _ in ordered],
            capturable=self.capturable,
        )

    def _input(self, bench: Bench, arg: In) -> Any:
        extents = arg.shape or self.problem.shape
        key = ("function input", arg.name, arg.lo, extents)
        array = bench.shared(key, lambda: bench.xp.ascontiguousarray(self._values(arg, self.problem.shape, bench.xp)))
        return array.reshape(arg.view) if arg.view else array


def _guarded(bench: Bench, k: int) -> tuple[Any, Any]:
    """(allocation, output k within it)."""
    shape, dtype = bench.question.shape, bench.question.dtype

    def make() -> Any:
        return bench.xp.empty(prod(shape) + 2 * _GUARD, dtype=dtype)

    flat = bench.shared(("guarded output", k, shape, dtype), make)
    return flat, flat[_GUARD:-_GUARD].reshape(shape)


def flatten(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments as a cubin takes them: an array is its address, then its extents, then its strides in elements."""
    import numpy as np

    flat: list[Any] = []
    for argument in arguments:
        if isinstance(argument, Scalar):
            flat.append(np.dtype(argument.dtype).type(argument.value))
            continue
        flat.append(argument)
        flat.extend(np.int32(extent) for extent in argument.shape)
        flat.extend(np.int32(stride // argument.itemsize) for stride in argument.strides)
    return tuple(flat)
