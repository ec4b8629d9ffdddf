"""What is compiled where a toolkit is too old: before 13.4, every access is checked against its array's bounds.

Claims that are not about the checks can then be tested all the same; their finding says that there were checks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stencil_dsl.testing import FunctionVariant, KernelVariant, Problem, Question, Target

if TYPE_CHECKING:
    from stencil_dsl.runtime.kernel import Kernel

_UNCHECKED = ", check_bounds=False"


def with_checks(text: str) -> str | None:
    """A kernel's text with all accesses checked; None where they are."""
    return text.replace(_UNCHECKED, "") if _UNCHECKED in text else None


def checked_kernel(make: Callable[[Target], Kernel]) -> Callable[[Target], Kernel]:
    """Compiles a shifted kernel with checks; streaming ones have none to give."""
    kernels: dict[Target, Kernel] = {}

    def checked(target: Target) -> Kernel:
        if target not in kernels:
            from stencil_dsl.runtime.kernel import Kernel

            made = make(target)
            kernels[target] = Kernel(made.definition, made.shape, made.schedule.with_(loads="checked"), made.options)
        return kernels[target]

    return checked


def checked_question(question: Question) -> Question:
    """The question whose shifted kernels get checks where the toolkit has nothing else."""
    variants = tuple(
        replace(v, older=checked_kernel(v.make)) if isinstance(v, KernelVariant) else v for v in question.variants
    )
    return replace(question, variants=variants)


def function_variant(name: str, of: Problem, text: str, *rest: Any, **options: Any) -> FunctionVariant:
    """A `FunctionVariant` that older toolkits compile with checks."""
    return FunctionVariant(name, of, text, *rest, **{"older": with_checks(text), **options})
