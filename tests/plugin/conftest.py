"""The fixture `bed`: a pytester folder with a fake device and a test module that asks a question of it."""

from __future__ import annotations

import pytest
from plugin_bed import Bed


@pytest.fixture
def bed(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Bed:
    return Bed(pytester, monkeypatch)
