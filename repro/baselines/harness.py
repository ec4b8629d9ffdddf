"""The baselines as variants of the measuring plugin: same arrays, same checks, same rounds as the DSL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from repro.baselines import ceilings, cubins, emulate
from repro.baselines.base import VARIANTS, Baseline, Shape, configs, generator
from repro.baselines.model import model
from stencil_dsl.testing.question import Prepared, Target, Variant


class BaselineVariant(Variant):
    """A generated CUDA or Triton baseline.

    Arrays are shared with the DSL's kernels of the same halo; those in bricks are converted before timing.

    Args:
        id: what the table calls it; by default the baseline's own id with all its choices.
        inputs: the question's input names in the order of the row's fields (default: the fields' names).
    """

    def __init__(self, baseline: Baseline, id: str | None = None, inputs: tuple[str, ...] = ()) -> None:
        self.baseline = baseline
        self.id = id or baseline.id
        self.inputs = dict(zip(baseline.model.fields, inputs or baseline.model.fields, strict=True))

    def compile_facts(self, target: Target) -> dict[str, Any]:
        """Registers, spills and instructions as nvcc (or Triton) compiles it; only its id without them."""
        facts: dict[str, Any] = {"schedule": self.baseline.id}
        found = self._cubin(target)
        if found is None:
            return facts
        cubin, facts["tool_set"] = found
        kernels = [cubins.resources(cubin, launch.kernel) for launch in self.baseline.launches]
        # Several kernels: the one that limits occupancy most, and each in full.
        facts |= max(kernels, key=lambda k: k["registers"] or 0)
        return facts | ({"kernels": kernels} if len(kernels) > 1 else {})

    def validate(self, target: Target) -> dict[str, Any] | None:
        """Runs the same generator's text for a small interior on the CPU; None without a C++ compiler."""
        if self.baseline.variant == "triton" or emulate.compiler() is None:
            return None
        from repro.baselines.check import small_check

        return small_check(self.baseline)

    def artefacts(self, target: Target) -> dict[str, str]:
        name = "kernel.py" if self.baseline.variant == "triton" else "kernel.cu"
        return {name: self.baseline.source}

    def prepare(self, bench: Any) -> Prepared:
        if self.baseline.bricks is not None:
            from repro.baselines.bricks import prepare_bricks

            return prepare_bricks(self, bench)
        arrays = padded_arrays(bench, self.baseline, self.inputs)
        outputs = [arrays[name] for name in self.baseline.model.outputs]
        return Prepared(
            enqueue=self.enqueue(bench, {name: array.buffer for name, array in arrays.items()}),
            outputs=[out.interior for out in outputs],
            guards=[out.buffer for out in outputs],
        )

    def enqueue(self, bench: Any, buffers: Mapping[str, Any]) -> Any:
        """Loads the kernels and binds them to buffers."""
        steps = [
            (self._load(bench, launch.kernel), launch, tuple(buffers[name] for name in launch.args))
            for launch in self.baseline.launches
        ]

        def run(stream: Any) -> None:
            for kernel, launch, arguments in steps:
                kernel(launch.grid, launch.block, arguments, stream)

        return run

    def _load(self, bench: Any, kernel: str) -> Any:
        if self.baseline.variant == "triton":
            return self._load_triton(bench)
        found = self._cubin(bench.target)
        if found is not None:
            return bench.device.load_cubin(found[0], kernel)
        return bench.device.load_cuda(self.baseline.source, kernel, cubins.OPTIONS)  # by NVRTC

    def _load_triton(self, bench: Any) -> Any:
        import numpy as np

        from repro.baselines.triton_kernels import compile_for

        done = compile_for(self.baseline, bench.target.arch)
        if done.shared:
            raise ValueError(f"{self.id} wants {done.shared} bytes of dynamic shared memory")
        launch = bench.device.load_cubin(done.cubin, done.kernel)

        def run(grid: Any, block: Any, arguments: tuple[Any, ...], stream: Any) -> None:
            # Triton's kernels have two more pointers, to scratch memory that these do not use.
            launch(grid, (done.threads, 1, 1), (*arguments, np.uint64(0), np.uint64(0)), stream)

        return run

    def _cubin(self, target: Target) -> tuple[bytes, dict[str, str]] | None:
        """The machine code that is measured, and what made it."""
        if self.baseline.variant == "triton":
            import importlib.util

            if importlib.util.find_spec("triton") is None:
                return None
            import triton

            from repro.baselines.triton_kernels import compile_for

            return compile_for(self.baseline, target.arch).cubin, {"triton": triton.__version__}
        found = cubins.cubin(self.baseline.source, target.arch)
        return None if found is None else (found[0], {"nvcc": found[1]})


def candidates(
    row: str, shape: Shape, variants: Iterable[str] = VARIANTS, search: bool = True
) -> list[BaselineVariant]:
    """Variants for one question on a row: all configurations, or only the first of each kind.

    Their ids hold the configuration ("stream-z64-y2-p2-u2-cx64-o4"), the best of a kind is for the table to pick.
    """
    found = []
    for variant in variants:
        chosen = configs(variant, row) if search else configs(variant, row)[:1]
        found += [BaselineVariant(generator(variant)(row, shape, config)) for config in chosen]
    return found


def padded_arrays(bench: Any, baseline: Baseline, inputs: Mapping[str, str]) -> dict[str, Any]:
    """Field and output names to padded device arrays, shared with DSL kernels of the same halo."""
    import stencil_dsl
    from stencil_dsl.runtime.arrays import Device

    shape, halo, dtype = bench.question.shape, baseline.halo, baseline.dtype
    device: Device = "cpu" if bench.xp.__name__ == "numpy" else "gpu"

    def made(source: str | None, number: int) -> Any:
        def make() -> Any:
            array = stencil_dsl.empty(shape, halo=halo, dtype=dtype, device=device)
            array.fill(float("nan"))  # what lies outside the halo may be loaded but must not matter
            if source is not None:
                cells = array.with_halo(halo)
                cells[...] = bench.question.inputs[source](tuple(-lo for lo, _ in halo), cells.shape, bench.xp)
            return array

        return bench.shared(("padded", source, number, halo, dtype), make)

    m = baseline.model
    arrays = {field: made(inputs[field], 0) for field in m.fields}
    return arrays | {output: made(None, k) for k, output in enumerate(m.outputs)}


class CupyVariant(Variant):
    """CuPy as a user writes it: version "elementwise" or "slices"."""

    def __init__(self, row: str, shape: Shape, version: str = "elementwise", id: str | None = None) -> None:
        self.row, self.shape, self.version = row, shape, version
        self.id = id or f"cupy-{version}"

    def prepare(self, bench: Any) -> Prepared:
        from repro.baselines import cupy_kernels

        like = generator("arr")(self.row, self.shape)  # for the arrays' layout
        arrays = padded_arrays(bench, like, {f: f for f in like.model.fields})
        outputs = [arrays[name].interior for name in like.model.outputs]
        guards = [arrays[name].buffer for name in like.model.outputs]
        if self.version == "elementwise":
            flat = {f: arrays[f].buffer for f in like.model.fields}
            sweep = cupy_kernels.elementwise(self.row, self.shape, flat, outputs)
        else:
            views = {f: arrays[f].with_halo(like.halo) for f in like.model.fields}
            sweep = cupy_kernels.slices(self.row, self.shape, views, outputs, bench.xp)

        def enqueue(stream: Any) -> None:
            with stream:
                sweep()

        # Slices allocate as they go, which a graph cannot record.
        return Prepared(enqueue, outputs, guards, capturable=self.version == "elementwise")


class JaxVariant(Variant):
    """JAX: jit of slices."""

    def __init__(self, row: str, shape: Shape, id: str = "jax") -> None:
        self.row, self.shape, self.id = row, shape, id

    def prepare(self, bench: Any) -> Prepared:
        from repro.baselines.jax_kernels import Sweep

        m = model(self.row)
        lo = tuple(-r for r in m.radius)
        whole = tuple(n + 2 * r for n, r in zip(self.shape, m.radius, strict=True))
        inputs = {f: bench.input(f, lo, whole) for f in m.fields}
        bench.device.synchronize()  # JAX does not know the stream that filled them
        sweep = Sweep(self.row, self.shape, inputs)

        def read(k: int, lo: tuple[int, ...], shape: tuple[int, ...]) -> Any:
            window = tuple(slice(a, a + n) for a, n in zip(lo, shape, strict=True))
            return bench.xp.from_dlpack(sweep.results[k])[window]

        return Prepared(lambda stream: sweep(stream.ptr), capturable=False, read=read)


class CeilingVariant(Variant):
    """A ceiling; its rate is ``ceiling.amount`` over the measured time.

    Args:
        kind: "copy", "triad" (with elements), or "l1", "l2", "fma" (with the device's own number of SMs).
    """

    def __init__(self, kind: str, elements: int = 1 << 27, sms: int | None = None) -> None:
        self.kind, self.elements, self.sms = kind, elements, sms
        self.id = f"ceiling-{kind}"

    def ceiling(self, sms: int) -> ceilings.Ceiling:
        """The kernel for a device with so many SMs."""
        if self.kind in ceilings.ON_CHIP:
            return ceilings.ON_CHIP[self.kind](sms)
        return {"copy": ceilings.copy, "triad": ceilings.triad}[self.kind](self.elements)

    def compile_facts(self, target: Target) -> dict[str, Any]:
        made = self.ceiling(self.sms or 1)
        return {"schedule": self.id, "unit": made.unit} | ({"amount": made.amount} if self.sms else {})

    def prepare(self, bench: Any) -> Prepared:
        made = self.ceiling(self.sms or bench.xp.cuda.Device().attributes["MultiProcessorCount"])
        kernel = bench.device.load_cuda(made.source, made.kernel, ("-std=c++17",))
        arrays = []
        for name in made.args:
            values = bench.xp.arange(made.elements[name], dtype=bench.xp.float64)
            arrays.append(values % 1021 / 1021.0 + 0.25)
        return Prepared(
            lambda stream: kernel(made.grid, made.block, tuple(arrays), stream),
            checked=False,
            facts={"schedule": self.id, "unit": made.unit, "amount": made.amount},
        )
