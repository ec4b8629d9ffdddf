"""Stencil upwind on 1000 float64 cells.

Schedule: shifted (256), 8 warps, checked, source.
Fields are full arrays with halo and padding; outputs are views of the interior.
"""

from typing import Annotated

import cuda.tile as ct

Static = Annotated[
    ct.Array, ct.ArrayAnnotation(static_shape_dims=(0,), static_stride_dims=(0,))
]


@ct.kernel(num_worker_warps=8)
def upwind(u: Static, v: Static, upwind_0_out: Static, upwind_1_out: Static, dt: ct.ScalarInt64):
    c_0p3 = ct.bitcast(ct.full((1,), 4599075939470750515, dtype=ct.int64), ct.float64)
    c = ct.full((1,), 1.0, dtype=ct.float64)
    c_2 = ct.full((1,), 0.0, dtype=ct.float64)
    bz = ct.bid(0)
    u_2 = u.slice(0, 16, 1016)
    t_u_2 = ct.load(u_2, (bz,), (256,), allow_tma=False)
    s = ct.bitcast(ct.full((1,), dt, dtype=ct.int64), ct.float64)
    v_2 = v.slice(0, 16, 1016)
    t_v_2 = ct.load(v_2, (bz,), (256,), allow_tma=False)
    u_m1 = u.slice(0, 15, 1015)
    t_u_m1 = ct.load(u_m1, (bz,), (256,), allow_tma=False)
    v_3 = t_u_2 - t_u_m1
    u_p1 = u.slice(0, 17, 1017)
    t_u_p1 = ct.load(u_p1, (bz,), (256,), allow_tma=False)
    ct.store(upwind_0_out, (bz,), t_u_2 - s * t_v_2 * ct.where((t_v_2 > c_2) & ((v_3 == c_2) ^ (c > c_2)), v_3, t_u_p1 - t_u_2), allow_tma=False)
    ct.store(upwind_1_out, (bz,), ct.maximum(ct.abs(v_3), c_0p3, propagate_nan=True), allow_tma=False)


def launch_upwind(stream, u, v, upwind_0_out, upwind_1_out, dt):
    """Enqueue one sweep on a stream; arrays are CuPy's, fields start at their first halo cell."""
    import numpy

    import cupy

    u = cupy.ndarray((1024,), u.dtype, u.data, (8,))
    v = cupy.ndarray((1024,), v.dtype, v.data, (8,))
    grid = (4, 1, 1)
    ct.launch(stream, grid, upwind, (u, v, upwind_0_out, upwind_1_out, int(numpy.float64(dt).view(numpy.int64)),))
