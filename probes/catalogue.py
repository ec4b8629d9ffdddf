"""All variants of all probes, without running pytest: read from the marks of their tests."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from stencil_dsl.testing import Question, Target, Variant
from stencil_dsl.testing.reference import QuestionRef, refer

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Item:
    """One variant of a question.

    Attributes:
        module: name of the probe's module.
        question: its question, to be resolved.
        variant: id of the variant.
        arch: the only architecture it is compiled for, or None.
    """

    module: str
    question: QuestionRef
    variant: str
    arch: str | None = None

    @property
    def name(self) -> str:
        """ "question/variant", as `show` takes it; makes the question."""
        return f"{_question(self.question).id}/{self.variant}"

    def resolve(self) -> Variant:
        return _question(self.question).variant(self.variant)

    def artefacts(self, target: Target) -> dict[str, str]:
        return self.resolve().artefacts(Target(self.arch or target.arch, target.toolkit))


@cache
def _question(reference: QuestionRef) -> Question:
    return reference.resolve()


def modules() -> list[str]:
    """Names of the probe modules, in order."""
    return [f"probes.{path.stem}" for path in sorted(FOLDER.glob("test_*.py"))]


def items() -> Iterator[Item]:
    """Every variant of every probe, in the order of the modules."""
    for name in modules():
        module = importlib.import_module(name)
        for function in vars(module).values():
            if inspect.isfunction(function) and function.__module__ == name:
                yield from _of(name, function)


def _of(module: str, function: Any) -> Iterator[Item]:
    marks = list(getattr(function, "pytestmark", ()))
    asked = next((mark for mark in marks if mark.name == "question"), None)
    if asked is None:
        return
    axes = [_axis(mark) for mark in marks if mark.name == "parametrize"]
    for combination in product(*axes):
        parameters = {name: value for part in combination for name, value in part.items()} | asked.kwargs
        if "variant" in parameters:
            reference = refer(asked.args[0], parameters)
            yield Item(module, reference, parameters["variant"], parameters.get("arch"))


def _axis(mark: Any) -> list[dict[str, Any]]:
    """The values of a parametrize mark, by name."""
    names, values = mark.args[0], mark.args[1]
    names = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
    return [dict(zip(names, value if len(names) > 1 else (value,), strict=True)) for value in values]


def find(text: str) -> Item:
    """The variant called "question/variant", or whose name ends so; KeyError lists what is near."""
    # Making a question takes a while: first those that have such a variant.
    last = text.rpartition("/")[2]
    known = {item.name: item for item in items() if last in item.variant} or {item.name: item for item in items()}
    if text in known:
        return known[text]
    near = [name for name in known if text in name]
    if len(near) == 1:
        return known[near[0]]
    what = f"{text!r} is {'several variants' if near else 'no variant'}"
    raise KeyError(f"{what}: {', '.join(near[:12] or list(known)[:12])}{', ...' if len(near or known) > 12 else ''}")


def claims() -> dict[int, tuple[Any, str]]:
    """Claim number -> (claim, module that tests it)."""
    from stencil_dsl.testing import Claim

    found: dict[int, tuple[Any, str]] = {}
    for name in modules():
        for value in vars(importlib.import_module(name)).values():
            if isinstance(value, Claim) and (value.number not in found or _enters(name, value)):
                found[value.number] = (value, name)
    return dict(sorted(found.items()))


def _enters(module: str, claim: Any) -> bool:
    """Whether this module's test of claims enters the claim (a module may define one that another enters)."""
    names = {name for name, value in vars(importlib.import_module(module)).items() if value is claim}
    tests = [f for name, f in vars(importlib.import_module(module)).items() if name.startswith("test_claim")]
    return any(names & set(test.__code__.co_names) for test in tests)
