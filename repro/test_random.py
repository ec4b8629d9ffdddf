"""Eight random expressions: the DSL with what it chooses, hand-written array kernels of the same tree, and a copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from repro.random_draws import DRAWS
from stencil_dsl.testing import Prepared, Question, Target, Variant, asks, sweep_question

SHAPE = (256, 256, 256)
#: Block extents (z, y, x): the papers' shape, and two with long rows.
BLOCKS = {"arr-b8x8x8": (8, 8, 8), "arr-b32x4x4": (32, 4, 4), "arr-b64x4x1": (64, 4, 1)}


@dataclass(frozen=True)
class ArrayVariant(Variant):
    """The array kernel of a draw."""

    id: str
    case: str

    def _source(self, shape: tuple[int, ...]) -> str:
        from repro.random_draws import draw

        return draw(self.case).cuda(shape, BLOCKS[self.id])  # type: ignore[arg-type]

    def compile_facts(self, target: Target) -> dict[str, Any]:
        from repro.baselines import cubins

        facts: dict[str, Any] = {"schedule": self.id}
        found = cubins.cubin(self._source(SHAPE), target.arch)
        if found is not None:
            facts |= cubins.resources(found[0], self.case) | {"tool_set": {"nvcc": found[1]}}
        return facts

    def artefacts(self, target: Target) -> dict[str, str]:
        return {"kernel.cu": self._source(SHAPE)}

    def prepare(self, bench: Any) -> Prepared:
        import stencil_dsl
        from repro.baselines import cubins
        from repro.random_draws import draw, grid

        of, shape = draw(self.case), bench.question.shape
        halo = tuple((n, n) for n in of.halo_widths)

        def array(name: str | None) -> Any:
            def make() -> Any:
                made = stencil_dsl.empty(shape, halo=halo, device="cpu" if bench.xp.__name__ == "numpy" else "gpu")
                made.fill(float("nan"))
                if name is not None:
                    cells = made.with_halo(halo)
                    cells[...] = bench.question.inputs[name](tuple(-lo for lo, _ in halo), cells.shape, bench.xp)
                return made

            return bench.shared(("padded", name, 0, halo, "float64"), make)

        fields, out = [array(name) for name in of.fields], array(None)
        found = cubins.cubin(self._source(shape), bench.target.arch)
        if found is not None:
            kernel = bench.device.load_cubin(found[0], self.case)
        else:
            kernel = bench.device.load_cuda(self._source(shape), self.case, cubins.OPTIONS)
        arguments = tuple(a.buffer for a in (*fields, out))
        blocks, threads = grid(shape, BLOCKS[self.id]), BLOCKS[self.id]
        return Prepared(lambda stream: kernel(blocks, threads, arguments, stream), [out.interior], [out.buffer])


def expression(case: str) -> Question:
    """One sweep of a random expression."""
    from repro.random_draws import draw

    others = [ArrayVariant(name, case) for name in BLOCKS]
    return sweep_question(f"random-{case}", draw(case).stencil(), SHAPE, {"dsl": None}, others=others)


def contestants() -> list[object]:
    """Case and variant; large expressions take long to compile and interpret and are left out without a device."""
    found = []
    for case in DRAWS:
        for variant in ("dsl", *BLOCKS, "copy"):
            large = DRAWS[case][2] > 24 and variant == "dsl"
            marks = (pytest.mark.timed_only,) if variant in list(BLOCKS)[1:] or large else ()
            found.append(pytest.param(case, variant, marks=marks, id=f"{case}-{variant}"))
    return found


@pytest.mark.parametrize(("case", "variant"), contestants())
@asks(expression)
def test_random(case, variant, result):
    result.check()
