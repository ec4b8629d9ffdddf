"""Repository-local settings; everything a user of the plugin also needs is in stencil_dsl.testing."""

from __future__ import annotations

import pytest

collect_ignore_glob = ["build/*", "dist/*", ".venv/*"]
# Installed, the plugin is found by its entry point; from a plain checkout it is loaded here, under the same name.
pytest_plugins = ["pytester", "stencil_dsl.testing.plugin"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    marker = "compiled_only" if config.getoption("gpu") else "timed_only"
    left_out = [item for item in items if item.get_closest_marker(marker)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker(marker)]


def pytest_configure(config):
    config.addinivalue_line("markers", "timed_only: deselected without --gpu, where it would only be compiled")
    config.addinivalue_line("markers", "compiled_only: deselected with --gpu, because nothing of it is timed")
