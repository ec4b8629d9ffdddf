"""Repository-local settings; everything a user of the plugin also needs is in stencil_dsl.testing."""

from __future__ import annotations

collect_ignore_glob = ["build/*", "dist/*", ".venv/*"]
pytest_plugins = ["pytester"]
