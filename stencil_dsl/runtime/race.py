"""Times candidate kernels against each other in a process of its own, which a faulting candidate may take down.

Run as `python -m stencil_dsl.runtime.race PLAN.json`: prints one JSON object a line, first what each candidate
computed, then its times. Needs CuPy and the cubins named in the plan; the arrays are random and of both signs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from stencil_dsl.errors import ToolchainError
from stencil_dsl.runtime.partition import Partition
from stencil_dsl.runtime.specialize import Specialization
from stencil_dsl.schedule.layout import ITEMSIZE
from stencil_dsl.toolchain import Entry

ROUNDS = 9
LAUNCHES = 3
SECONDS_EACH = 20.0
"""A candidate that is silent for longer is taken for hanging."""

SCALAR = 0.7


def plan_entry(partition: Partition, entries: Sequence[Entry]) -> dict[str, Any]:
    """All that launching the compiled kernels of a sweep takes, as plain data."""
    return {"launches": [_plan_kernel(s, e) for s, e in zip(partition.specs, entries, strict=True)]}


def _plan_kernel(spec: Specialization, entry: Entry) -> dict[str, Any]:
    form = spec.form
    assert form.shape is not None
    if entry.path is None:
        raise ToolchainError(
            "candidates are timed in a process of its own, which reads them from the kernel cache, and the cache"
            " cannot be written; set STENCIL_DSL_CACHE to a folder that can"
        )
    views = spec.views(form.inputs, form.outputs)
    return {
        "cubin": str(entry.path / "kernel.cubin"),
        "symbol": entry.resources.symbol,
        "grid": spec.grid(form.shape),
        "views": [(p.kind, p.index, offset, shape, strides) for p, offset, shape, strides in views],
        "index": spec.index_dtype,
        "scalars": spec.scalar_bits([SCALAR] * len(spec.definition.scalars)),
    }


def race(
    plans: Sequence[dict[str, Any]],
    partition: Partition,
    tolerance: float,
    progress: Callable[[str], None] | None = None,
) -> list[tuple[float | None, str]]:
    """Median milliseconds of each candidate, or None and why it is out.

    Args:
        plans: candidates; the first one's values are what the others are compared with.
        partition: any one of them: they sweep the same arrays.
        tolerance: largest difference, relative to the largest magnitude.
    """
    results: list[tuple[float | None, str]] = [(None, "not measured")] * len(plans)
    alive = list(range(len(plans)))
    while alive:
        fault = _attempt([plans[i] for i in alive], partition, tolerance, alive, results, progress)
        if fault is None:
            break
        position, why = fault
        results[alive[position]] = (None, why)
        if position == 0 and len(alive) == len(plans):
            return results
        del alive[position]
    return results


def _attempt(
    plans: Sequence[dict[str, Any]],
    partition: Partition,
    tolerance: float,
    names: Sequence[int],
    results: list[tuple[float | None, str]],
    progress: Callable[[str], None] | None,
) -> tuple[int, str] | None:
    """One child process; returns the candidate that ended it, if one did."""
    form = partition.form
    job = {
        "dtype": partition.definition.dtype,
        "capacities": [p.capacity for p in form.inputs],
        "outputs": [(p.capacity, p.offset, p.shape, p.strides) for p in form.outputs],
        "plans": list(plans),
        "tolerance": tolerance,
    }
    with tempfile.TemporaryDirectory(prefix="stencil-race-") as folder:
        path, log = Path(folder) / "job.json", Path(folder) / "stderr"
        path.write_text(json.dumps(job))
        with log.open("w") as errors:
            child = subprocess.Popen(
                [sys.executable, "-m", "stencil_dsl.runtime.race", str(path)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
            current, hung = _follow(child, names, results, progress)
        words = log.read_text().strip().splitlines()[-1:] or ["no message"]
    if hung:
        return current, f"silent for {SECONDS_EACH:.0f} s, taken for hanging"
    return None if child.returncode == 0 else (current, f"the process ended with {child.returncode}: {words[0]}")


def _follow(
    child: subprocess.Popen[str],
    names: Sequence[int],
    results: list[tuple[float | None, str]],
    progress: Callable[[str], None] | None,
) -> tuple[int, bool]:
    """Read a child's lines; returns the candidate it was at, and whether it had to be killed."""
    import selectors

    assert child.stdout is not None
    selector = selectors.DefaultSelector()
    selector.register(child.stdout, selectors.EVENT_READ)
    current, deadline = 0, time.monotonic() + 3 * SECONDS_EACH
    while True:
        if not selector.select(timeout=max(0.0, deadline - time.monotonic())):
            child.kill()
            child.wait()
            return current, True
        line = child.stdout.readline()
        if not line:
            child.wait()
            return current, False
        deadline = time.monotonic() + SECONDS_EACH
        message = json.loads(line)
        current = message.get("at", current)
        if "out" in message:
            results[names[current]] = (None, message["out"])
        elif "ms" in message:
            results[names[current]] = (message["ms"], "")
        if progress is not None and "note" in message:
            progress(message["note"])


def _say(**message: Any) -> None:
    print(json.dumps(message), flush=True)


def _launcher(cupy: Any, plan: dict[str, Any], inputs: list[Any], outputs: list[Any], size: int) -> Callable[[], None]:
    calls = [_call(cupy, each, inputs, outputs, size) for each in plan["launches"]]

    def run() -> None:
        for call in calls:
            call()

    return run


def _call(cupy: Any, plan: dict[str, Any], inputs: list[Any], outputs: list[Any], size: int) -> Callable[[], None]:
    import numpy as np

    function = cupy.RawModule(path=plan["cubin"]).get_function(plan["symbol"])
    args: list[Any] = []
    for kind, index, offset, shape, strides in plan["views"]:
        array = (inputs if kind == "field" else outputs)[index]
        args.append(np.uintp(array.data.ptr + offset * size))
        args += [np.dtype(plan["index"]).type(n) for n in (*shape, *strides)]
    args += [np.int64(v) if size == 8 else np.int32(v) for v in plan["scalars"]]
    grid = tuple(plan["grid"])
    return lambda: function(grid, (1, 1, 1), tuple(args))


def _child(path: str) -> None:
    import cupy
    import numpy as np

    job = json.loads(Path(path).read_text())
    dtype, size = np.dtype(job["dtype"]), ITEMSIZE[job["dtype"]]
    generator = cupy.random.default_rng(1)
    inputs = [generator.random(n, dtype=dtype) * 2 - 1 for n in job["capacities"]]
    outputs = [cupy.empty(capacity, dtype) for capacity, *_ in job["outputs"]]
    cells = [
        cupy.ndarray(tuple(shape), dtype, array.data + offset * size, [s * size for s in strides])
        for array, (_, offset, shape, strides) in zip(outputs, job["outputs"], strict=True)
    ]
    expected: list[Any] | None = None
    runs: dict[int, Callable[[], None]] = {}
    for at, plan in enumerate(job["plans"]):
        _say(at=at)
        for out in outputs:
            out.fill(np.nan)
        run = _launcher(cupy, plan, inputs, outputs, size)
        run()
        cupy.cuda.runtime.deviceSynchronize()
        if expected is None:
            expected = [c.copy() for c in cells]
            scale = max(float(cupy.abs(c).max()) for c in cells) or 1.0
            if scale != scale:
                raise SystemExit("the reference candidate leaves cells unwritten")
        error = max(float(cupy.abs(c - e).max()) for c, e in zip(cells, expected, strict=True)) / scale
        if error <= job["tolerance"]:
            runs[at] = run
        else:
            _say(at=at, out=f"wrong values: relative error {error:.3g}")
    _time(cupy, runs)


def _time(cupy: Any, runs: dict[int, Callable[[], None]]) -> None:
    samples: dict[int, list[float]] = {at: [] for at in runs}
    order = list(runs)
    for round_ in range(ROUNDS):
        for at in order if round_ % 2 == 0 else order[::-1]:
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            runs[at]()
            begin.record()
            for _ in range(LAUNCHES):
                runs[at]()
            end.record()
            end.synchronize()
            samples[at].append(cupy.cuda.get_elapsed_time(begin, end) / LAUNCHES)
        _say(note=f"round {round_ + 1} of {ROUNDS}")
    for at, values in samples.items():
        _say(at=at, ms=sorted(values)[len(values) // 2])


if __name__ == "__main__":
    _child(sys.argv[1])
