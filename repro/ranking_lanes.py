"""How well the model knows shuffle schedules: its predictions against `results/<gpu>/lanes.csv`.

`python -m repro.ranking lanes` predicts every shuffle that the table has timed. For each stencil it says how much
slower the one predicted fastest is than the fastest, how well the order agrees, and by how much predictions err; and,
against the schedule that the tables use, which gain was predicted and which measured. The last decides when a shuffle
is chosen without being timed (`select.LANES_MARGIN`). A race of `races_odd.txt`, which the model was not fitted to,
is added.
"""

from __future__ import annotations

import csv
import importlib
import re
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.ranking import RESULTS, spearman

if TYPE_CHECKING:
    from stencil_dsl.runtime.definition import Definition
    from stencil_dsl.schedule.schedule import Schedule

GPU = RESULTS / "nvidia-h200"
HELD_OUT = "star-25-513"

_NUMBERS = {"rows": "rows", "chunk": "chunk", "unroll": "unroll", "occupancy": "occupancy", "latency": "latency"}
_WORDS: dict[str, dict[str, Any]] = {"ahead": {"ahead": True}, "straight head": {"head_loop": False}}
_WORDS |= {"one tail": {"split_tail": False}, "loads first": {"loads_first": True}, "queue": {"carry": "queue"}}
_WORDS |= {f"{name} first": {"sums": name} for name in ("inward", "outward", "groups")}
_WORDS |= {"y first": {"block_order": "y"}, "fast": {"order": "fast"}, "source": {"order": "source"}}


def schedule_of(text: str, ndim: int) -> Schedule:
    """The schedule that prints so.

    Raises:
        ValueError: where none does.
    """
    from stencil_dsl.schedule.schedule import Schedule

    match = re.fullmatch(r"(\w+) \(([\d,]+)\), (.*)", text)
    if match is None:
        raise ValueError(f"{text!r} is no schedule; one begins like 'streaming (1,1,128,2), rows 2'")
    extents = [int(n) for n in match[2].split(",")]
    fields: dict[str, Any] = {"kind": match[1], "tile": extents[:ndim], "pair": (extents[ndim:] or [1])[0]}
    for part in match[3].split(", "):
        name, _, number = part.rpartition(" ")
        if part in _WORDS:
            fields |= _WORDS[part]
        elif number == "warps":
            fields["warps"] = int(name)
        elif name in _NUMBERS:
            fields[_NUMBERS[name]] = int(number)
    schedule = Schedule(**fields)
    if str(schedule) != text:
        raise ValueError(f"{text!r} is read as {str(schedule)!r}")
    return schedule


@dataclass(frozen=True)
class Verdict:
    """One stencil.

    Attributes:
        count: shuffles that were timed.
        loss: time of the shuffle predicted fastest over that of the fastest.
        rank: Spearman's correlation of predicted and measured times.
        error: mean |log(predicted / measured)| among those within 1.5 of the fastest; worst: the largest of these.
        gain, predicted: time of the tables' schedule over that of the shuffle predicted fastest, as measured and as
            predicted.
    """

    name: str
    count: int
    loss: float
    rank: float
    error: float
    worst: float
    gain: float
    predicted: float

    @property
    def overrated(self) -> float:
        """How many times too large the predicted gain is."""
        return self.predicted / self.gain


def judge(
    name: str, definition: Definition, shape: tuple[int, ...], plain: tuple[str, float], timed: list[tuple[str, float]]
) -> Verdict:
    """Predict one stencil's schedules, each given as text with its milliseconds."""
    from stencil_dsl.runtime.specialize import padded_form, problem_of
    from stencil_dsl.schedule.model import predict
    from stencil_dsl.schedule.target import H200

    problem = problem_of(definition, padded_form(definition, shape))

    def ms(text: str) -> float:
        return predict(problem, schedule_of(text, len(shape)), H200).seconds * 1e3

    said, took = [ms(text) for text, _ in timed], [t for _, t in timed]
    choice, best = said.index(min(said)), min(took)
    errors = [abs(log(a / b)) for a, b in zip(said, took, strict=True) if b < 1.5 * best]
    mean = sum(errors) / len(errors)
    gains = plain[1] / took[choice], ms(plain[0]) / said[choice]
    return Verdict(name, len(timed), took[choice] / best, spearman(said, took), mean, exp(max(errors)) - 1, *gains)


def ranking(folder: Path = GPU) -> list[Verdict]:
    """All stencils of the table, then what the model was not fitted to."""
    from repro import stencils
    from repro.test_lanes import CASES
    from stencil_dsl.testing.sweeps import definition_of

    lines: dict[str, list[dict[str, str]]] = {}
    with (folder / "lanes.csv").open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            if line["ms"] and line["variant"] != "copy":
                lines.setdefault(line["question"].removeprefix("lanes-"), []).append(line)
    found = []
    for case, rows in lines.items():
        module, function, shape, steps = CASES[case]
        f = getattr(importlib.import_module(f"repro.{module}"), function)
        (plain,) = [(r["schedule"], float(r["ms"])) for r in rows if r["variant"] == "dsl"]
        timed = [(r["schedule"], float(r["ms"])) for r in rows if r["variant"].startswith("shuffle")]
        if timed:
            found.append(judge(case, definition_of(f, "float64", steps), shape, plain, timed))
    held = races(folder)[HELD_OUT, (513,) * 3].items()
    timed = [item for item in held if item[0].startswith("shuffle")]
    plain = min((i for i in held if not i[0].startswith("shuffle")), key=lambda i: i[1])
    found.append(judge(HELD_OUT, definition_of(stencils.star_25, "float64", 1), (513,) * 3, plain, timed))
    return found


def races(folder: Path = GPU) -> dict[tuple[str, tuple[int, ...]], dict[str, float]]:
    """Milliseconds of the schedules in `races_odd.txt`, by name and shape; of two races the later."""
    found: dict[tuple[str, tuple[int, ...]], dict[str, float]] = {}
    for line in (folder / "races_odd.txt").read_text(encoding="utf-8").splitlines():
        match = re.match(r"(\S+) ([\dx]+): ([\d.]+) ms (.*) \[\d+ registers.*\]$", line)
        if match:
            shape = tuple(int(n) for n in match[2].split("x"))
            found.setdefault((match[1], shape), {})[match[4]] = float(match[3])
    return found


def overestimated(folder: Path = GPU) -> dict[str, float]:
    """By random draw, predicted over measured time of the fastest schedule without shuffles.

    The model is worst at these, and a shuffle looks as much better as the others are predicted too slow.
    """
    from repro.random_draws import DRAWS
    from repro.tuning import subjects
    from stencil_dsl.runtime.specialize import padded_form, problem_of
    from stencil_dsl.schedule.model import predict
    from stencil_dsl.schedule.target import H200

    found = {}
    for (name, shape), timed in races(folder).items():
        if name in DRAWS:
            definition = subjects()[name][0].definition()
            problem = problem_of(definition, padded_form(definition, shape))
            text, ms = min((i for i in timed.items() if not i[0].startswith("shuffle")), key=lambda i: i[1])
            found[name] = predict(problem, schedule_of(text, len(shape)), H200).seconds * 1e3 / ms
    return found


def table(verdicts: list[Verdict]) -> str:
    head = f"{'stencil':16} {'timed':>5} {'choice/best':>11} {'rank corr.':>10} {'error':>6} {'worst':>6}"
    lines = [f"{head} {'gain':>6} {'predicted':>9}"]
    for v in verdicts:
        text = f"{v.name:16} {v.count:5d} {v.loss:11.3f} {v.rank:10.2f} {v.error:6.3f} {v.worst:6.2f}"
        lines.append(f"{text} {v.gain:6.2f} {v.predicted:9.2f}")
    fitted = [v for v in verdicts if v.name != HELD_OUT]
    mean, loss = (sum(getattr(v, n) for v in fitted) / len(fitted) for n in ("error", "loss"))
    overrated = max(v.overrated for v in verdicts)
    lines.append(f"mean error {mean:.3f}, mean loss {loss:.3f}; gains overrated up to {overrated:.2f}")
    lines.append(f"others on random draws overestimated up to {max(overestimated().values()):.2f}")
    return "\n".join(lines) + "\n"
