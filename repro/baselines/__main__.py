"""Compiles the baselines ahead of a measurement: ``python -m repro.baselines --arch sm_90 --jobs 2``."""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor

from repro import opponents
from repro.baselines.base import CUDA_VARIANTS, Baseline, configs, generator
from repro.baselines.cubins import cubin, resources
from repro.baselines.model import ROWS
from repro.rows import SIZES


def main(arguments: list[str] | None = None) -> int:
    """Fills the cache; returns 1 where something was refused."""
    parser = argparse.ArgumentParser(prog="python -m repro.baselines", description=__doc__)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--size", type=int, action="append", help="edge of the cube; default: the table's")
    parser.add_argument("--row", choices=ROWS, action="append", help="default: all")
    parser.add_argument("--variant", choices=CUDA_VARIANTS, action="append", help="default: all")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--table", action="store_true", help="only the configurations that the table times")
    chosen = parser.parse_args(arguments)
    work = [
        generator(variant)(row, (size,) * 3, config)
        for variant in chosen.variant or CUDA_VARIANTS
        for row in chosen.row or ROWS
        for size in chosen.size or SIZES
        for config in (opponents.chosen(variant, row) if chosen.table else configs(variant, row))
    ]
    failures = 0
    with ThreadPoolExecutor(chosen.jobs) as pool:
        started = [(baseline, pool.submit(_make, baseline, chosen.arch)) for baseline in work]
        for baseline, future in started:
            try:
                if future.result() is None:
                    print("nvcc was not found: put CUDA's compiler on the path")
                    return 1
            except RuntimeError as error:
                failures += 1
                print(f"{baseline.row} {baseline.id}: {error}")
    print(f"{len(work) - failures} of {len(work)} kernels are in the cache for {chosen.arch}")
    return 1 if failures else 0


def _make(baseline: Baseline, arch: str) -> bool | None:
    """Compiles it and reads its resources; None without a compiler."""
    made = cubin(baseline.source, arch)
    if made is None:
        return None
    for launch in baseline.launches:
        resources(made[0], launch.kernel)
    return True


if __name__ == "__main__":
    raise SystemExit(main())
