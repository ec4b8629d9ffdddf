"""Profiles of the property tests: HYPOTHESIS_PROFILE=ci (default) repeats the same few cases, long finds new ones."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

# Cases compile and interpret a kernel: slow by hypothesis' standards, and large.
_COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
}
_PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
settings.register_profile("ci", derandomize=True, max_examples=40, phases=_PHASES, print_blob=True, **_COMMON)
settings.register_profile("long", max_examples=300, print_blob=True, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
