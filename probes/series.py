"""Variants that take several launches, such as one kernel an output or one launch a time step."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from stencil_dsl.testing import FunctionVariant, KernelVariant, Prepared, Target, Variant
from stencil_dsl.testing.problem import compare_small, small_outputs

_SUMMED = ("instructions", "branches", "barriers", "spill_loads", "spill_stores", "spill_bytes", "loop_spills")
_LARGEST = ("registers", "stack_bytes", "shared_bytes", "threads", "loop_instructions")


@dataclass(frozen=True)
class Part:
    """One launch.

    Attributes:
        make: compiles its kernel for a target.
        inputs: names of the question's inputs, in the order of the kernel's fields.
        outputs: numbers of the question's outputs; or names of inputs, which are then intermediate arrays: their
            halo holds the input's values, and their interior is what this launch writes.
        older: see `KernelVariant`.
    """

    make: Callable[[Target], Any]
    inputs: tuple[str, ...]
    outputs: tuple[int | str, ...]
    older: Callable[[Target], Any] | None = None

    def variant(self, name: str) -> KernelVariant:
        return KernelVariant(name, self.make, self.inputs, older=self.older)


@dataclass(frozen=True)
class Series(Variant):
    """Launches in a row. Facts are summed over its kernels, registers and shared memory are the largest."""

    remembered: ClassVar[bool] = True

    id: str
    parts: tuple[Part, ...]

    def _kernels(self, target: Target) -> list[KernelVariant]:
        return [part.variant(self.id) for part in self.parts]

    def compile_facts(self, target: Target) -> dict[str, Any]:
        return summed([kernel.compile_facts(target) for kernel in self._kernels(target)])

    def validate(self, target: Target) -> dict[str, Any] | None:
        found = [kernel.validate(target) for kernel in {part.make: k for part, k in self._pairs(target)}.values()]
        worst = max(f["max_rel_err"] for f in found if f)
        bad = next((f for f in found if f and not f["ok"]), None)
        return (bad or found[0] or {}) | {"max_rel_err": worst}

    def _pairs(self, target: Target) -> Iterable[tuple[Part, KernelVariant]]:
        return zip(self.parts, self._kernels(target), strict=True)

    def artefacts(self, target: Target) -> dict[str, str]:
        texts = {}
        for n, kernel in enumerate(self._kernels(target)):
            texts |= {f"{n}-{name}": text for name, text in kernel.artefacts(target).items()}
        return texts

    def prepare(self, bench: Any) -> Prepared:
        launches = []
        outputs: dict[int, Any] = {}
        for part in self.parts:
            kernel, _ = part.variant(self.id).kernel(bench.target)
            fields = [self._array(bench, kernel, name) for name in part.inputs]
            results = [self._array(bench, kernel, name) for name in part.outputs]
            outputs |= {k: made for k, made in zip(part.outputs, results, strict=True) if isinstance(k, int)}
            launches.append(kernel.bind(*fields, *results))
        ordered = [outputs[k] for k in sorted(outputs)]

        def enqueue(stream: Any) -> None:
            for launch in launches:
                launch.launch(stream)

        return Prepared(enqueue, [out.interior for out in ordered], [out.buffer for out in ordered])

    def _array(self, bench: Any, kernel: Any, name: int | str) -> Any:
        """A padded array that holds an input (its halo matters also where a launch writes its interior), or NaN."""

        def make() -> Any:
            import stencil_dsl

            made = stencil_dsl.empty(bench.question.shape, halo=kernel.halo, dtype=kernel.dtype, device="gpu")
            made.fill(float("nan"))
            if isinstance(name, str):
                lo = tuple(-before for before, _ in kernel.halo)
                cells = made.with_halo(kernel.halo)
                cells[...] = bench.question.inputs[name](lo, cells.shape, bench.xp)
            return made

        return bench.shared(("series", self.id, name, kernel.halo, kernel.dtype), make)


@dataclass(frozen=True)
class FunctionSeries(Variant):
    """Launches of tile functions that write parts of the same outputs.

    Attributes:
        parts: the launches.
        concurrent: each launch has a stream of its own; else they follow one another.
        small: the launches that the interpreter runs, where they are not the parts on smaller extents.
    """

    remembered: ClassVar[bool] = True

    id: str
    parts: tuple[FunctionVariant, ...]
    concurrent: bool = False
    small: tuple[FunctionVariant, ...] = ()

    def compile_facts(self, target: Target) -> dict[str, Any]:
        return summed([part.compile_facts(target) for part in self.parts])

    def validate(self, target: Target) -> dict[str, Any] | None:
        parts = self.small or self.parts
        texts = [part.text(target) for part in self.parts]
        outputs = small_outputs(parts[0].problem)
        for part, text in zip(parts, texts, strict=True):
            part.interpret(outputs, text)
        return compare_small(parts[0].problem, outputs)

    def artefacts(self, target: Target) -> dict[str, str]:
        texts = {}
        for n, part in enumerate(self.parts):
            texts |= {f"{n}-{name}": text for name, text in part.artefacts(target).items()}
        return texts

    def prepare(self, bench: Any) -> Prepared:
        ready = [part.prepare(bench) for part in self.parts]

        def one_by_one(stream: Any) -> None:
            for part in ready:
                part.enqueue(stream)

        enqueue = one_by_one
        if self.concurrent:
            cuda = bench.xp.cuda
            streams = [cuda.Stream(non_blocking=True) for _ in ready]

            def side_by_side(stream: Any) -> None:
                start = cuda.Event(disable_timing=True)
                start.record(stream)
                for part, own in zip(ready, streams, strict=True):
                    own.wait_event(start)
                    part.enqueue(own)
                    done = cuda.Event(disable_timing=True)
                    done.record(own)
                    stream.wait_event(done)

            enqueue = side_by_side
        return Prepared(enqueue, ready[0].outputs, ready[0].guards)


def summed(facts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Facts of several kernels as one row."""
    total: dict[str, Any] = {"kernels": len(facts), "tool_set": facts[0]["tool_set"]}
    for name in _SUMMED:
        total[name] = None if any(f[name] is None for f in facts) else sum(f[name] for f in facts)
    for name in _LARGEST:
        total[name] = None if any(f[name] is None for f in facts) else max(f[name] for f in facts)
    for name in ("classes", "loop_classes"):
        known = [f[name] for f in facts if f[name] is not None]
        total[name] = dict(sum((Counter(k) for k in known), Counter())) if len(known) == len(facts) else None
    older = [why for f in facts if (why := f.get("older"))]
    if older:
        total["older"] = older[0]
    total["text_hash"] = hashlib.sha256("".join(f["text_hash"] for f in facts).encode()).hexdigest()
    return total
