"""The kinds of variants: DSL kernels, tile functions, CUDA C++, a copy, and anything that enqueues work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from stencil_dsl.testing.question import Prepared, Target, Variant

if TYPE_CHECKING:
    from stencil_dsl.runtime.kernel import Kernel
    from stencil_dsl.testing.bench import Bench
    from stencil_dsl.toolchain import ArrayParam, ScalarParam


@dataclass(frozen=True)
class KernelVariant(Variant):
    """A kernel of the DSL.

    Attributes:
        make: compiles it for a target (through the kernel cache).
        inputs: the question's input names in the order of the kernel's fields.
        scalars: run-time scalars of the launch.
        probe: the same kernel at another shape, whose values are checked without a device; by default
            `make`'s own.
    """

    id: str
    make: Callable[[Target], Kernel]
    inputs: tuple[str, ...]
    scalars: Mapping[str, float] = field(default_factory=dict)
    probe: Callable[[Target], Sequence[Kernel]] | None = None

    def compile_facts(self, target: Target) -> dict[str, Any]:
        kernel = self.make(target)
        return resource_facts(kernel.resources, kernel.tool_versions, target) | {
            "schedule": str(kernel.schedule)
        }

    def validate(self, target: Target) -> dict[str, Any] | None:
        kernels = self.probe(target) if self.probe is not None else [self.make(target)]
        worst, shapes = 0.0, []
        for kernel in kernels:
            shapes.append("x".join(map(str, kernel.shape or ())))
            report = kernel.validate(device="cpu")
            worst = max(worst, float(report.max_rel_err))
            if not report.ok:
                return {
                    "ok": False,
                    "max_rel_err": worst,
                    "how": f"interpreter, {shapes[-1]}",
                    "why": str(report),
                }
        return {"ok": True, "max_rel_err": worst, "how": f"interpreter, {' '.join(shapes)}", "why": ""}

    def artefacts(self, target: Target) -> dict[str, str]:
        kernel = self.make(target)
        texts = {
            "kernel.py": kernel.source,
            "stencil.mlir": kernel.ir("stencil"),
            "tile.mlir": kernel.ir("tile"),
        }
        texts |= {"kernel.tileir": kernel.tile_ir, "kernel.sass": kernel.sass, "remarks.yaml": kernel.remarks}
        return {name: text for name, text in texts.items() if text}

    def prepare(self, bench: Bench) -> Prepared:
        import stencil_dsl

        kernel = self.make(bench.target)
        shape = bench.question.shape
        layout = (shape, str(kernel.halo), kernel.dtype)

        def array(fill: str | None) -> Any:
            made = stencil_dsl.empty(shape, halo=kernel.halo, dtype=kernel.dtype, device="gpu")
            if fill is not None:
                lo = tuple(-start for start in interior_origin(made))
                made.full[...] = bench.question.inputs[fill](lo, made.full.shape, bench.xp)
            return made

        inputs = [
            bench.shared(("padded", name, layout), lambda name=name: array(name)) for name in self.inputs
        ]
        count = len(kernel.stencil.outputs)
        outputs = [bench.shared(("padded-output", k, layout), lambda: array(None)) for k in range(count)]
        launch = kernel.bind(*inputs, *outputs, **self.scalars)
        return Prepared(
            enqueue=lambda stream: launch.launch(stream),
            outputs=[out.interior for out in outputs],
            guards=[out.full for out in outputs],
        )


def interior_origin(array: Any) -> tuple[int, ...]:
    """Index of the interior's first element within a padded array's full allocation."""
    offset = _address(array.interior) - _address(array.full)
    origin = []
    for stride in array.full.strides:
        origin.append(offset // stride)
        offset %= stride
    return tuple(origin)


def _address(array: Any) -> int:
    interface = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
    return int(interface["data"][0])


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

    def build(self, target: Target) -> Any:
        """The cache entry of this function for a target."""
        from stencil_dsl import toolchain

        toolkit = toolchain.find(target.toolkit) if target.toolkit else None
        return toolchain.build(
            self.source, self.function, self.params, symbol=self.function, arch=target.arch, toolkit=toolkit,
            **({} if self.opt_level is None else {"opt_level": self.opt_level}),
        )  # fmt: skip

    def compile_facts(self, target: Target) -> dict[str, Any]:
        entry = self.build(target)
        return resource_facts(entry.resources, entry.tool_versions, target)

    def artefacts(self, target: Target) -> dict[str, str]:
        entry = self.build(target)
        return {
            name: text
            for name, text in {"kernel.py": entry.source, "kernel.sass": entry.sass}.items()
            if text
        }

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
    read: Callable[[Bench, Sequence[Any]], Callable[[int, tuple[int, ...], tuple[int, ...]], Any]] | None = (
        None
    )

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
        return Prepared(enqueue=bench.device.copy_launch(self.nbytes), checked=False)


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


def resource_facts(resources: Any, tool_versions: Mapping[str, str], target: Target) -> dict[str, Any]:
    """Resources of a cubin as plain JSON values, with the tools that made it."""
    facts = asdict(resources)
    facts["tool_set"] = dict(tool_versions)
    return facts
