"""The pytest plugin: hooks only.

Each feature is a module with its own hooks; this one registers them, so that a session that uses none of
them pays for a few small imports and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stencil_dsl.testing import (
    distribution,
    fixtures,
    golden,
    grouping,
    hookspec,
    ledger,
    options,
    records,
    replay,
    terminal,
)

if TYPE_CHECKING:
    import pytest

_FEATURES = (grouping, distribution, fixtures, records, golden, replay, ledger, terminal)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(hookspec)


def pytest_addoption(parser: pytest.Parser) -> None:
    options.add(parser)


def pytest_configure(config: pytest.Config) -> None:
    options.check(config)
    for feature in _FEATURES:
        # Registering a module after configuration started also runs its own pytest_configure.
        config.pluginmanager.register(feature, feature.__name__)
