"""The published compiler as a variant of the nine rows: it generates, the same toolchain as for the DSL compiles.

The package `cutile-stencil` stays in an environment of its own; `published_child.py` runs there and tells what it
generated and how it would be launched. That answer is kept in the kernel cache's folder, so that a GPU machine needs
neither the package nor a toolkit. Extents and strides are run-time values of its kernels, as where cuTile launches.
"""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from repro.baselines.model import Model, Offset, model
from stencil_dsl.errors import StencilError
from stencil_dsl.testing.question import Prepared, Target, Variant

Shape = tuple[int, int, int]
#: Names the interpreter of the environment that has the package; `pytest --published` sets it.
VARIABLE = "STENCIL_DSL_PUBLISHED"
CHILD = Path(__file__).with_name("published_child.py")
#: Without a device: an interior that no tile divides.
SMALL: Shape = (5, 7, 70)
_LIMIT_S = 300.0


class NotInstalled(StencilError):
    """The published compiler is not here, and what it generated is not in the cache."""


def configs(row: str) -> list[dict[str, int]]:
    """What is timed: what the package chooses without a device, and the published table's tile where it names more
    than the package chooses then.
    """
    paper = Path(__file__).parents[1] / "paper" / "bricklib.csv"
    with paper.open(newline="", encoding="utf-8") as file:
        (of,) = (line for line in csv.DictReader(file) if line["stencil"] == row)
    if not of["dsl_occupancy"]:
        return [{}]
    x, y, z = map(int, of["dsl_tile"].split("x"))
    return [{}, {"x": x, "y": y, "z": z, "o": int(of["dsl_occupancy"])}]


def interpreter() -> str | None:
    """The interpreter that has the package: the one named, or this one."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    return sys.executable if importlib.util.find_spec("cutile") is not None else None


def stencil_text(m: Model) -> str:
    """The row as functions for the published compiler, one an output: every access times its own coefficient."""
    return "\n\n".join(_function(m.only((k,))) for k in range(len(m.outputs)))


def _function(m: Model) -> str:
    def read(field: str, offset: Offset) -> str:
        index = (n + (f" {'+' if o > 0 else '-'} {abs(o)}" if o else "") for n, o in zip("ijk", offset, strict=True))
        return f"{field}[{', '.join(index)}]"

    def value(field: str, offset: Offset) -> str:
        return f"max({read(field, offset)}, 0.0)" if m.relu else read(field, offset)

    (terms,) = m.sums
    total = " + ".join(" * ".join([repr(t.coefficient), *(value(f, t.offset) for f in t.product)]) for t in terms)
    centres = {f: read(f, (0, 0, 0)) for f in m.finish_fields}
    result = m.finish.replace("fabs", "abs").format(s=f"({total})", **centres)
    name = f"{m.id.replace('-', '_')}_{m.outputs[0]}"
    return f"@stencil\ndef {name}({', '.join((*m.fields, 'i', 'j', 'k'))}):\n    return {result}\n"


def request(row: str, shape: Shape, config: Mapping[str, int]) -> dict[str, Any]:
    """What the package is asked for."""
    m = model(row)
    return {
        "text": stencil_text(m),
        "functions": [f"{row.replace('-', '_')}_{output}" for output in m.outputs],
        "shape": list(shape),
        "tile": [config[a] for a in "xyz"] if config else None,
        "occupancy": config.get("o"),
    }


def generated(row: str, shape: Shape, config: Mapping[str, int]) -> dict[str, Any]:
    """What the package generates, from the cache or from its own environment.

    Raises:
        NotInstalled: the package is not here and the cache has no answer of it.
        RuntimeError: the interpreter that was named lacks the package, or the package refuses the row.
    """
    asked = json.dumps(request(row, shape, config), sort_keys=True)
    python = interpreter()
    file = folder() / f"{hashlib.sha256(asked.encode()).hexdigest()[:32]}.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
    if python is None:
        if kept is None:
            raise NotInstalled(
                "cutile-stencil is not installed: make an environment, pip install cutile-stencil there, and name its "
                "interpreter with --published"
            )
        return kept
    if kept is None or kept["version"] != _version(python):
        kept = json.loads(_ask(python, asked))
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(kept, sort_keys=True), encoding="utf-8")
        os.replace(part, file)
    return kept


def folder() -> Path:
    """Where answers are kept."""
    from stencil_dsl.toolchain.paths import cache_root

    return cache_root() / "published"


@cache
def _version(python: str) -> str:
    code = "import importlib.metadata as m; print(m.version('cutile-stencil'))"
    return _run([python, "-I", "-c", code], "").strip()


def _ask(python: str, asked: str) -> str:
    return _run([python, "-I", str(CHILD)], asked)


def _run(command: list[str], text: str) -> str:
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    except OSError as error:
        raise RuntimeError(
            f"--published names the interpreter of an environment that has cutile-stencil; {error}"
        ) from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        if "PackageNotFoundError" in last or "No module named 'cutile'" in last:
            raise RuntimeError(f"the interpreter that --published names has no cutile-stencil: {last}")
        raise RuntimeError(f"the published compiler failed: {last[:500]}")
    return done.stdout


class PublishedVariant(Variant):
    """A kernel of the published compiler for a row, in its own layout: a halo on both sides, contiguous."""

    def __init__(self, row: str, shape: Shape, config: Mapping[str, int], id: str) -> None:
        self.row, self.shape, self.config, self.id = row, shape, dict(config), id

    def build(self, target: Target) -> Any:
        """The cache entry of its kernel."""
        from stencil_dsl import toolchain

        found, launch = self._found(self.shape)
        function = launch["function"]
        return toolchain.build(
            found["source"],
            function,
            self._params(found, launch),
            symbol=function,
            arch=target.arch,
            toolkit=target.toolkit,
        )

    def compile_facts(self, target: Target) -> dict[str, Any]:
        from stencil_dsl.testing.variants import resource_facts

        found, _ = self._found(self.shape)
        entry = self.build(target)
        hints = "".join(f", {name} {value}" for name, value in found["hints"].items())
        chosen = "the published table's" if self.config else found["selected"]
        tools = {**entry.tool_versions, "cutile_stencil": found["version"]}
        schedule = f"tile {'x'.join(map(str, found['tile']))}{hints} ({chosen})"
        return resource_facts(entry.resources, tools) | {"schedule": schedule}

    def artefacts(self, target: Target) -> dict[str, str]:
        return {"kernel.py": self._found(self.shape)[0]["source"]}

    def validate(self, target: Target) -> dict[str, Any]:
        """Interprets the generated kernel on a small interior."""
        import numpy as np

        from repro.baselines.check import evaluated, random_fields
        from stencil_dsl.reference.tile_interpreter import ArrayArg, run

        found, launch = self._found(SMALL)
        halo, m = found["halo"], model(self.row)
        whole = tuple(n + 2 * h for n, h in zip(SMALL, halo, strict=True))
        fields = random_fields(m, SMALL, tuple(halo))
        want = evaluated(m, fields, SMALL, tuple(halo))
        arrays: dict[str, Any] = {name: fields[name] for name in found["inputs"]}
        arrays |= {name: np.full(whole, np.nan) for name in found["outputs"]}
        arguments = [_argument(a, arrays, np.array) for a in launch["arguments"]]
        run(
            found["source"],
            launch["function"],
            tuple(launch["grid"]),
            [ArrayArg.of(a) if isinstance(a, np.ndarray) else a for a in arguments],
            strict_views=False,
        )
        inside = tuple(slice(h, h + n) for h, n in zip(halo, SMALL, strict=True))
        errors = [
            float(np.max(np.abs(arrays[name][inside] - values)) / np.max(np.abs(values)))
            for name, values in zip(found["outputs"], want, strict=True)
        ]
        worst = float(np.max(np.nan_to_num(errors, nan=np.inf)))
        why = "" if worst <= 1e-12 else f"relative error {worst:.3g} exceeds 1e-12"
        how = f"interpreter, {'x'.join(map(str, SMALL))}"
        return {"ok": not why, "max_rel_err": worst, "how": how, "why": why}

    def prepare(self, bench: Any) -> Prepared:
        from stencil_dsl.testing.tile_kernels import flatten

        found, launch = self._found(bench.question.shape)
        halo, shape, xp = found["halo"], bench.question.shape, bench.xp
        lo = tuple(-h for h in halo)
        whole = tuple(n + 2 * h for n, h in zip(shape, halo, strict=True))
        arrays = {name: bench.input(name, lo, whole) for name in found["inputs"]}
        for k, name in enumerate(found["outputs"]):
            arrays[name] = bench.output(k, whole)
        device = [_argument(a, arrays, lambda values: xp.asarray(values, dtype="float64")) for a in launch["arguments"]]
        arguments = flatten([a for a in device if hasattr(a, "strides")])
        kernel = bench.device.load_cubin(self.build(bench.target).cubin, launch["function"])
        grid = tuple(launch["grid"])
        inside = tuple(slice(h, h + n) for h, n in zip(halo, shape, strict=True))
        return Prepared(
            enqueue=lambda stream: kernel(grid, (1, 1, 1), arguments, stream),
            outputs=[arrays[name][inside] for name in found["outputs"]],
            guards=[arrays[name] for name in found["outputs"]],
        )

    def _found(self, shape: Shape) -> tuple[dict[str, Any], dict[str, Any]]:
        found = generated(self.row, shape, self.config)
        if len(found["launches"]) != 1:
            raise RuntimeError(f"the published compiler launches {len(found['launches'])} kernels, not one")
        return found, found["launches"][0]

    def _params(self, found: Mapping[str, Any], launch: Mapping[str, Any]) -> list[Any]:
        """The signature that cuTile infers in a launch: extents at run time, what 16 (bytes of strides) divides."""
        from stencil_dsl.toolchain import ArrayParam

        nx, ny, nz = (n + 2 * h for n, h in zip(self.shape, found["halo"], strict=True))
        divisible = tuple(16 if n % 16 == 0 else 1 for n in (nx, ny, nz))
        steps = tuple(2 if n % 2 == 0 else 1 for n in (ny * nz, nz, 1))
        field = ArrayParam("float64", (None,) * 3, (None, None, 1), 16, divisible, steps)
        params: list[Any] = []
        for argument in launch["arguments"]:
            if "values" in argument:
                count = len(argument["values"])
                known = 1 if count == 1 else None
                params.append(ArrayParam("float64", (known,), (1,), 16, (16 if count % 16 == 0 else 1,)))
            else:
                params.append(field if "field" in argument else argument["constant"])
        return params


def _argument(argument: Mapping[str, Any], arrays: Mapping[str, Any], made: Any) -> Any:
    if "field" in argument:
        return arrays[argument["field"]]
    return made(argument["values"]) if "values" in argument else argument["constant"]
