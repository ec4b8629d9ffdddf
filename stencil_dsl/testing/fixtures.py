"""Fixtures of the harness: `result` (the item's own variant), `answers` (all variants), `claim` (a
probe's verdict).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from stencil_dsl.testing import golden, replay
from stencil_dsl.testing.claims import Claim, Finding
from stencil_dsl.testing.grouping import MEMBER
from stencil_dsl.testing.options import settings
from stencil_dsl.testing.question import Question, Target
from stencil_dsl.testing.reference import refer
from stencil_dsl.testing.session import Measurements, Result

#: Name of the user property in which records travel from xdist workers to the controller.
PROPERTY = "stencil-dsl"

_MEASUREMENTS: pytest.StashKey[Measurements] = pytest.StashKey()


def measurements(config: pytest.Config) -> Measurements:
    """The session's measurements, made when first used."""
    if _MEASUREMENTS not in config.stash:
        config.stash[_MEASUREMENTS] = Measurements(config)
    return config.stash[_MEASUREMENTS]


@pytest.fixture
def toolkit() -> str | None:
    """The toolkit to compile with; None is the default one. Parametrized by --toolkit."""
    return None


@pytest.fixture
def result(request: pytest.FixtureRequest, arch: str, toolkit: str | None) -> Result:
    """What was measured of this item's variant. Its group is measured when the first of its items asks.

    The fixture never fails by itself: call ``result.check()``, which raises on a variant that does not
    compile, computes wrong values, breaks the device or has moved away from its golden facts.
    """
    item = request.node
    if MEMBER not in item.stash:
        raise pytest.UsageError(
            f"{item.nodeid} uses `result` but asks no question: "
            "mark it with asks(function) and give it a parameter `variant`"
        )
    member = item.stash[MEMBER]
    found = measurements(request.config).result(member.question, member.variant, Target(arch, toolkit))
    record = found.record() | {
        "node": item.nodeid,
        "module": item.nodeid.split("::")[0],
        "params": _simple(item.callspec.params),
    }
    item.user_properties.append((PROPERTY, record))
    replay.replay(request, found)
    found.gate = lambda: golden.gate(request.config, record)
    return found


@pytest.fixture
def answers(request: pytest.FixtureRequest, arch: str, toolkit: str | None) -> Callable[..., dict[str, Result]]:
    """``answers(function, **arguments)``: results of every variant of a question, by id."""

    def all_of(function: Callable[..., Question], **arguments: Any) -> dict[str, Result]:
        return measurements(request.config).all_results(refer(function, arguments), Target(arch, toolkit))

    return all_of


@pytest.fixture
def claim(request: pytest.FixtureRequest, arch: str, toolkit: str | None) -> Callable[..., None]:
    """``claim(CLAIM, finding, ...)`` enters a probe's verdicts in the ledger: one on code, one on times where
    there are any (None is left out). ``tools`` names the tool sets of a probe that brings its own.
    """

    def enter(made: Claim, *findings: Finding | None, tools: str | None = None) -> None:
        for finding in findings:
            if finding is None:
                continue
            record = {
                "kind": "claim",
                "node": request.node.nodeid,
                "arch": arch,
                "toolkit": toolkit,
                "tools": tools,
                **made.record(),
                **finding.record(),
            }
            request.node.user_properties.append((PROPERTY, record))

    return enter


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") is None:
        return
    chosen = settings(item.config)
    if not chosen.gpu:
        pytest.skip("needs a device: run with --gpu")
    from stencil_dsl.testing.device import device_class

    device_class(chosen.device_class).describe(chosen.device_number)  # raises GpuUnavailableError: a failure


def pytest_unconfigure(config: pytest.Config) -> None:
    if _MEASUREMENTS in config.stash:
        config.stash[_MEASUREMENTS].close()


def _simple(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as JSON and xdist can carry them."""
    return {k: v if isinstance(v, (str, int, float, bool, type(None))) else str(v) for k, v in parameters.items()}
