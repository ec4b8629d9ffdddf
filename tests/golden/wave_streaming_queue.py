"""Stencil wave on 37x515 float32 cells.

Schedule: streaming (1,128), rows 1, chunk 8, queue, y first, source.
Fields are full arrays with halo and padding; outputs are views of the interior.
"""

from typing import Annotated

import cuda.tile as ct

Static = Annotated[
    ct.Array, ct.ArrayAnnotation(static_shape_dims=(0, 1), static_stride_dims=(0, 1))
]


@ct.kernel
def wave(p: Static, p_prev: Static, vel: Static, out: Static, dt):
    bx = ct.bid(0)
    bz = ct.bid(1)
    x0 = (bx * 7) + min(bx, 2)
    i = bx + 1
    x1 = (i * 7) + min(i, 2)
    p_m1 = p.slice(0, 0, 37).slice(1, 32, 672)
    t_p_m1 = ct.load(p_m1, (x0, bz), (1, 128), check_bounds=False, allow_tma=False)
    p_2 = p.slice(0, 1, 38)
    p_0 = p_2.slice(1, 32, 672)
    t_p_0 = ct.load(p_0, (x0, bz), (1, 128), check_bounds=False, allow_tma=False)
    p_p1 = p.slice(0, 2, 39).slice(1, 32, 672)
    p_prev_0 = p_prev.slice(0, 1, 38).slice(1, 32, 672)
    s = ct.bitcast(ct.full((1, 1), dt, dtype=ct.int32), ct.float32)
    vel_0 = vel.slice(0, 1, 38).slice(1, 32, 672)
    p_0_m1 = p_2.slice(1, 31, 671)
    p_0_p1 = p_2.slice(1, 33, 673)
    acc = t_p_m1
    acc_2 = t_p_0
    for x in range(x0, x1):
        t_p_p1 = ct.load(p_p1, (x, bz), (1, 128), check_bounds=False, allow_tma=False)
        t_p_prev_0 = ct.load(p_prev_0, (x, bz), (1, 128), check_bounds=False, allow_tma=False)
        t_vel_0 = ct.load(vel_0, (x, bz), (1, 128), check_bounds=False, allow_tma=False)
        t_p_0_m1 = ct.load(p_0_m1, (x, bz), (1, 128), check_bounds=False, allow_tma=False)
        t_p_0_p1 = ct.load(p_0_p1, (x, bz), (1, 128), check_bounds=False, allow_tma=False)
        ct.store(out, (x, bz), 2.0 * acc_2 - t_p_prev_0 + s * s * t_vel_0 * (acc + t_p_p1 + t_p_0_m1 + t_p_0_p1 - 4.0 * acc_2), allow_tma=False)
        next_acc = acc_2
        next_acc_2 = t_p_p1
        acc = next_acc
        acc_2 = next_acc_2


def launch_wave(stream, p, p_prev, vel, out, dt):
    """Enqueue one sweep on a stream; arrays are CuPy's, fields start at their first halo cell."""
    import numpy

    import cupy

    p = cupy.ndarray((39, 673), p.dtype, p.data, (2304, 4))
    p_prev = cupy.ndarray((39, 672), p_prev.dtype, p_prev.data, (2304, 4))
    vel = cupy.ndarray((39, 672), vel.dtype, vel.data, (2304, 4))
    grid = (5, 5, 1)
    ct.launch(stream, grid, wave, (p, p_prev, vel, out, int(numpy.float32(dt).view(numpy.int32)),))
