"""The step in Triton as the paper describes it.

A program sweeps a tile of 16 x 16 cells along x over 32 planes. Nine planes of u are a queue in registers; of each
further plane the eight shifted tiles along y and the eight along z are loads. The zeros around the cube let every load
go without a mask; stores have one. The layer's kernels do the same and read eta and phi besides.
"""

from __future__ import annotations

from typing import Any

from repro.acoustic.cuda import INNER_ARGS, LAYER_ARGS
from repro.acoustic.grid import TILE, TILE_X, Grid, Program, names
from repro.acoustic.model import DX, RADIUS, Box, C, Cube
from repro.baselines.base import Launch, ceil_div

CONFIG: dict[str, Any] = {"x": TILE_X, "y": TILE, "z": TILE, "warps": 4}
HEADER = "import triton\nimport triton.language as tl\n"


def generate(cube: Cube) -> Program:
    """The kernels as Python text; a launch's block is Triton's affair and given as 1."""
    grid = Grid(cube)
    boxes = {"inner": cube.inner, **cube.slabs}
    text = HEADER + "".join(_kernel(grid, name, box) for name, box in boxes.items())
    inner, *layer = (_launch(name, box) for name, box in boxes.items())
    return Program("triton", CONFIG, grid, text, inner, tuple(layer))


def _launch(name: str, box: Box) -> Launch:
    nx, ny, nz = (hi - lo for lo, hi in box)
    blocks = (ceil_div(nz, TILE), ceil_div(ny, TILE), ceil_div(nx, TILE_X))
    return Launch(name, blocks, (1, 1, 1), INNER_ARGS if name == "inner" else LAYER_ARGS)


def _kernel(grid: Grid, name: str, box: Box) -> str:
    sx, sy, _ = grid.strides
    b = names(box)
    last = 2 * RADIUS
    lines = [
        "",
        "",
        "@triton.jit",
        f"def {name}({', '.join(INNER_ARGS if name == 'inner' else LAYER_ARGS)}):",
        f"    z = {b['Z0']} + tl.program_id(0) * {TILE} + tl.arange(0, {TILE})[None, :]",
        f"    y = {b['Y0']} + tl.program_id(1) * {TILE} + tl.arange(0, {TILE})[:, None]",
        f"    x = {b['X0']} + tl.program_id(2) * {TILE_X}",
        f"    inside = (y < {b['Y1']}) & (z < {b['Z1']})",
        f"    at = {grid.offset} + x * {sx} + y * {sy} + z",
        *(f"    q{r} = tl.load(u + at + {(r - RADIUS) * sx})" for r in range(last)),
        f"    for plane in tl.range(0, {TILE_X}):",
        f"        q{last} = tl.load(u + at + {RADIUS * sx})",
    ]
    for axis, stride in (("y", sy), ("z", 1)):
        for r in range(1, RADIUS + 1):
            for sign, side in ((-1, "m"), (1, "p")):
                lines.append(f"        {axis}{side}{r} = tl.load(u + at + {sign * r * stride})")
    centre = f"q{RADIUS}"
    lines.append(f"        lap = {3 * C[0]!r} * {centre}")
    for r in range(1, RADIUS + 1):
        ring = f"q{RADIUS - r} + q{RADIUS + r} + ym{r} + yp{r} + zm{r} + zp{r}"
        lines.append(f"        lap += {C[r]!r} * ({ring})")
    lines.append(f"        keep = inside & (x + plane < {b['X1']})")
    lines.append("        old = tl.load(v + at)")
    lines.append("        vp_here = tl.load(vp + at)")
    if name == "inner":
        lines.append(f"        tl.store(v + at, 2.0 * {centre} - old + vp_here * lap, mask=keep)")
    else:
        lines += _damped(centre, sx, sy)
    lines += [f"        q{r} = q{r + 1}" for r in range(last)]
    lines += [f"        at += {sx}", ""]
    return "\n".join(lines)


def _damped(centre: str, sx: int, sy: int) -> list[str]:
    sides = (("x", sx, f"q{RADIUS + 1} - q{RADIUS - 1}"), ("y", sy, "yp1 - ym1"), ("z", 1, "zp1 - zm1"))
    changes = [f"(tl.load(eta + at + {by}) - tl.load(eta + at - {by})) * ({change})" for _, by, change in sides]
    return [
        "        e = tl.load(eta + at)",
        "        correction = tl.load(phi + at)",
        "        force = vp_here * (lap + correction)",
        f"        new = ((2.0 - e * e + 2.0 * e) * {centre} + force - old) / (1.0 + 2.0 * e)",
        f"        change = {' + '.join(changes)}",
        "        tl.store(v + at, new, mask=keep)",
        f"        tl.store(phi + at, (correction - change * {1 / (4 * DX**2)!r}) / (1.0 + e), mask=keep)",
    ]
