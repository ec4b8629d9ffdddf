"""Kernels at odd sizes on a device, to be run under a memory checker.

    python tests/gpu/run_memcheck.py --fill CACHE                       on a machine with the toolkit
    compute-sanitizer --tool memcheck --padding 256 --error-exitcode 9 \\
        python tests/gpu/run_memcheck.py --run CACHE                    on a machine with a GPU, CuPy and NumPy

`--fill` compiles the nine rows of the table at 37 x 53 x 131 under several schedules, and random stencils under random
schedules, and writes them to CACHE/memcheck.json with their kernels beside it; `--only TEXT` takes those whose label
has this text, such as "shuffle" for kernels that call a tile library. `--run` launches each once on arrays
that are allocations of their own, with NaN around the halo, and compares with the NumPy reference: values within the
bound that any order of operations keeps, every cell written, nothing else written. Exit status: 0 all right, 1 not,
2 nothing to do.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from stencil_dsl import Schedule, compile  # noqa: E402
from stencil_dsl.errors import ScheduleError, StencilError  # noqa: E402
from stencil_dsl.schedule.layout import LINE_BYTES  # noqa: E402
from stencil_dsl.schedule.strips import left_over  # noqa: E402
from stencil_dsl.testing.choose import Seeded, chance  # noqa: E402
from stencil_dsl.testing.random_cases import (  # noqa: E402
    ORDINARY,
    ZEROS,
    Arguments,
    Case,
    bounds,
    check_results,
    expected,
    host,
    make_arguments,
)
from stencil_dsl.testing.random_schedules import random_interior, random_schedule  # noqa: E402
from stencil_dsl.testing.random_stencils import random_stencil  # noqa: E402

ODD = (37, 53, 131)
ROWS = ("star_7", "star_13", "star_19", "star_25", "box_27", "box_125", "iso3dfd", "cond", "cns")
MARCH = Schedule("streaming", tile=(1, 1, 64), pair=2, rows=2, chunk=16, order="fast")
ROW_SCHEDULES = (
    Schedule(tile=(1, 1, 128)),
    Schedule(tile=(1, 4, 32), static_shape=False),
    Schedule(tile=(4, 8, 8), block_order="y"),
    MARCH,
    MARCH.with_(tile=(1, 4, 32), pair=1, chunk=13, unroll=2, carry="queue", occupancy=2),
    MARCH.with_(rows=3, chunk=8, order="source", split_tail=False),
    MARCH.with_(ahead=True, head_loop=False, block_order="y"),
)
#: Neighbours from other lanes; kernels that call a tile library, which only a 13.5 toolkit compiles.
LANES = Schedule("shuffle", tile=(1, 1, 32), warps=1, pair=2, rows=2, chunk=16, order="fast")
STRIPS = {2: ("z", "x", "xz"), 3: ("z", "y", "yz", "xz", "xyz")}
SHUFFLES = (LANES, LANES.with_(tile=(1, 1, 128), warps=4, pair=1, rows=1, chunk=7, block_order="y"))


@dataclass(frozen=True)
class Row:
    """A row of the table in the place of a random stencil."""

    name: str

    def stencil(self) -> Any:
        from repro import stencils

        return getattr(stencils, self.name)

    @property
    def fields(self) -> tuple[str, ...]:
        return self.stencil().fields

    @property
    def scalars(self) -> tuple[str, ...]:
        return self.stencil().scalars


@dataclass(frozen=True)
class Item:
    """One launch: a case, on padded arrays or on arrays without any padding."""

    label: str
    case: Case
    plain: bool = False

    def to_json(self) -> dict[str, Any]:
        data = self.case.to_json()
        if isinstance(self.case.stencil, Row):
            data["stencil"] = {"row": self.case.stencil.name}
        return {"label": self.label, "plain": self.plain, "case": data}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Item:
        inner, row = data["case"], data["case"]["stencil"].get("row")
        if row:
            blank = {"name": row, "text": "", "fields": [], "scalars": [], "ndim": 3}
            case = replace(Case.from_json(inner | {"stencil": blank}), stencil=Row(row))
        else:
            case = Case.from_json(inner)
        return cls(data["label"], case, data["plain"])


def rows() -> Iterator[Item]:
    """The table's rows, and each once more in float32 and under the schedule it gets by default."""
    for name in ROWS:
        row = Row(name)
        default = compile(row.stencil(), shape=ODD).schedule
        for schedule in dict.fromkeys((*ROW_SCHEDULES, *SHUFFLES, default)):
            yield Item(f"{name}, {schedule}", Case(row, "float64", schedule, ODD, 1))  # type: ignore[arg-type]
        for single in (MARCH.with_(tile=(1, 1, 32), pair=4), LANES.with_(pair=4)):
            yield Item(f"{name}, float32, {single}", Case(row, "float32", single, ODD, 2))  # type: ignore[arg-type]


def random_items(count: int, seed: int) -> Iterator[Item]:
    """Random stencils under random schedules; some update in place, some read periodic rows, some leave
    strips, some get arrays that end with their halo."""
    for n in range(count):
        choose = Seeded(seed * 1_000_003 + n)
        special = choose.one_of(("padded", "padded", "strips", "periodic", "in place", "plain"))
        f = random_stencil(choose, fast=True, pointwise=special == "in place")
        dtype = choose.one_of(("float64", "float32"))
        order = choose.one_of(("fast", "source"))
        kind = "shifted" if special == "plain" else choose.one_of((None, None, None, "shuffle"))
        schedule = random_schedule(choose, f.ndim, dtype, order, kind, device=True)
        if special == "plain" and schedule.loads == "unchecked":
            schedule = schedule.with_(loads="auto")
        case = Case(
            f,
            dtype,
            schedule,
            random_interior(choose, schedule),
            n,
            choose.one_of((ORDINARY, ZEROS)),
            0 if special == "plain" else choose.integer(0, 2),
            special != "plain" and chance(choose, 30),
            special == "in place",
        )
        if special == "periodic":
            case = case.on_rings() if schedule.kind != "shuffle" else case
            special = "periodic" if case.periodic else "padded"
        if special == "strips":
            cut = schedule.with_(static_shape=True, strips=choose.one_of(STRIPS[f.ndim])) if f.ndim > 1 else schedule
            special = "strips" if cut.strips and any(left_over(case.shape, cut)) else "padded"
            case = replace(case, schedule=cut) if special == "strips" else case
        label = f"random {seed}.{n} ({special}), {dtype}, {case.shape}, {case.schedule}"
        yield Item(label, case, special == "plain")


# -- arguments


def aligned(data: np.ndarray) -> np.ndarray:
    """A copy that starts where a device allocation would: on a cache line."""
    raw = np.empty(data.nbytes + LINE_BYTES, np.uint8)
    start = -raw.ctypes.data % LINE_BYTES
    copy = raw[start : start + data.nbytes].view(data.dtype).reshape(data.shape)
    copy[...] = data
    return copy


def call_arguments(item: Item, kernel: Any, device: str) -> tuple[Arguments, list[Any]]:
    """Host values, and the arrays that the kernel is called with."""
    a = make_arguments(item.case, kernel, device)  # type: ignore[arg-type]
    if not item.plain:
        return a, [*a.fields, *a.outs]
    blank = np.full(item.case.shape, np.nan, item.case.dtype)
    values = [*a.values, *(blank for _ in a.outs)]
    if device == "gpu":
        import cupy

        return a, [cupy.asarray(v) for v in values]
    return a, [aligned(v) for v in values]


def judge(item: Item, kernel: Any, a: Arguments, arrays: list[Any]) -> str:
    """What is wrong with the results, or "". Contraction counts as another order of operations."""
    if not item.plain:
        return check_results(item.case, kernel, a, exact=False)
    outs = arrays[len(a.fields) :]
    for out, want, limit in zip(outs, expected(item.case, kernel, a), bounds(item.case, kernel, a), strict=True):
        wrong = ~(np.abs(host(out).astype("f8") - want.astype("f8")) <= limit)
        if wrong.any():
            return f"{int(wrong.sum())} of {wrong.size} cells differ, first at {np.argwhere(wrong)[0].tolist()}"
    return ""


# -- the two commands


def fill(folder: Path, count: int, seed: int, jobs: int, arch: str, only: str = "") -> int:
    from stencil_dsl.toolchain import BuildRequest, KernelCache, build_many

    items = [i for i in (*rows(), *random_items(count, seed)) if only in i.label]
    kept, requests, owners, refused = [], [], [], 0
    for item in items:
        kernel = item.case.kernel(target=arch)
        a, arrays = call_arguments(item, kernel, "cpu")
        try:
            specs = kernel.bind(*arrays, **a.scalars).specs
        except ScheduleError as error:
            # A thing that a caller is told; a random schedule may ask for more than there is.
            refused += 1
            print(f"refused: {item.label}: {error}")
            continue
        kept.append(item)
        owners += [item] * len(specs)
        requests += [BuildRequest(**spec.request(arch), remarks=False) for spec in specs]
    start, failed = time.monotonic(), 0

    def progress(done: int, total: int, request: Any, result: Any) -> None:
        if done % 20 == 0 or done == total:
            print(f"{done} of {total} kernels, {time.monotonic() - start:.0f} s", flush=True)

    results = build_many(requests, jobs=jobs, cache=KernelCache(folder), progress=progress)
    for item, result in zip(owners, results, strict=True):
        if isinstance(result, Exception):
            failed += 1
            kept = [k for k in kept if k is not item]
            print(f"FAILED to compile: {item.label}\n{result}\n{item.case.stencil}")
    path = folder / "memcheck.json"
    path.write_text(json.dumps({"arch": arch, "items": [i.to_json() for i in kept]}, indent=1))
    print(f"{len(kept)} launches in {path}; {refused} refused by their schedule, {failed} failed to compile")
    return 1 if failed or not kept else 0


def run(folder: Path, device: str, only: str, limit: int | None) -> int:
    from stencil_dsl.toolchain import KernelCache

    if device == "gpu":
        import cupy

        # Every array an allocation of its own: a pool would hide what is read behind its end.
        cupy.cuda.set_allocator(None)
    plan = json.loads((folder / "memcheck.json").read_text())
    items = [i for i in map(Item.from_json, plan["items"]) if only in i.label][:limit]
    cache, wrong = KernelCache(folder), 0
    for n, item in enumerate(items, 1):
        try:
            kernel = item.case.kernel(target=plan["arch"], cache=cache)
            a, arrays = call_arguments(item, kernel, device)
            kernel(*arrays, **a.scalars)
            message = judge(item, kernel, a, arrays)
        except StencilError as error:
            message = f"{type(error).__name__}: {error}"
        if message:
            wrong += 1
            print(f"WRONG: {item.label}\n  {message}\n{item.case.stencil}", flush=True)
        if n % 50 == 0:
            print(f"{n} of {len(items)}, {wrong} wrong", flush=True)
    print(f"{len(items)} launches, {wrong} wrong")
    return 2 if not items else 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--fill", type=Path, metavar="CACHE", help="compile all kernels into this folder")
    what.add_argument("--run", type=Path, metavar="CACHE", help="launch what the folder holds")
    parser.add_argument("--cases", type=int, default=240, help="random cases (default 240)")
    parser.add_argument("--seed", type=int, default=1, help="of the random cases (default 1)")
    parser.add_argument("--jobs", type=int, default=2, help="compiling processes (default 2)")
    parser.add_argument("--arch", default="sm_90", help="architecture to compile for (default sm_90)")
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu", help="cpu: interpret, to try this program")
    parser.add_argument("--only", default="", metavar="TEXT", help="launches whose label has this text")
    parser.add_argument("--limit", type=int, metavar="N", help="at most so many launches")
    o = parser.parse_args()
    if o.fill:
        o.fill.mkdir(parents=True, exist_ok=True)
        return fill(o.fill, o.cases, o.seed, o.jobs, o.arch, o.only)
    return run(o.run, o.device, o.only, o.limit)


if __name__ == "__main__":
    sys.exit(main())
