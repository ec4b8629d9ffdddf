"""What a tile function computes and what one launch of it gets, for any extents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stencil_dsl.testing.question import Question, Reference, Source, Variant

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class In:
    """An array parameter that holds an input's values on a box of the problem's coordinates.

    Attributes:
        name: which input.
        lo: first coordinates of the box; halo cells are negative. Default: the origin.
        shape: extents of the box, None: those of the problem.
        view: extents as the kernel sees them, where they differ (pairs along z: (X, Y, Z / 2, 2)).
        static: shape and strides are compiled in; else only what divides them is.
        align: the first element's address in bytes is divisible by this.
    """

    name: str
    lo: tuple[int, ...] | None = None
    shape: tuple[int, ...] | None = None
    view: tuple[int, ...] | None = None
    static: bool = True
    align: int = 256


@dataclass(frozen=True)
class Out:
    """An array parameter that receives output `k`. Several parameters may be the same output."""

    k: int = 0
    view: tuple[int, ...] | None = None
    static: bool = True
    align: int = 256


@dataclass(frozen=True)
class Scalar:
    """A number passed at launch."""

    value: float | int
    dtype: str = "int32"


@dataclass(frozen=True)
class Call:
    """One launch: grid, and one argument a parameter. Plain numbers are compile-time constants."""

    grid: tuple[int, ...]
    args: tuple[In | Out | Scalar | int | float, ...]


@dataclass(frozen=True)
class Problem:
    """What all variants of a question compute.

    Attributes:
        shape: extents of every output.
        inputs: input name to its values by coordinates.
        reference: ``reference(lo, shape)`` gives the expected outputs on a box.
        check: extents small enough for the interpreter.
        tolerance: accepted error relative to the largest expected magnitude.
        dtype: element type of inputs (unless they have a ``dtype``) and outputs.
        bytes: compulsory bytes of one launch.
        outputs: how many there are.
    """

    shape: tuple[int, ...]
    inputs: Mapping[str, Source] = field(compare=False)
    reference: Reference = field(compare=False)
    check: tuple[int, ...] = ()
    tolerance: float = 1e-12
    dtype: str = "float64"
    bytes: int = 0
    outputs: int = 1

    def ask(self, name: str, variants: Sequence[Variant], baseline: str | None = None, **options: Any) -> Question:
        """The question of these variants; `baseline` is the one that others are compared with (default: the first)."""
        return Question(
            id=name,
            shape=self.shape,
            variants=tuple(variants),
            inputs=self.inputs,
            reference=cache(self.reference),  # a box is computed once, however many variants are compared with it
            tolerance=self.tolerance,
            dtype=self.dtype,
            bytes=self.bytes,
            baseline=baseline or variants[0].id,
            **options,
        )

    def functions(
        self,
        name: str,
        file: str | Path,
        calls: Mapping[str, tuple[str, Callable[[tuple[int, ...]], Call]]],
        baseline: str | None = None,
        **kernel_options: Any,
    ) -> Question:
        """The question of kernels that stand in a Python file.

        Args:
            name: the question's id.
            file: the file; it is read, not imported.
            calls: variant id to (kernel function, launch for given extents).
            baseline: see `ask`.
            kernel_options: arguments of ``@ct.kernel`` to replace, for all variants.
        """
        from stencil_dsl.testing.kernel_source import kernel_text
        from stencil_dsl.testing.tile_kernels import FunctionVariant

        variants = [
            FunctionVariant(key, self, kernel_text(file, function, **kernel_options), function, call)
            for key, (function, call) in calls.items()
        ]
        return self.ask(name, variants, baseline)

    def dtype_of(self, name: str) -> str:
        """Element type of an input."""
        return getattr(self.inputs[name], "dtype", self.dtype)


def small_outputs(problem: Problem) -> list[np.ndarray]:
    """Outputs of the problem's small extents, nothing written yet."""
    import numpy as np

    return [np.full(problem.check, np.nan, dtype=problem.dtype) for _ in range(problem.outputs)]


def compare_small(problem: Problem, outputs: Sequence[np.ndarray]) -> dict[str, Any]:
    """Outcome of `Variant.validate` for outputs of the problem's small extents."""
    import numpy as np

    shape = problem.check
    worst, why = 0.0, ""
    for k, want in enumerate(problem.reference((0,) * len(shape), shape)):
        missing = int(np.isnan(outputs[k]).sum())
        if missing and not why:
            why = f"output {k}: {missing} of {outputs[k].size} values are NaN (not written?)"
        difference = np.abs(outputs[k].astype(np.float64) - np.asarray(want, dtype=np.float64))
        difference[~np.isfinite(difference)] = np.inf
        worst = max(worst, float(difference.max() / max(float(np.abs(want).max()), np.finfo(np.float64).tiny)))
    if not why and not worst <= problem.tolerance:
        why = f"relative error {worst:.3g} exceeds {problem.tolerance:.3g}"
    return {"ok": not why, "max_rel_err": worst, "how": f"interpreter, {'x'.join(map(str, shape))}", "why": why}
