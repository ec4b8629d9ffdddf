"""The step in CUDA C++, two ways.

*plain*: one thread a cell, cells counted through, every access a load: what a compiler makes of three nested loops
that are offloaded, the paper's OpenMP version. *shared*: a block loads a tile of a plane with its halo into shared
memory and marches along x, where every thread keeps nine values in registers: the paper's SYCL version. Both damp with
a kernel that streams from memory without reuse, as the paper's do.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from repro.acoustic.grid import SERIES, Grid, Program, names
from repro.acoustic.model import DX, RADIUS, Box, C, Cube
from repro.baselines.base import Launch, ceil_div

THREADS = 256
CONFIGS: dict[str, dict[str, Any]] = {"plain": {"threads": THREADS}, "shared": {"z": 32, "y": 8, "planes": 64}}

_COMMON = """
constexpr int SX = {sx}, SY = {sy};

// The sum of 25 cells around a cell, which u points to.
__device__ __forceinline__ float laplacian(const float* __restrict__ u) {{
  float sum = {centre} * u[0];
{rings}
  return sum;
}}

__device__ __forceinline__ void damped_cell(const float* __restrict__ u, float* __restrict__ v,
                                            const float* __restrict__ vp, float* __restrict__ phi,
                                            const float* __restrict__ eta, int at) {{
  const float* here = u + at;
  const float* damp = eta + at;
  const float e = damp[0], correction = phi[at];
  const float force = vp[at] * (laplacian(here) + correction);
  v[at] = ((2.0f - e * e + 2.0f * e) * here[0] + force - v[at]) / (1.0f + 2.0f * e);
  const float change = (damp[SX] - damp[-SX]) * (here[SX] - here[-SX]) +
                       (damp[SY] - damp[-SY]) * (here[SY] - here[-SY]) + (damp[1] - damp[-1]) * (here[1] - here[-1]);
  phi[at] = (correction - change * {slope}) / (1.0f + e);
}}

extern "C" __global__ void add_source(float* __restrict__ v, const float* __restrict__ series,
                                      long long* __restrict__ clock) {{
  const long long step = *clock;
  if (step < {series}) v[{source}] += series[step];
  *clock = step + 1;
}}
"""

_COUNTED = """
extern "C" __global__ void __launch_bounds__({threads}) {name}({parameters}) {{
  const int count = blockIdx.x * {threads} + threadIdx.x;
  if (count >= {cells}) return;
  const int z = {Z0} + count % {nz}, y = {Y0} + count / {nz} % {ny}, x = {X0} + count / {plane};
  const int at = {offset} + x * SX + y * SY + z;
  {body}
}}
"""

_SHARED = """
extern "C" __global__ void __launch_bounds__({threads}) inner({parameters}) {{
  constexpr int R = {radius}, TY = {ty}, TZ = {tz};
  __shared__ float tile[TY + 2 * R][TZ + 2 * R];
  const int z0 = {Z0} + blockIdx.x * TZ, y0 = {Y0} + blockIdx.y * TY;
  const int z = z0 + threadIdx.x, y = y0 + threadIdx.y;
  const int first = {X0} + blockIdx.z * {planes};
  const int last = first + {planes} < {X1} ? first + {planes} : {X1};
  const bool inside = z < {Z1} && y < {Y1};
  const int thread = threadIdx.y * TZ + threadIdx.x;
  const float* column = u + {offset} + y * SY + z;
  float window[2 * R + 1];
#pragma unroll
  for (int r = 0; r < 2 * R; ++r) window[r + 1] = column[(first - R + r) * SX];
  for (int x = first; x < last; ++x) {{
#pragma unroll
    for (int r = 0; r < 2 * R; ++r) window[r] = window[r + 1];
    window[2 * R] = column[(x + R) * SX];
    __syncthreads();  // the plane before has been read
    const float* plane = u + {offset} + x * SX + (y0 - R) * SY + (z0 - R);
    for (int t = thread; t < (TY + 2 * R) * (TZ + 2 * R); t += {threads})
      tile[t / (TZ + 2 * R)][t % (TZ + 2 * R)] = plane[t / (TZ + 2 * R) * SY + t % (TZ + 2 * R)];
    __syncthreads();
    const float* here = &tile[threadIdx.y + R][threadIdx.x + R];
    float sum = {centre} * window[R];
{rings}
    if (inside) {{
      const int at = {offset} + x * SX + y * SY + z;
      v[at] = 2.0f * window[R] - v[at] + vp[at] * sum;
    }}
  }}
}}
"""

_INNER = "const float* __restrict__ u, float* __restrict__ v, const float* __restrict__ vp"
_LAYER = _INNER + ", float* __restrict__ phi, const float* __restrict__ eta"
INNER_ARGS, LAYER_ARGS = ("u", "v", "vp"), ("u", "v", "vp", "phi", "eta")
SOURCE = Launch("add_source", (1, 1, 1), (1, 1, 1), ("v", "series", "clock"))
"""Adds the wavelet to the new field and counts the step."""


def generate(variant: str, cube: Cube, config: Mapping[str, Any] | None = None) -> Program:
    """The kernels of a variant; extents are compiled in.

    Raises:
        KeyError: for another variant than "plain" and "shared".
    """
    if variant not in CONFIGS:
        raise KeyError(f"no CUDA variant {variant!r}; there are {', '.join(CONFIGS)}")
    chosen = CONFIGS[variant] | dict(config or {})
    grid = Grid(cube)
    texts = [_common(grid)]
    if variant == "plain":
        threads = int(chosen["threads"])
        texts.append(_counted(grid, "inner", cube.inner, _INNER, _plain_body(), threads))
        inner = _counted_launch("inner", cube.inner, INNER_ARGS, threads)
    else:
        threads = THREADS
        texts.append(_shared(grid, chosen))
        nx, ny, nz = (hi - lo for lo, hi in cube.inner)
        z, y, planes = int(chosen["z"]), int(chosen["y"]), int(chosen["planes"])
        blocks = (ceil_div(nz, z), ceil_div(ny, y), ceil_div(nx, planes))
        inner = Launch("inner", blocks, (z, y, 1), INNER_ARGS)
    layer = []
    for name, box in cube.slabs.items():
        texts.append(_counted(grid, name, box, _LAYER, "damped_cell(u, v, vp, phi, eta, at);", threads))
        layer.append(_counted_launch(name, box, LAYER_ARGS, threads))
    return Program(variant, chosen, grid, "\n".join(texts), inner, tuple(layer))


def number(value: float) -> str:
    """A float as C++ text, with all digits that float32 keeps."""
    return f"{value:.9e}f"


def _common(grid: Grid) -> str:
    sx, sy, _ = grid.strides
    rings = []
    for r in range(1, RADIUS + 1):
        steps = " + ".join(f"u[{sign}{r}{by}]" for by in ("", " * SY", " * SX") for sign in ("-", ""))
        rings.append(f"  sum += {number(C[r])} * ({steps});")
    return _COMMON.format(
        sx=sx,
        sy=sy,
        centre=number(3 * C[0]),
        rings="\n".join(rings),
        slope=number(1 / (4 * DX**2)),
        source=grid.at(*(grid.cube.centre,) * 3),
        series=SERIES,
    )


def _plain_body() -> str:
    return "v[at] = 2.0f * u[at] - v[at] + vp[at] * laplacian(u + at);"


def _counted(grid: Grid, name: str, box: Box, parameters: str, body: str, threads: int) -> str:
    nx, ny, nz = (hi - lo for lo, hi in box)
    sizes = {"cells": nx * ny * nz, "ny": ny, "nz": nz, "plane": ny * nz, "offset": grid.offset}
    return _COUNTED.format(name=name, parameters=parameters, body=body, threads=threads, **sizes, **names(box))


def _counted_launch(name: str, box: Box, args: tuple[str, ...], threads: int) -> Launch:
    cells = prod(hi - lo for lo, hi in box)
    return Launch(name, (ceil_div(cells, threads), 1, 1), (threads, 1, 1), args)


def _shared(grid: Grid, config: Mapping[str, Any]) -> str:
    tz, ty = int(config["z"]), int(config["y"])
    width = tz + 2 * RADIUS
    rings = []
    for r in range(1, RADIUS + 1):
        steps = [f"window[R - {r}] + window[R + {r}]"]
        steps += [f"here[-{r * by}] + here[{r * by}]" for by in (1, width)]
        rings.append(f"    sum += {number(C[r])} * ({' + '.join(steps)});")
    return _SHARED.format(
        parameters=_INNER,
        threads=tz * ty,
        radius=RADIUS,
        ty=ty,
        tz=tz,
        planes=int(config["planes"]),
        offset=grid.offset,
        centre=number(3 * C[0]),
        rings="\n".join(rings),
        **names(grid.cube.inner),
    )
