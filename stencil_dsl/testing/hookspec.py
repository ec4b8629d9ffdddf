"""Hooks that a project using the plugin may implement in its conftest.py."""

from __future__ import annotations

import pytest


@pytest.hookspec(firstresult=True)
def pytest_stencil_device(config: pytest.Config) -> str | None:  # type: ignore[empty-body]
    """Names the device class as ``"module:Class"`` (see `stencil_dsl.testing.device.Device`).

    The class is imported in the worker process, so it must be importable from there. Default: CuPy's device.
    """
