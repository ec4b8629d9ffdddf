"""The five outputs of CNS as one kernel, two and five: what fusing saves.

Every kernel has the schedule that the compiler chooses for it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from repro.rows import ROWS
from repro.tuning import STORE
from stencil_dsl.testing import Question, RandomField, asks

if TYPE_CHECKING:
    from probes.series import Part

SHAPE = (512, 512, 512)
#: Variant -> outputs by kernel.
GROUPS = {
    "fused": ((0, 1, 2, 3, 4),),
    "four-and-one": ((0, 1, 2, 3), (4,)),
    "two-and-three": ((0, 1), (2, 3, 4)),
    "five": ((0,), (1,), (2,), (3,), (4,)),
}


@cache
def kernel(outputs: tuple[int, ...], arch: str, toolkit: str | None) -> Any:
    """The fused kernel of some outputs."""
    import stencil_dsl
    from probes.test_fusion import OUTPUTS

    return stencil_dsl.compile_fused(
        [OUTPUTS[k] for k in outputs],
        arch,
        shape=SHAPE,
        toolkit=toolkit,
        name="cns_" + "".join(map(str, outputs)),
        store=stencil_dsl.TuningStore(STORE),
    )


def part(outputs: tuple[int, ...]) -> Part:
    from probes.series import Part
    from probes.test_fusion import OUTPUTS

    fields = dict.fromkeys(field for k in outputs for field in OUTPUTS[k].fields)
    return Part(lambda target: kernel(outputs, target.arch, target.toolkit), tuple(fields), outputs)


def groupings() -> Question:
    """The same five outputs by one, two and five kernels, and a copy of what a fused sweep must move."""
    from probes.series import Series
    from probes.test_fusion import FIELDS, expected
    from stencil_dsl.testing import CopyVariant

    nbytes = ROWS["cns"].bytes * 512**3
    made = [Series(name, tuple(part(outputs) for outputs in of)) for name, of in GROUPS.items()]
    return Question(
        id="cns-groupings",
        shape=SHAPE,
        variants=(*made, CopyVariant("copy", nbytes)),
        inputs={name: RandomField(seed) for seed, name in enumerate(FIELDS)},
        reference=cache(expected),
        bytes=nbytes,
        baseline="fused",
    )


#: Without a device only the narrow kernels are compiled; the widest is a row of the nine.
ALWAYS = ("five", "copy")


@pytest.mark.parametrize(
    "variant", [pytest.param(v, marks=() if v in ALWAYS else (pytest.mark.timed_only,)) for v in (*GROUPS, "copy")]
)
@asks(groupings)
def test_grouping(variant, result):
    result.check()
