"""Triton kernels of the rows: one program computes a tile of one plane, every access is a load.

Two versions. *masked*: loads and stores are masked with the interior's bounds, as one writes it for an array of
which nothing is known. *wide*: loads are not masked, because the padded arrays may be read a tile beyond the
interior; only stores are. The text needs Triton only when it is compiled.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.baselines.base import Baseline, Launch, Shape, ceil_div, symbol
from repro.baselines.model import Model, Offset, model
from stencil_dsl.schedule.layout import SLACK_ELEMENTS, SLACK_ROWS, Layout

#: Tile extents (y, z).
TILES = ((1, 128), (1, 256), (2, 128), (4, 64), (8, 32), (2, 64))


def configs(row: str) -> list[dict[str, Any]]:
    """What is searched: load = "masked" or "wide", y and z the tile, w warps."""
    narrow = [] if row == "cns" else [{"load": "masked", "y": y, "z": z, "w": 4} for y, z in TILES[:3]]
    if row == "cns":
        narrow = [{"load": "masked", "y": 1, "z": 128, "w": 4}]
    return narrow + [{"load": "wide", "y": y, "z": z, "w": 4} for y, z in TILES]


def generate(row: str, shape: Shape, config: Mapping[str, Any] | None = None) -> Baseline:
    """The kernel as Python text (`Baseline.source`); the launch's block is Triton's affair and given as 1.

    Raises:
        ValueError: for a tile that would read beyond the padding.
    """
    config = dict(config or configs(row)[0])
    m = model(row)
    layout = Layout.padded(shape, tuple((r, r) for r in m.radius), "float64")
    y, z = int(config["y"]), int(config["z"])
    if config["load"] == "wide" and (y > SLACK_ROWS or z > SLACK_ELEMENTS):
        raise ValueError(f"a tile that is loaded without masks has at most {SLACK_ROWS} rows: {config}")
    name = symbol(f"triton_{row}")
    launch = Launch(name, (ceil_div(shape[2], z), ceil_div(shape[1], y), shape[0]), (1, 1, 1), (*m.fields, *m.outputs))
    return Baseline(row, "triton", config, shape, _text(m, layout, name, config), (launch,))


def _text(m: Model, layout: Layout, name: str, config: Mapping[str, Any]) -> str:
    _, ny, nz = layout.shape
    sx, sy, _ = layout.strides
    masked = config["load"] == "masked"
    coefficients = list(dict.fromkeys(t.coefficient for terms in m.sums for t in terms))
    lines = [
        "import triton",
        "import triton.language as tl",
        "",
        "",
        "@triton.jit",
        f"def {name}({', '.join((*m.fields, *m.outputs))}):",
        f"    z = tl.program_id(0) * {config['z']} + tl.arange(0, {config['z']})[None, :]",
        f"    y = tl.program_id(1) * {config['y']} + tl.arange(0, {config['y']})[:, None]",
        f"    at = tl.program_id(2).to(tl.int64) * {sx} + {layout.offset} + y * {sy} + z",
        f"    inside = (y < {ny}) & (z < {nz})",
    ]
    # A bare Python number may be taken for a float32; these are exact.
    for k, c in enumerate(coefficients):
        lines.append(f"    k{k} = tl.full([1, 1], {c!r}, tl.float64)")
    names: dict[tuple[str, Offset], str] = {}

    def read(field: str, offset: Offset) -> str:
        if (field, offset) not in names:
            names[field, offset] = f"{field}_{len(names)}"
            index = offset[0] * sx + offset[1] * sy + offset[2]
            mask = ", mask=inside, other=0.0" if masked else ""
            load = f"tl.load({field} + at + {index}{mask})"
            lines.append(f"    {names[field, offset]} = {f'tl.maximum({load}, 0.0)' if m.relu else load}")
        return names[field, offset]

    for output, terms in zip(m.outputs, m.sums, strict=True):
        for number, term in enumerate(terms):
            factors = " * ".join(read(f, term.offset) for f in term.product)
            text = f"k{coefficients.index(term.coefficient)} * {factors}"
            lines.append(f"    s_{output} = {text}" if number == 0 else f"    s_{output} += {text}")
        centre = {f: read(f, (0, 0, 0)) for f in m.finish_fields}
        result = m.finish.format(s=f"s_{output}", **centre).replace("fabs(", "tl.abs(")
        lines.append(f"    tl.store({output} + at, {result}, mask=inside)")
    return "\n".join([*lines, ""])


@dataclass(frozen=True)
class Compiled:
    """A cubin with what its launch needs: threads a block, dynamic shared memory in bytes."""

    cubin: bytes
    kernel: str
    threads: int
    shared: int


def compile_for(baseline: Baseline, arch: str) -> Compiled:
    """Compiles the text with Triton; needs no device.

    Args:
        arch: "sm_90" and the like.
    """
    launch = baseline.launches[0]
    return compile_text(baseline.source, launch.kernel, launch.args, "fp64", int(baseline.config["w"]), arch)


def compile_text(text: str, kernel: str, args: Sequence[str], element: str, warps: int, arch: str) -> Compiled:
    """One kernel of a Python text, all of whose arguments are pointers to elements ("fp64", "fp32")."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    source = ASTSource(
        fn=getattr(_module(text), kernel),
        signature=dict.fromkeys(args, f"*{element}"),
        attrs={(k,): [["tt.divisibility", 16]] for k in range(len(args))},
    )
    number = int("".join(c for c in arch.removeprefix("sm_") if c.isdigit()))
    done = triton.compile(source, target=GPUTarget("cuda", number, 32), options={"num_warps": warps})
    threads = 32 * int(getattr(done.metadata, "num_warps", warps))
    return Compiled(done.asm["cubin"], done.metadata.name, threads, int(done.metadata.shared))


def _module(text: str) -> Any:
    """Triton reads a function's source from its file, so the text becomes one."""
    name = "triton_baseline_" + hashlib.sha256(text.encode()).hexdigest()[:16]
    if name not in sys.modules:
        path = Path(tempfile.mkdtemp(prefix="triton_baseline_")) / f"{name}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
    return sys.modules[name]
