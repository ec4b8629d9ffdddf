"""Compiles the baselines ahead of a measurement: ``python -m repro.baselines --arch sm_90 --jobs 2``."""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor

from repro.baselines.base import CUDA_VARIANTS, configs, generator
from repro.baselines.cubins import cubin
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
    chosen = parser.parse_args(arguments)
    work = [
        generator(variant)(row, (size,) * 3, config)
        for variant in chosen.variant or CUDA_VARIANTS
        for row in chosen.row or ROWS
        for size in chosen.size or SIZES
        for config in configs(variant, row)
    ]
    failures = 0
    with ThreadPoolExecutor(chosen.jobs) as pool:
        started = [(baseline, pool.submit(cubin, baseline.source, chosen.arch)) for baseline in work]
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


if __name__ == "__main__":
    raise SystemExit(main())
