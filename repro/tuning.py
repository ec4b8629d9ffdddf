"""Which schedules the tables' kernels use: raced against each other on a device, kept in the package's `tuned.json`.

The ranking model orders schedules well but not perfectly. A race starts from the schedules listed here, which won or
nearly won wider searches on an H200, from the model's own best and from what the store has; then the neighbours of the
fastest are raced, a step at a time. Without a stored choice (another GPU) the tables use the model's.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.rows import ROWS, SIZES

if TYPE_CHECKING:
    from stencil_dsl.runtime.definition import Definition
    from stencil_dsl.runtime.partition import Partition
    from stencil_dsl.schedule.schedule import Schedule

STORE = Path(__file__).parents[1] / "stencil_dsl" / "runtime" / "tuned.json"
"""The choices that the package ships; `TuningStore` reads and writes them."""

A, B, C = (1, 1, 128), (1, 2, 64), (1, 4, 32)
"""One row, two rows and four rows of a tile, 128 threads each."""

MODEL_BEST = 6
"""How many of the model's best join."""

PARENTS = 1
"""How many of the fastest have their neighbours raced."""

NEXT_SIZE = 6
"""How many of the fastest at one size go on to the next smaller one."""


@dataclass(frozen=True)
class Subject:
    """A kernel of a table: where its stencil is, its interior, element type and steps a sweep."""

    name: str
    function: str
    shape: tuple[int, ...]
    dtype: str = "float64"
    module: str = "stencils"
    steps: int = 1

    def definition(self) -> Definition:
        from stencil_dsl.runtime.definition import Definition

        if self.module == "random_draws":
            from repro.random_draws import draw

            return Definition.of(draw(self.function).stencil(), self.dtype)
        f = getattr(importlib.import_module(f"repro.{self.module}"), self.function)
        return Definition.of(f, self.dtype, steps=self.steps)


def subjects() -> dict[str, list[Subject]]:
    """By name: rows at each size, the largest first, or at the smaller ones only, several steps, shapes, draws."""
    from repro import test_random, test_shapes, test_steps
    from repro.random_draws import DRAWS

    found = {
        row.id: [Subject(row.id, row.function, (n,) * 3) for n in sorted(SIZES, reverse=True)] for row in ROWS.values()
    }
    found |= {f"{row}-{s.shape[0]}": [s] for row, sizes in list(found.items()) for s in sizes[1:]}
    for name, (module, function, shape) in test_steps.STENCILS.items():
        for k in test_steps.steps_of(name):
            if k > 1 or module != "stencils":
                found[f"{name}-steps-{k}"] = [Subject(f"{name}-steps-{k}", function, shape, module=module, steps=k)]
    for name, case in test_shapes.CASES.items():
        found[name] = [Subject(name, case.function, case.shape, case.dtype, case.module)]
    for name in DRAWS:
        found[name] = [Subject(name, name, test_random.SHAPE, module="random_draws")]
    return found


def finalists(row: str) -> Iterator[dict[str, Any]]:
    """Fields of `Schedule` that differ from streaming in pairs, for one row of the table."""
    one: dict[str, Any] = {"chunk": 32, "rows": 2, "occupancy": 4}
    if row in ("star-7", "cond"):
        yield from ({**one, "tile": C, "occupancy": 6}, {**one, "tile": C, "rows": 1, "occupancy": 8})
        yield {**one, "tile": B, "occupancy": 6}
    elif row == "star-13":
        yield from ({**one, "tile": A, "rows": 4, "occupancy": 3}, {**one, "tile": B, "rows": 3})
        yield {**one, "tile": (1, 2, 128), "rows": 3, "occupancy": 2, "warps": 8}
    elif row == "box-27":
        yield from ({**one, "tile": B, "rows": 4}, {**one, "tile": A, "rows": 3, "occupancy": 5})
    elif row in ("star-19", "star-25"):
        for tile, unroll, sums in product((A, B), (1, 2), ("rows", "inward", "outward", "groups")):
            yield {**one, "tile": tile, "unroll": unroll, "chunk": 64, "sums": sums}
        yield {**one, "tile": A, "rows": 3, "occupancy": 3, "chunk": 64}
    elif row == "box-125":
        yield from ({**one, "tile": t, "unroll": 2, "chunk": 64, "latency": h} for t in (A, B) for h in (None, 1))
        yield from ({**one, "tile": A, "rows": 3, "occupancy": 3, "chunk": 64, "unroll": u} for u in (1, 2))
    elif row == "iso3dfd":
        for sums in ("rows", "groups", "inward"):
            yield {**one, "tile": B, "rows": 1, "chunk": 128, "sums": sums}
            yield {**one, "tile": C, "rows": 1, "chunk": 64, "sums": sums, "unroll": 2, "ahead": True}
    elif row == "cns":
        narrow = {**one, "rows": 1, "pair": 1, "tile": C}
        for occupancy, tail in product((2, 3), (True, False)):
            yield {**narrow, "chunk": 64, "occupancy": occupancy, "split_tail": tail}
        for sums in ("inward", "outward"):
            yield {**narrow, "chunk": 64, "occupancy": 2, "split_tail": False, "sums": sums}
    elif row.startswith(("star-7-", "star-25-")) and row[-1].isdigit() and "steps" not in row:
        # Extents that nothing divides: narrow tiles overhang less.
        wide = row.startswith("star-25")
        for tile in (C, (1, 8, 16), (1, 16, 8)):
            yield {**one, "tile": tile, "occupancy": 4 if wide else 6, "sums": "inward" if wide else "rows"}
            yield {**one, "tile": tile, "occupancy": 3, "chunk": 64} if wide else {**one, "tile": tile, "rows": 4}
    elif row.startswith("plane"):
        yield {**one, "rows": 1, "tile": (1, 128)}
        yield from (
            {"tile": (1, 128), "chunk": c, "ahead": a, "occupancy": 8} for c in (64, 128) for a in (True, False)
        )
    elif row.startswith("rnd"):
        for tile, warps in (((1, 4, 32), 4), ((2, 4, 32), 8), ((4, 4, 32), 4), ((1, 2, 64), 4), ((2, 2, 64), 4)):
            for occupancy in (None, 32 // warps):
                yield {"kind": "shifted", "pair": 1, "tile": tile, "warps": warps, "occupancy": occupancy}
    elif row == "star-7-steps-2":
        yield {**one, "tile": A, "rows": 4, "occupancy": 3, "unroll": 2, "chunk": 64}
    elif row == "star-7-steps-3":
        yield {**one, "tile": A, "rows": 3, "occupancy": 3, "unroll": 2}


def entrants(subject: Subject, arch: str) -> list[Schedule]:
    """What a race starts from; where strips lead the model's ranking, its best in one pass join as well."""
    from repro import odd_extents
    from stencil_dsl.runtime.select import rank, with_libraries
    from stencil_dsl.runtime.specialize import padded_form
    from stencil_dsl.schedule.schedule import PAIR_BYTES, Schedule
    from stencil_dsl.schedule.target import target_for

    definition = subject.definition()
    form = padded_form(definition, subject.shape)
    pair = PAIR_BYTES // (8 if subject.dtype == "float64" else 4)
    found = [
        Schedule(**{"kind": "streaming", "order": "fast", "pair": pair, **fields}) for fields in finalists(subject.name)
    ]
    if subject.name in ROWS and max(subject.shape) < max(SIZES):
        found = smaller(subject, found, arch)
    found += odd_extents.entrants(subject.name, subject.shape)
    ranked = [c.schedule for c in rank(definition, form, "fast", target_for(arch))]
    found += [*ranked[:MODEL_BEST], *[s for s in ranked if not s.strips][:MODEL_BEST]]
    found += [c.schedule for c in with_libraries(definition, form, "fast", target_for(arch), None)]
    return list(dict.fromkeys(found))


def stored(subject: Subject, arch: str) -> list[Schedule]:
    """The choice that the package ships, if it has one."""
    from stencil_dsl.runtime.tuning_store import TuningStore
    from stencil_dsl.schedule.target import target_for

    graph, gpu = subject.definition().graph, target_for(arch).name
    known = TuningStore(STORE).find(graph, subject.dtype, "fast", subject.shape, gpu, "default")
    return [] if known is None else [known]


def around(subject: Subject, fastest: list[Schedule], arch: str) -> list[Schedule]:
    """The fastest and their neighbours."""
    from stencil_dsl.runtime.specialize import padded_form, problem_of
    from stencil_dsl.schedule.neighbours import neighbours
    from stencil_dsl.schedule.target import target_for

    definition = subject.definition()
    problem = problem_of(definition, padded_form(definition, subject.shape))
    near = [n for s in fastest[:PARENTS] for n in neighbours(problem, s, target_for(arch))]
    return list(dict.fromkeys(fastest[:PARENTS] + near))


def _compile_all(entered: dict[Subject, list[Schedule]], arch: str) -> dict[Subject, list[Partition]]:
    """Fill the cache for all races at once, so that all processors have work; what is not legal drops out."""
    from stencil_dsl.errors import ScheduleError
    from stencil_dsl.runtime.partition import Partition
    from stencil_dsl.runtime.specialize import padded_form
    from stencil_dsl.toolchain import BuildRequest, build_many

    began = time.monotonic()
    found: dict[Subject, list[Partition]] = {}
    for subject, schedules in entered.items():
        definition = subject.definition()
        form = padded_form(definition, subject.shape)
        for schedule in schedules:
            try:
                found.setdefault(subject, []).append(Partition(definition, form, schedule, arch))
            except ScheduleError:
                continue
    requests = [BuildRequest(**r) for made in found.values() for partition in made for r in partition.requests(arch)]
    build_many(requests)
    print(f"# {len(requests)} kernels compiled in {time.monotonic() - began:.0f} s", flush=True)
    return found


def _race(subject: Subject, partitions: list[Partition], arch: str) -> list[Schedule]:
    """The schedules by time, the fastest stored; those that fail drop out. None are left where the race fails."""
    from stencil_dsl.runtime.select import contest
    from stencil_dsl.runtime.tuning_store import TuningStore

    what = f"{subject.name} {'x'.join(map(str, subject.shape))} {subject.dtype}"
    try:
        ranking = contest(partitions[0].definition, partitions[0].form, partitions, arch, TuningStore(STORE))
    except Exception as error:  # noqa: BLE001 - one race must not cost the others
        print(f"{what}: {error}", file=sys.stderr, flush=True)
        return []
    for candidate in ranking:
        uses = [entry.resources for entry in candidate.entries]
        spills = sum(use.loop_spills or 0 for use in uses)
        facts = f" [{max(use.registers or 0 for use in uses)} registers, {spills} spills]" if uses else ""
        print(f"{what}: {candidate.ms:.4f} ms {candidate.schedule}{facts}", flush=True)
    return [c.schedule for c in ranking]


def tune(names: tuple[str, ...], arch: str = "sm_90", rounds: int = 1, near: bool = False) -> int:
    """Race schedules of the tables' kernels on the device and store the winners; returns the exit status.

    Args:
        names: of `subjects()`.
        rounds: how often the neighbours of the fastest are raced.
        near: start from the stored schedules and their neighbours, where there are any.
    """
    failed = 0
    chosen = [subjects()[name] for name in names]
    fastest: dict[str, list[Schedule]] = {}
    for size in range(max(map(len, chosen))):
        here = [sizes[size] for sizes in chosen if len(sizes) > size]
        known = {s: stored(s, arch) if near else [] for s in here}
        entered = {s: around(s, known[s], arch) for s in here if known[s]}
        for s in here:
            if s not in entered:
                entered[s] = entrants(s, arch) if size == 0 else smaller(s, fastest.get(s.name, []), arch)
        for step in range(rounds + 1 if size == 0 else 1):
            if step:
                entered = {s: around(s, fastest[s.name], arch) for s in here if fastest.get(s.name)}
            compiled = _compile_all(entered, arch)
            for subject in entered:
                ranking = _race(subject, compiled[subject], arch) if subject in compiled else []
                failed += not ranking
                fastest[subject.name] = ranking or fastest.get(subject.name, [])
    return 1 if failed else 0


def smaller(subject: Subject, fastest: list[Schedule], arch: str) -> list[Schedule]:
    """Entrants for a smaller cube: with fewer cells it matters more how the chunks fill the GPU."""
    from stencil_dsl.runtime.specialize import padded_form, problem_of
    from stencil_dsl.schedule.neighbours import fitted_chunks
    from stencil_dsl.schedule.target import target_for

    definition = subject.definition()
    problem = problem_of(definition, padded_form(definition, subject.shape))
    best = [s for s in fastest[:NEXT_SIZE] if s.kind != "shifted"]
    lengths = {s: [*fitted_chunks(problem, s, target_for(arch)), max(8, s.chunk // 2)] for s in best}
    return list(dict.fromkeys([*best, *(s.with_(chunk=n) for s in best for n in lengths[s])]))
