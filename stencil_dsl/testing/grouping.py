"""Selected items that ask the same question form a group, which is measured together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from stencil_dsl.testing.options import settings
from stencil_dsl.testing.question import Question
from stencil_dsl.testing.reference import QuestionRef, refer


@dataclass(frozen=True)
class Member:
    """An item's place in its group: which question, which variant, for which target."""

    question: QuestionRef
    variant: str
    arch: str
    toolkit: str | None


MEMBER: pytest.StashKey[Member] = pytest.StashKey()
#: Items with the same text run in one xdist worker.
UNIT: pytest.StashKey[str] = pytest.StashKey()
#: Group key -> (variant, toolkit, arch) of the selected items, in their order.
SELECTED: pytest.StashKey[dict[str, list[tuple[str, str | None, str]]]] = pytest.StashKey()


def asks(function: Callable[..., Question], **fixed: Any) -> pytest.MarkDecorator:
    """Marks a test as asking `function`'s question.

    The function must be at the top level of its module: a worker process calls it again. Its arguments
    are taken from the test's parameters of the same names, and from `fixed`. The test's parameter
    ``variant`` says which variant it is.
    """
    return pytest.mark.question.with_args(function, **fixed)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "question(function): the test measures a variant of this question (use `asks`)")
    config.addinivalue_line("markers", "gpu: needs a device: skipped without --gpu, fails with --gpu where none is")


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests that use `arch` or `toolkit` (directly or through `result`) run for each one asked on the
    command line.
    """
    chosen = None
    if "arch" in metafunc.fixturenames and "arch" not in _parametrized(metafunc):
        chosen = settings(metafunc.config)
        metafunc.parametrize("arch", chosen.archs)
    if "toolkit" in metafunc.fixturenames and "toolkit" not in _parametrized(metafunc):
        chosen = chosen or settings(metafunc.config)
        if chosen.toolkits != (None,):
            metafunc.parametrize("toolkit", chosen.toolkits)


def _parametrized(metafunc: pytest.Metafunc) -> set[str]:
    names: set[str] = set()
    for mark in metafunc.definition.iter_markers("parametrize"):
        given = mark.args[0] if mark.args else mark.kwargs.get("argnames", ())
        names.update(part.strip() for part in given.split(",")) if isinstance(given, str) else names.update(given)
    return names


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        member = _member(item)
        if member is not None:
            item.stash[MEMBER] = member
    _contiguous(items)
    whole_modules = {item.path for item in items if "answers" in getattr(item, "fixturenames", ())}
    for item in items:
        if item.path in whole_modules:
            item.stash[UNIT] = str(item.path)
        elif MEMBER in item.stash:
            item.stash[UNIT] = item.stash[MEMBER].question.key


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Groups hold what is left after -k, -m and --deselect."""
    selected: dict[str, list[tuple[str, str | None, str]]] = {}
    for item in session.items:
        if MEMBER in item.stash:
            member = item.stash[MEMBER]
            selected.setdefault(member.question.key, []).append((member.variant, member.toolkit, member.arch))
    session.config.stash[SELECTED] = selected


def _member(item: pytest.Item) -> Member | None:
    mark = item.get_closest_marker("question")
    callspec = getattr(item, "callspec", None)
    if mark is None or callspec is None or "variant" not in callspec.params:
        return None
    parameters = {**callspec.params, **mark.kwargs}
    try:
        reference = refer(mark.args[0], parameters)
    except (TypeError, IndexError) as error:
        raise pytest.UsageError(f"{item.nodeid}: {error}") from error
    arch = parameters.get("arch") or settings(item.config).archs[0]
    return Member(reference, parameters["variant"], arch, parameters.get("toolkit"))


def _contiguous(items: list[pytest.Item]) -> None:
    """Moves items of a group next to its first one; all else keeps its order."""
    first: dict[Any, int] = {}
    places = []
    for place, item in enumerate(items):
        key = item.stash[MEMBER].question.key if MEMBER in item.stash else None
        places.append(place if key is None else first.setdefault(key, place))
    items[:] = [item for _, _, item in sorted(zip(places, range(len(items)), items, strict=True), key=lambda t: t[:2])]
