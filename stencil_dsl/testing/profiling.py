"""Traffic, hit rates and occupancy of a variant, read by Nsight Compute in a process of its own (`--ncu`).

Only the launch between the device's profiler calls is measured, after one that loads code. Clocks are left as they are.
Nsight Compute repeats the launch for as many counters as it reads, with caches emptied before each repetition.
"""

from __future__ import annotations

import csv
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stencil_dsl.testing.reference import QuestionRef

#: Metric -> (name in a record, whether the kernels of one launch add up; else their mean counts, weighted by time).
METRICS = {
    "gpu__time_duration.sum": ("ns", True),
    "dram__bytes_read.sum": ("dram_read_bytes", True),
    "dram__bytes_write.sum": ("dram_write_bytes", True),
    "lts__t_bytes.sum": ("l2_bytes", True),
    "l1tex__t_bytes.sum": ("l1_bytes", True),
    "lts__t_sector_hit_rate.pct": ("l2_hit_pct", False),
    "l1tex__t_sector_hit_rate.pct": ("l1_hit_pct", False),
    "sm__inst_issued.avg.pct_of_peak_sustained_active": ("issue_slots_pct", False),
    "sm__warps_active.avg.pct_of_peak_sustained_active": ("occupancy_pct", False),
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": ("dram_throughput_pct", False),
    "lts__t_sectors.avg.pct_of_peak_sustained_elapsed": ("l2_throughput_pct", False),
    "smsp__inst_executed_pipe_lsu.sum": ("lsu_instructions", True),
    "smsp__sass_thread_inst_executed_op_inter_thread_communication_pred_on.sum": ("exchanges", True),
}
COUNTS = {name for name in METRICS if "_inst_executed_" in name and name.endswith(".sum")}
"""Plain numbers: versions of the tool differ in how they call their unit. The first counts what warps issue to the unit
that loads, stores and shuffles; the second what threads send to others, for which the tool instruments the code."""
_unknown: dict[str, set[str]] = {}
"""What a tool was found not to know, by its path, so that it is asked once only and not for each variant."""
TIME = "gpu__time_duration.sum"
_SCALES = {"": 1.0, "%": 1.0, "byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}
_SCALES |= {"ns": 1.0, "nsecond": 1.0, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9}


class ProfileError(Exception):
    """Nsight Compute is missing, or refused; its words included."""


@dataclass(frozen=True)
class Job:
    """What the profiled process launches."""

    question: QuestionRef
    variant: str
    arch: str
    toolkit: str | None
    device_class: str
    device_number: int


def find() -> str | None:
    """Nsight Compute's command line, or None."""
    return shutil.which("ncu")


def missing() -> str:
    """What to tell who asked for it where it is not."""
    return "--ncu: Nsight Compute's `ncu` is not on the path; it comes with the CUDA toolkit (nsight-compute)"


def profile(job: Job, limit_s: float) -> dict[str, Any]:
    """Metrics of one launch: ``{"metrics": {name: value}, "kernels": [...], "unavailable": [...]}``.

    Values are bytes, nanoseconds and per cent. What this version or GPU does not know is listed and left out.

    Raises:
        ProfileError: no ncu, no permission to read counters, or the variant fails under it.
    """
    tool = find()
    if tool is None:
        raise ProfileError(missing())
    unavailable = _unknown.setdefault(tool, set())
    while wanted := [name for name in METRICS if name not in unavailable]:
        text, words = _run(tool, job, wanted, limit_s)
        unknown = unknown_metrics(words, wanted)
        if not unknown:
            kernels, values = read(text)
            if not kernels:
                raise ProfileError(f"ncu measured no kernel: {_last(words)}")
            lacking = [name for name in METRICS if name in unavailable]
            return {"metrics": combined(values), "kernels": kernels, "unavailable": lacking}
        unavailable.update(unknown)
    raise ProfileError(f"ncu knows none of the metrics: {', '.join(sorted(unavailable))}")


def _run(tool: str, job: Job, metrics: Sequence[str], limit_s: float) -> tuple[str, str]:
    """(CSV text, everything that was said). Raises ProfileError unless metrics are all that it complains about."""
    with tempfile.TemporaryDirectory(prefix="stencil-dsl-ncu-") as folder:
        task, log = Path(folder) / "task", Path(folder) / "log.csv"
        task.write_bytes(pickle.dumps(job))
        command = [tool, "--clock-control", "none", "--cache-control", "all", "--profile-from-start", "off"]
        command += ["--target-processes", "all", "--csv", "--page", "raw", "--print-units", "base"]
        command += ["--log-file", str(log), "--metrics", ",".join(metrics)]
        command += [sys.executable, "-m", "stencil_dsl.testing.profiled", str(task)]
        # The question's module must be found as it is here.
        paths = os.pathsep.join(path for path in (*sys.path, os.getcwd()) if path)
        try:
            done = subprocess.run(
                command,
                env=os.environ | {"PYTHONPATH": paths},
                capture_output=True,
                text=True,
                timeout=limit_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ProfileError(f"ncu gave no answer within {limit_s:g} s") from error
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        words = "\n".join((text, done.stdout, done.stderr))
        if done.returncode and not unknown_metrics(words, metrics):
            raise ProfileError(f"ncu ended with {done.returncode}: {_last(words)}")
        return text, words


def _last(words: str) -> str:
    """The most telling line: an error of ncu, else the last one."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    errors = [line for line in lines if "==ERROR==" in line or "ERR_NVGPUCTRPERM" in line]
    return (errors or lines or ["no message"])[-1 if not errors else 0][:500]


def unknown_metrics(words: str, wanted: Iterable[str]) -> list[str]:
    """Those of the wanted metrics that ncu says it does not have."""
    said = "\n".join(line for line in words.splitlines() if re.search(r"metric", line, re.I) and "==ERROR==" in line)
    return [name for name in wanted if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.]*\w)", said)]


def read(text: str) -> tuple[list[str], list[dict[str, float]]]:
    """(kernel names, metrics of each) from the raw page as CSV; a metric that is not available is left out."""
    rows = list(csv.reader(line for line in text.splitlines() if line.startswith('"')))
    if len(rows) < 3:
        return [], []
    head, units = rows[0], rows[1]
    places = {name: head.index(name) for name in METRICS if name in head}
    kernels, values = [], []
    for row in rows[2:]:
        found = {}
        for name, place in places.items():
            number = _number(row[place])
            if number is not None:
                scale = 1.0 if name in COUNTS else _SCALES.get(units[place])
                if scale is None:
                    raise ProfileError(f"ncu gives {name} in {units[place]!r}, which is no unit that is known here")
                found[name] = number * scale
        kernels.append(row[head.index("Kernel Name")])
        values.append(found)
    return kernels, values


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:  # "n/a", "no data"
        return None


def combined(values: Sequence[dict[str, float]]) -> dict[str, float]:
    """The kernels of one launch together, under the names of a record."""
    found = {}
    for metric, (name, adds) in METRICS.items():
        pairs = [(v[metric], v.get(TIME, 1.0)) for v in values if metric in v]
        if len(pairs) == len(values):
            weights = sum(weight for _, weight in pairs)
            found[name] = sum(v for v, _ in pairs) if adds else sum(v * w for v, w in pairs) / weights
    return found
