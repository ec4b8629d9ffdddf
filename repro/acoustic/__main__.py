"""Command line of the acoustic wave: ``python -m repro.acoustic`` with ``model``, ``run``, ``tune`` or ``warm``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from repro.acoustic.device import GRAPH_STEPS, VARIANTS, make_run
from repro.acoustic.model import LAYER, Cube, Wave

EVERY = 1008
"""Steps between two lines of `run`: about the paper's thousand, and whole graphs."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m repro.acoustic", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    modelling = commands.add_parser("model", help="steps of the NumPy model from rest; prints the range of u")
    modelling.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    running = commands.add_parser("run", help="steps of a variant from rest on the GPU; prints throughput as it goes")
    running.add_argument("--variant", choices=VARIANTS, default="dsl")
    for command, size, steps in ((modelling, 100, 1000), (running, 512, 4 * EVERY)):
        command.add_argument("--size", type=int, default=size, help=f"cells of an axis ({size})")
        command.add_argument("--layer", type=int, default=LAYER, help=f"cells of the absorbing layer ({LAYER})")
        command.add_argument("--steps", type=int, default=steps, help=f"({steps})")
    tuning = commands.add_parser("tune", help="race schedules of the compiler's kernels on the GPU")
    tuning.add_argument("--size", type=int, action="append", help="cells of an axis, repeatable (800)")
    tuning.add_argument("--arch", default="sm_90")
    tuning.add_argument("--pack", type=Path, help="race nothing: compile the candidates into this cache folder")
    warming = commands.add_parser("warm", help="compile the kernels of a timed run, as `python -m repro warm` does")
    warming.add_argument("--arch", default="sm_90")
    warming.add_argument("--jobs", type=int, default=1)
    warming.add_argument("--pack", type=Path, help="also copy these kernels, and no others, into this cache folder")
    chosen = parser.parse_args(argv)
    if chosen.command == "warm":
        from repro.warm import warm

        return warm(chosen.arch, chosen.jobs, chosen.pack, module="test_acoustic")
    if chosen.command == "tune":
        from repro.acoustic.tuning import pack, tune

        sizes = chosen.size or [800]
        if chosen.pack is not None:
            return max(pack(size, chosen.arch, chosen.pack) for size in sizes)
        return max(tune(size, chosen.arch) for size in sizes)
    cube = Cube(chosen.size, chosen.layer)
    if chosen.command == "model":
        wave = Wave(cube, dtype=chosen.dtype)
        wave.run(chosen.steps)
        print(f"u from {wave.u.min():.6f} to {wave.u.max():.6f} after {chosen.steps} steps")
        return 0
    return run(chosen.variant, cube, chosen.steps)


def run(variant: str, cube: Cube, steps: int) -> int:
    """Time from rest to so many steps, each part by CUDA events.

    Steps are made in whole graphs, so their number is rounded up to a multiple of `GRAPH_STEPS`.
    """
    from stencil_dsl.testing.cupy_device import CupyDevice

    device = CupyDevice()
    arch = f"sm_{device.xp.cuda.Device().compute_capability}"
    made = make_run(variant, cube, device, arch)
    stream = device.xp.cuda.get_current_stream()
    made.advance(2, stream)  # loads code; the wave has not left the source's cells
    for name in ("u", "older", "phi"):
        made.cells(name)[...] = 0.0
    made.restart()
    device.synchronize()
    done, total = 0, 0.0
    while done < steps:
        count = -(-min(EVERY, steps - done) // GRAPH_STEPS) * GRAPH_STEPS
        total += _timed(device.xp, lambda count=count: made.advance(count, stream), stream)
        done += count
        rate = cube.cells * done / total / 1e6
        print(f"{variant}, {cube.n}^3, {done} steps: {total / done:.4f} ms a step, {rate:.1f} Gpts/s", flush=True)
    u = made.cells("u")
    print(f"u from {float(u.min()):.6f} to {float(u.max()):.6f}")
    return 0


def _timed(xp: Any, body: Any, stream: Any) -> float:
    """Milliseconds of what body enqueues."""
    start, stop = xp.cuda.Event(), xp.cuda.Event()
    start.record(stream)
    body()
    stop.record(stream)
    stop.synchronize()
    return float(xp.cuda.get_elapsed_time(start, stop))


if __name__ == "__main__":
    sys.exit(main())
