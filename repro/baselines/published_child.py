"""Runs in the environment that has the published compiler, with its interpreter: a request in, what it generates out.

Uses nothing of this project. The compiler is called as its users call it, and the launch function that it generates is
called with stand-ins for arrays, CuPy and cuTile, so that no device is needed: they note what would be launched.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import json
import sys
import tempfile
import types
from pathlib import Path

PACKAGE = "cutile-stencil"


class Field:
    """Stands for a contiguous device array; only its name and extents are asked for."""

    ndim = 3
    dtype = "float64"

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self.name, self.shape = name, shape


class Values(list):
    """Stands for a small device array made from numbers."""


def main() -> None:
    """Reads the request from standard input and writes the answer to standard output, both JSON."""
    request = json.load(sys.stdin)
    result = compiled(request)
    halo = tuple(int(h) for h in result.halo_widths)
    whole = tuple(n + 2 * h for n, h in zip(request["shape"], halo, strict=True))
    outputs = [f"out_{k}" for k in range(len(request["functions"]))]
    launches = record(result, [Field(name, whole) for name in (*result.inputs, *outputs)])
    answer = {
        "version": importlib.metadata.version(PACKAGE),
        "source": kernel_text(result.code),
        "halo": halo,
        "tile": [int(n) for n in result.tile_sizes],
        "hints": dict(result.kernel_hints),
        "inputs": list(result.inputs),
        "outputs": outputs,
        "selected": "first candidate" if result.resources is None else "by its resources or time",
        "launches": launches,
    }
    json.dump(answer, sys.stdout)


def compiled(request: dict):
    """The compiler's own result: what it chooses, or the tile and occupancy that the request names."""
    import cutile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "request.py"
        file.write_text("from cutile import stencil\n\n\n" + request["text"])
        functions = [getattr(load("request", file), name) for name in request["functions"]]
        if request["tile"] is not None or len(functions) > 1:
            chosen = {} if request["tile"] is None else {"tile_sizes": tuple(request["tile"])}
            return cutile.compile_fused(functions, occupancy=request["occupancy"], **chosen)
        return cutile.compile(functions[0], temporal_blocking=False)


def record(result, fields: list[Field]) -> list[dict]:
    """Calls the generated launch function; every launch as kernel name, grid and arguments."""
    seen: list[dict] = []

    def launch(stream, grid, kernel, arguments) -> None:
        seen.append(
            {
                "function": kernel.__name__,
                "grid": [int(n) for n in grid],
                "arguments": [described(a) for a in arguments],
            }
        )

    class Constant:
        def __class_getitem__(cls, item):
            return cls

    def kernel(function=None, **hints):
        return function if function is not None else lambda f: f

    tile = types.ModuleType("cuda.tile")
    vars(tile).update(kernel=kernel, Constant=Constant, launch=launch, cdiv=lambda a, b: -(-a // b))
    cupy = types.ModuleType("cupy")
    runtime = types.SimpleNamespace(
        Device=lambda: types.SimpleNamespace(id=0), get_current_stream=lambda: types.SimpleNamespace(ptr=0)
    )
    vars(cupy).update(cuda=runtime, float64="float64", asarray=lambda values, dtype=None: Values(values))
    cuda = types.ModuleType("cuda")
    cuda.tile = tile
    # Only now: until here the compiler could use the real ones, where its environment has them.
    sys.modules.update({"cuda": cuda, "cuda.tile": tile, "cupy": cupy})
    getattr(result.load_module(), f"launch_{result.name}")(*fields)
    return seen


def described(argument) -> dict:
    if isinstance(argument, Field):
        return {"field": argument.name}
    if isinstance(argument, Values):
        return {"values": [float(v) for v in argument]}
    if isinstance(argument, (int, float)):
        return {"constant": argument}
    raise TypeError(f"an argument of type {type(argument).__name__} cannot be carried to another process")


def kernel_text(code: str) -> str:
    """The kernels of the generated file and what they need, without its host part, which imports CuPy."""
    kept = []
    for node in ast.parse(code).body:
        decorators = [ast.unparse(d) for d in getattr(node, "decorator_list", ())]
        is_kernel = any("ct.kernel" in text for text in decorators)
        of_tile = isinstance(node, (ast.Import, ast.Assign)) and "cp" not in names(node) and "ct" in names(node)
        if is_kernel or of_tile:
            kept.append(ast.unparse(node))
    return "\n\n\n".join(kept) + "\n"


def names(node: ast.AST) -> set[str]:
    """Names and import aliases in a statement."""
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return found | {a.asname or a.name for n in ast.walk(node) if isinstance(n, ast.Import) for a in n.names}


def load(name: str, file: Path):
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
