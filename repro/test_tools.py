"""Tables that only the compiler decides: compiler stacks, pairings of tools, and the row fold.

The kernels are those of the probes of the same names. A release that is not installed here is recorded as missing.
"""

from __future__ import annotations

import pytest

from probes.judging import recorded
from probes.sweeps import STENCILS
from probes.test_pairings import NEWER, PUBLISHED, name_of, pairings
from probes.test_row_fold import FOLDS, folds
from probes.test_stacks import RELEASES, stacks
from stencil_dsl.testing import asks

own_tools = pytest.mark.parametrize("toolkit", [None], ids=["own-tools"])


@pytest.mark.compiled_only
@own_tools
@pytest.mark.parametrize("arch", ["sm_120"])
@pytest.mark.parametrize("variant", [f"stack-{release}" for release in RELEASES])
@pytest.mark.parametrize("stencil", [*STENCILS])
@asks(stacks)
def test_stack(stencil, variant, arch, result):
    recorded(result)


@pytest.mark.compiled_only
@own_tools
@pytest.mark.parametrize("arch", ["sm_120"])
@pytest.mark.parametrize("variant", [name_of(s) for s in PUBLISHED])
@pytest.mark.parametrize("which", ["published"])
@asks(pairings)
def test_pairing(which, variant, arch, result):
    recorded(result)


@pytest.mark.compiled_only
@own_tools
@pytest.mark.parametrize("variant", [name_of(s) for s in NEWER])
@pytest.mark.parametrize("which", ["newer"])
@asks(pairings)
def test_newer_pairing(which, variant, result):
    recorded(result)


@pytest.mark.parametrize("variant", ["shifted", *FOLDS])
@asks(folds)
def test_fold(variant, result):
    result.check()
