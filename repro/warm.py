"""``python -m repro warm``: compiles everything that a timed run will ask for, so that a device is not kept waiting."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from repro.baselines.published import VARIABLE, NotInstalled, folder
from repro.rows import ROWS, SIZES
from stencil_dsl.toolchain.paths import cache_root

#: Module, function and arguments of a question.
Ask = tuple[str, str, tuple[object, ...]]


def questions() -> Iterator[Ask]:
    """Every question whose kernels a device run launches."""
    from repro import test_lanes
    from repro.random_draws import DRAWS
    from repro.test_acoustic import SIZES as acoustic_sizes
    from repro.test_shapes import CASES
    from repro.test_steps import STENCILS, steps_of

    yield from (("test_bricklib", "sweep", (row, size)) for row in ROWS for size in SIZES)
    yield from (("test_steps", "steps", (name, k)) for name in STENCILS for k in steps_of(name))
    yield from (("test_shapes", "shapes", (case,)) for case in CASES)
    yield ("test_groupings", "groupings", ())
    yield from (("test_lanes", "lanes", (case,)) for case in test_lanes.CASES)
    yield from (("test_random", "expression", (case,)) for case in DRAWS)
    yield ("test_tools", "folds", ())
    yield from _loops()
    yield from (("test_acoustic", "acoustic", (size, "zero")) for size in acoustic_sizes)


def _loops() -> Iterator[Ask]:
    """Time loops and the examples."""
    from repro.test_examples import NAMES
    from repro.test_solvers import ROWS as ROW_LOOPS

    yield ("test_solvers", "step", ())
    yield ("test_solvers", "host", ())
    yield from (("test_solvers", "rows", (case,)) for case in ROW_LOOPS)
    yield from (("test_solvers", "scaling", (what,)) for what in ("star-7", "star-25", "acoustic"))
    yield from (("test_examples", "examples", (name,)) for name in NAMES)


def warm(arch: str, jobs: int, pack: Path | None = None, published: str | None = None, module: str = "") -> int:
    """Fills the kernel cache; returns 1 where something does not compile.

    Args:
        pack: a folder that gets a copy of the kernels, to carry to a machine that only runs them.
        published: interpreter of an environment that has the published compiler.
        module: compile for this test module only, such as "test_acoustic".
    """
    if published is not None:
        os.environ[VARIABLE] = published  # for the processes that compile
    failed = 0
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for lines in pool.map(_compile, ((*ask, arch, pack) for ask in questions() if ask[0].startswith(module))):
            for line in lines:
                failed += line.startswith("failed")
                print(line, flush=True)
    if pack is not None and (cache_root() / "cuda").is_dir():
        shutil.copytree(cache_root() / "cuda", pack / "cuda", dirs_exist_ok=True)
    if pack is not None and folder().is_dir():
        shutil.copytree(folder(), pack / "published", dirs_exist_ok=True)
    return 1 if failed else 0


def _compile(ask: tuple[str, str, tuple[object, ...], str, Path | None]) -> list[str]:
    """Facts of every variant of one question, as lines of a log."""
    import importlib

    from stencil_dsl.testing import Target

    module, function, arguments, arch, pack = ask
    make: Callable[..., Any] = getattr(importlib.import_module(f"repro.{module}"), function)
    lines = []
    question = make(*arguments)
    for variant in question.variants:
        started = time.monotonic()
        try:
            facts = variant.compile_facts(Target(arch))
        except NotInstalled as error:
            lines.append(f"left out: {question.id}, {variant.id}: {error}")
            continue
        except Exception as error:  # noqa: BLE001 - one kernel that does not compile must not cost the others
            lines.append(f"failed: {question.id}, {variant.id}: {str(error).splitlines()[0][:200]}")
            continue
        for entry in _entries(variant, Target(arch)) if pack is not None else ():
            # <root>/v1/<two digits>/<request>/<tool set>
            shutil.copytree(entry.path, pack.joinpath(*entry.path.parts[-4:]), dirs_exist_ok=True)
        seconds = time.monotonic() - started
        if seconds > 0.5:
            lines.append(f"{question.id}, {variant.id}: {seconds:.1f} s, {facts.get('registers')} registers")
    return lines


def _entries(variant: Any, target: Any) -> list[Any]:
    """Cache entries of a variant's kernels; none of one that is not compiled by the tile toolchain."""
    if hasattr(variant, "entries"):
        return list(variant.entries(target).values())
    if hasattr(variant, "parts"):
        return [entry for part in variant.parts for entry in part.make(target).entries]
    if hasattr(variant, "make"):
        return variant.make(target).entries
    return [variant.build(target)] if hasattr(variant, "build") else []
