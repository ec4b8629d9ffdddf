"""The kinds of variants: DSL kernels, tile functions, CUDA C++, a copy, and anything that enqueues work."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from stencil_dsl.errors import ToolchainError
from stencil_dsl.testing.older import lacking
from stencil_dsl.testing.question import Prepared, Target, Variant

if TYPE_CHECKING:
    from stencil_dsl.runtime.kernel import Kernel
    from stencil_dsl.testing.bench import Bench
    from stencil_dsl.toolchain import ArrayParam, Entry, Resources, ScalarParam


@dataclass(frozen=True)
class KernelVariant(Variant):
    """A kernel of the DSL.

    Attributes:
        make: compiles it for a target (through the kernel cache).
        inputs: the question's input names in the order of the kernel's fields.
        scalars: run-time scalars of the launch.
        older: compiles what stands in for it where the toolkit is too old for the kernel; None: it then fails.
    """

    remembered: ClassVar[bool] = True

    id: str
    make: Callable[[Target], Kernel]
    inputs: tuple[str, ...]
    scalars: Mapping[str, float] = field(default_factory=dict)
    older: Callable[[Target], Kernel] | None = None

    def kernel(self, target: Target) -> tuple[Kernel, str]:
        """The kernel for a target, and why it is the one for older toolkits ("" where it is not)."""
        made = self.make(target)
        if self.older is None:
            return made, ""
        try:
            _ = made.entry
        except ToolchainError as error:
            why = lacking(str(error))
            if why is None:
                raise
            return self.older(target), why
        return made, ""

    def compile_facts(self, target: Target) -> dict[str, Any]:
        kernel, why = self.kernel(target)
        entry = kernel.entry
        facts = resource_facts(entry.resources, entry.tool_versions) | {"schedule": str(kernel.schedule)}
        return facts | {"older": why} if why else facts

    def validate(self, target: Target) -> dict[str, Any] | None:
        """Interprets the emitted file on small interiors: one that takes the same code, one with tails
        on all axes.
        """
        kernel, _ = self.kernel(target)
        worst, shapes = 0.0, []
        for candidate in (kernel, kernel.for_shape(None)):
            outcome = candidate.validate(device="cpu")
            shapes.append("x".join(map(str, outcome.shape)))
            worst = max(worst, outcome.max_rel_err)
            if not outcome.ok:
                return {
                    "ok": False,
                    "max_rel_err": worst,
                    "how": f"interpreter, {shapes[-1]}",
                    "why": outcome.message,
                }
        return {"ok": True, "max_rel_err": worst, "how": f"interpreter, {' '.join(shapes)}", "why": ""}

    def artefacts(self, target: Target) -> dict[str, str]:
        kernel, _ = self.kernel(target)
        texts = {
            "kernel.py": kernel.source,
            "stencil.mlir": kernel.ir("stencil"),
            "tile.mlir": kernel.ir("tile"),
        }
        texts |= {"kernel.sass": kernel.sass or "", "remarks.yaml": kernel.remarks}
        with contextlib.suppress(ToolchainError):  # tileirdisasm ships from 13.4 on
            texts["kernel.tileir"] = kernel.tile_ir
        return {name: text for name, text in texts.items() if text}

    def prepare(self, bench: Bench) -> Prepared:
        kernel, _ = self.kernel(bench.target)
        names = kernel.definition.outputs
        inputs = [self._array(bench, kernel, name, 0) for name in self.inputs]
        outputs = [self._array(bench, kernel, None, k) for k in range(len(names))]
        launch = kernel.bind(*inputs, *outputs, **self.scalars)
        return Prepared(
            enqueue=launch.launch,
            outputs=[out.interior for out in outputs],
            guards=[out.buffer for out in outputs],
        )

    def _array(self, bench: Bench, kernel: Kernel, source: str | None, number: int) -> Any:
        """A padded array, shared by variants with the same halo: an input's values within NaN, or an
        output.
        """

        def make() -> Any:
            import stencil_dsl

            made = stencil_dsl.empty(bench.question.shape, halo=kernel.halo, dtype=kernel.dtype, device="gpu")
            # What lies outside the halo may be loaded but must not matter.
            made.fill(float("nan"))
            if source is not None:
                lo = tuple(-before for before, _ in kernel.halo)
                cells = made.with_halo(kernel.halo)
                cells[...] = bench.question.inputs[source](lo, cells.shape, bench.xp)
            return made

        return bench.shared(("padded", source, number, kernel.halo, kernel.dtype), make)


@dataclass(frozen=True)
class TileVariant(Variant):
    """A cuTile function given as source text (or the path of a file), compiled through the toolchain.

    Attributes:
        source, function: the text and the name of its ``@ct.kernel`` function.
        params: the signature: array and scalar parameters, and constants as plain numbers.
        bind: on a device, gives (grid, arguments, outputs): arguments are arrays and numbers in the
            order of params
            (constants left out), outputs the arrays to check.
    """

    id: str
    source: str
    function: str
    params: tuple[ArrayParam | ScalarParam | int | float, ...]
    bind: Callable[[Bench], tuple[tuple[int, ...], Sequence[Any], Sequence[Any]]] | None = None
    opt_level: int | None = None

    def build(self, target: Target) -> Entry:
        """The cache entry of this function for a target."""
        from stencil_dsl import toolchain

        return toolchain.build(
            self.source,
            self.function,
            self.params,
            symbol=self.function,
            arch=target.arch,
            toolkit=target.toolkit,
            opt_level=self.opt_level,
        )

    def compile_facts(self, target: Target) -> dict[str, Any]:
        entry = self.build(target)
        return resource_facts(entry.resources, entry.tool_versions)

    def artefacts(self, target: Target) -> dict[str, str]:
        entry = self.build(target)
        return {name: text for name, text in {"kernel.py": entry.source, "kernel.sass": entry.sass}.items() if text}

    def prepare(self, bench: Bench) -> Prepared:
        import numpy as np

        if self.bind is None:
            raise TypeError(f"variant {self.id!r} has no bind function: it can be compiled but not launched")
        entry = self.build(bench.target)
        grid, arguments, outputs = self.bind(bench)
        launch = bench.device.load_cubin(entry.cubin, self.function)
        flat: list[Any] = []
        for argument in arguments:
            if hasattr(argument, "strides"):
                flat.append(argument)
                flat.extend(np.int32(extent) for extent in argument.shape)
                flat.extend(np.int32(stride // argument.itemsize) for stride in argument.strides)
            else:
                flat.append(argument)
        # A tile kernel is launched with one "thread" a block; the cubin says how many there really are.
        return Prepared(enqueue=lambda stream: launch(grid, (1, 1, 1), tuple(flat), stream), outputs=outputs)


@dataclass(frozen=True)
class CudaVariant(Variant):
    """CUDA C++ compiled with NVRTC where it runs.

    Attributes:
        source, kernel: the text and the kernel's name.
        bind: gives (grid, block, arguments, outputs) on a device.
        options: NVRTC options.
        read: reader of outputs in a layout of their own (see `Prepared.read`), made from the bench and
            the outputs.
    """

    id: str
    source: str
    kernel: str
    bind: Callable[[Bench], tuple[tuple[int, ...], tuple[int, ...], Sequence[Any], Sequence[Any]]]
    options: tuple[str, ...] = ("-std=c++17",)
    read: Callable[[Bench, Sequence[Any]], Callable[[int, tuple[int, ...], tuple[int, ...]], Any]] | None = None

    def artefacts(self, target: Target) -> dict[str, str]:
        return {"kernel.cu": self.source}

    def prepare(self, bench: Bench) -> Prepared:
        launch = bench.device.load_cuda(self.source, self.kernel, self.options)
        grid, block, arguments, outputs = self.bind(bench)
        return Prepared(
            enqueue=lambda stream: launch(grid, block, tuple(arguments), stream),
            outputs=outputs,
            read=self.read(bench, outputs) if self.read is not None else None,
        )


@dataclass(frozen=True)
class CopyVariant(Variant):
    """A device-to-device copy that reads and writes `nbytes` in total: the ceiling of a memory-bound
    sweep.
    """

    id: str
    nbytes: int

    def prepare(self, bench: Bench) -> Prepared:
        enqueue, name = bench.device.copy_launch(self.nbytes)
        return Prepared(enqueue=enqueue, checked=False, facts={"schedule": name})


@dataclass(frozen=True)
class CallableVariant(Variant):
    """Anything that enqueues work: Triton, JAX, a library. ``make(bench)`` returns a `Prepared`."""

    id: str
    make: Callable[[Bench], Prepared]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def compile_facts(self, target: Target) -> dict[str, Any]:
        return dict(self.facts)

    def prepare(self, bench: Bench) -> Prepared:
        return self.make(bench)


def resource_facts(resources: Resources, tool_versions: Mapping[str, str]) -> dict[str, Any]:
    """Resources of a cubin as plain JSON values, with the tools that made it."""
    return resources.to_json() | {"tool_set": dict(tool_versions)}
