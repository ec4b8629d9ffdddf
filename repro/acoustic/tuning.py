"""Which schedules the step's kernels use: raced against each other on a device, kept in `tuned.json`.

`python -m repro.acoustic tune` needs a device, and a toolkit or a cache that has the candidates; with `--pack` it only
compiles them, into a cache folder for a machine without a toolkit.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from repro.acoustic.dsl import LAYER, STORE, Part, parts, schedules
from repro.acoustic.model import Cube
from stencil_dsl.schedule.schedule import Schedule

_ROWS = Schedule("streaming", tile=(1, 4, 32), pair=4, chunk=64, occupancy=4, order="fast")


def finalists(part: Part) -> Iterator[Schedule]:
    """Schedules that are worth a race for a kernel, besides the one it has without."""
    wide = _ROWS.with_(tile=(1, 2, 64))
    if part.name == "inner":
        yield from (_ROWS.with_(chunk=c, occupancy=o) for c in (64, 128) for o in (4, 5, 6))
        yield from (_ROWS.with_(unroll=2, chunk=c) for c in (64, 128))
        yield from (_ROWS.with_(rows=2, unroll=2, chunk=c) for c in (64, 128))
        yield from (_ROWS.with_(unroll=2, latency=1), _ROWS.with_(unroll=2, ahead=True))
        yield from (wide, wide.with_(unroll=2))
        return
    # With four blocks an SM they spill in the loop; slabs that are thin along z get tiles as thin.
    axis = part.name[0]
    chosen = _ROWS.with_(occupancy=3, tile=(1, 16, 8) if axis == "z" else (1, 4, 32), chunk=32 if axis == "x" else 64)
    yield from (chosen, chosen.with_(occupancy=2))
    yield chosen.with_(pair=1, tile=(1, 4, 32), occupancy=5)
    yield chosen.with_(pair=1, tile=(1, 4, 32), occupancy=4, rows=2)
    yield from (LAYER[part.definition.name], LAYER[part.definition.name].with_(tile=(1, 1, 128)))
    if axis == "x":
        yield from (chosen.with_(chunk=16), chosen.with_(tile=(1, 2, 64)))
    elif axis == "y":
        yield from (chosen.with_(chunk=32), chosen.with_(tile=(1, 2, 64)))
    else:
        yield from (chosen.with_(chunk=32), chosen.with_(chunk=128))


def contestants(cube: Cube, arch: str) -> Iterator[tuple[Part, list[Schedule]]]:
    """One kernel of each kind with the schedules that race; slabs at opposite faces have the same."""
    present = schedules(cube, arch)
    for part in parts(cube):
        if not part.name.endswith("high"):
            yield part, list(dict.fromkeys([present[part.definition.name], *finalists(part)]))


def pack(size: int, arch: str, folder: Path) -> int:
    """Compiles all contestants, and the kernel that they are compared with, into a cache folder; the exit status."""
    from stencil_dsl.errors import ScheduleError, ToolchainError
    from stencil_dsl.runtime.partition import Partition
    from stencil_dsl.schedule.candidates import plain_schedule

    failed = 0
    for part, listed in contestants(Cube(size), arch):
        for schedule in [plain_schedule(3), *listed]:
            try:
                entries = Partition(part.definition, part.form, schedule, arch).compile(arch, None, None)
            except (ScheduleError, ToolchainError) as error:
                print(f"{part.name} {schedule}: {str(error).splitlines()[0]}", file=sys.stderr, flush=True)
                failed += 1
                continue
            for entry in entries:
                # <root>/v1/<two digits>/<request>/<tool set>
                shutil.copytree(entry.path, folder.joinpath(*entry.path.parts[-4:]), dirs_exist_ok=True)
                r = entry.resources
                print(f"{part.name} {schedule}: {r.registers} registers, {r.loop_spills} spills in loops", flush=True)
    return 1 if failed else 0


def tune(size: int, arch: str) -> int:
    """Races the contestants on the device and stores the winners; the exit status."""
    from stencil_dsl.runtime.select import contest
    from stencil_dsl.runtime.tuning_store import TuningStore

    failed = 0
    for part, listed in contestants(Cube(size), arch):
        try:
            ranking = contest(part.definition, part.form, listed, arch, TuningStore(STORE))
        except Exception as error:  # noqa: BLE001 - one kernel must not cost the others
            print(f"{part.name} {size}: {error}", file=sys.stderr, flush=True)
            failed += 1
            continue
        for candidate in ranking[:5]:
            print(f"{part.name} {size}: {candidate.ms:.4f} ms {candidate.schedule}", flush=True)
    return 1 if failed else 0
