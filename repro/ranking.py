"""How well the ranking model orders schedules: its choices against what was measured.

`results/<gpu>/search.csv` holds one line a timed kernel: CUDA events around three launches, median of nine rounds in
which all kernels of a stencil took turns, values equal to a shifted kernel's. A kernel that was timed again at a later
commit has a line for each, oldest first, so that changes of the compiler can be read off. `python -m repro.ranking`
predicts each and says, for every stencil, how much slower the model's choice is than the best that was timed. Shuffle
schedules have a table of their own (`python -m repro.ranking lanes`, `repro.ranking_lanes`).
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stencil_dsl.runtime.definition import Definition
    from stencil_dsl.schedule.schedule import Schedule

RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True)
class Timed:
    """One line of the file."""

    stencil: str
    steps: int
    dtype: str
    shape: tuple[int, ...]
    schedule: Schedule
    ms: float


@dataclass(frozen=True)
class Verdict:
    """One stencil: how many schedules were timed, and the model's choice among them.

    Attributes:
        loss: time of the choice over the best time.
        rank: Spearman's correlation of predicted and measured times.
        error: mean |log(predicted / measured)| among schedules within 1.5 of the best.
    """

    name: str
    count: int
    loss: float
    rank: float
    error: float
    choice: str


def read(path: Path) -> Iterator[Timed]:
    from stencil_dsl.schedule.schedule import Schedule

    with path.open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            yield Timed(
                line["stencil"],
                int(line["steps"]),
                line["dtype"],
                tuple(map(int, line["shape"].split("x"))),
                Schedule.from_json(json.loads(line["schedule"])),
                float(line["ms"]),
            )


def _definition(t: Timed) -> Definition:
    from repro import stencils
    from stencil_dsl.runtime.definition import Definition

    return Definition.of(getattr(stencils, t.stencil), t.dtype, steps=t.steps)


def _ranks(values: list[float]) -> list[int]:
    order = sorted(range(len(values)), key=lambda i: values[i])
    ranks = [0] * len(values)
    for rank, i in enumerate(order):
        ranks[i] = rank
    return ranks


def spearman(predicted: list[float], measured: list[float]) -> float:
    """Correlation of two orders; 1 where there are too few to tell."""
    a, b, n = _ranks(predicted), _ranks(measured), len(measured)
    return 1 - 6 * sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) / (n * (n * n - 1)) if n > 2 else 1.0


def judge(name: str, timed: list[Timed]) -> Verdict:
    """Predict all schedules of one stencil on one shape."""
    from stencil_dsl.runtime.specialize import padded_form, problem_of
    from stencil_dsl.schedule.model import predict
    from stencil_dsl.schedule.target import H200

    definition = _definition(timed[0])
    problem = problem_of(definition, padded_form(definition, timed[0].shape))
    predicted = [predict(problem, t.schedule, H200).seconds * 1e3 for t in timed]
    measured = [t.ms for t in timed]
    best = min(measured)
    choice = min(range(len(timed)), key=lambda i: predicted[i])
    rank = spearman(predicted, measured)
    near = [abs(log(p / m)) for p, m in zip(predicted, measured, strict=True) if m < 1.5 * best]
    return Verdict(name, len(timed), measured[choice] / best, rank, sum(near) / len(near), str(timed[choice].schedule))


def ranking(folder: Path = RESULTS / "nvidia-h200") -> list[Verdict]:
    """All stencils of a search, by name."""
    groups: dict[str, dict[Schedule, Timed]] = defaultdict(dict)
    for t in read(folder / "search.csv"):
        if in_model(t.schedule):
            steps = f" x{t.steps}" if t.steps > 1 else ""
            groups[f"{t.stencil}{steps} {t.dtype}"][t.schedule] = t
    return [judge(name, list(newest.values())) for name, newest in sorted(groups.items())]


def in_model(schedule: Schedule) -> bool:
    """Whether the model proposes such schedules; hints and variants that it does not tell apart are left out."""
    plain = schedule.with_(ahead=False, latency=None, loads_first=False, head_loop=True, block_order="z")
    return plain == schedule and schedule.chunk in (32, 64) and schedule.kind == "streaming"


def table(verdicts: list[Verdict]) -> str:
    out = io.StringIO()
    print(f"{'stencil':24} {'timed':>5} {'choice/best':>11} {'rank corr.':>10} {'error':>6}  choice", file=out)
    for v in verdicts:
        print(f"{v.name:24} {v.count:5d} {v.loss:11.3f} {v.rank:10.2f} {v.error:6.2f}  {v.choice}", file=out)
    losses = [v.loss for v in verdicts]
    print(f"mean loss {sum(losses) / len(losses):.3f}, worst {max(losses):.3f}", file=out)
    return out.getvalue()


def main(arguments: list[str]) -> None:
    """Print one of the two tables."""
    if arguments == ["lanes"]:
        from repro import ranking_lanes

        print(ranking_lanes.table(ranking_lanes.ranking()), end="")
    elif arguments:
        raise SystemExit(f"python -m repro.ranking takes nothing or 'lanes', got {' '.join(arguments)}")
    else:
        print(table(ranking()), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
