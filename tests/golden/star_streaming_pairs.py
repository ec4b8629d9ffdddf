"""Stencil star on 64x64x256 float64 cells.

Schedule: streaming (1,1,128,2), rows 2, chunk 32, occupancy 4, fast.
Fields are full arrays with halo and padding; outputs are views of the interior.
"""

from typing import Annotated

import cuda.tile as ct

Static = Annotated[
    ct.Array, ct.ArrayAnnotation(static_shape_dims=(0, 1, 2, 3), static_stride_dims=(0, 1, 2, 3))
]
StaticOut = Annotated[
    ct.Array, ct.ArrayAnnotation(static_shape_dims=(0, 1, 2), static_stride_dims=(0, 1, 2))
]


@ct.kernel(occupancy=4)
def star(u: Static, out: StaticOut, out_2: StaticOut):
    c_0p4 = ct.bitcast(ct.full((1, 1, 1, 1), 4600877379321698714, dtype=ct.int64), ct.float64)
    c_0p1 = ct.bitcast(ct.full((1, 1, 1, 1), 4591870180066957722, dtype=ct.int64), ct.float64)
    bz = ct.bid(0)
    by = ct.bid(1)
    bx = ct.bid(2)
    i = by * 2
    x0 = bx * 32
    x1 = x0 + 32
    u_m1 = u.slice(0, 0, 64)
    u_m1_0 = u_m1.slice(1, 1, 64).slice(2, 8, 136)
    t_u_m1_0 = ct.load(u_m1_0, (x0, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
    t_u_m1_0_0 = ct.extract(t_u_m1_0, (0, 0, 0, 0), (1, 1, 128, 1))
    t_u_m1_0_1 = ct.extract(t_u_m1_0, (0, 0, 0, 1), (1, 1, 128, 1))
    u_m1_p1 = u_m1.slice(1, 2, 65).slice(2, 8, 136)
    t_u_m1_p1 = ct.load(u_m1_p1, (x0, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
    t_u_m1_p1_0 = ct.extract(t_u_m1_p1, (0, 0, 0, 0), (1, 1, 128, 1))
    t_u_m1_p1_1 = ct.extract(t_u_m1_p1, (0, 0, 0, 1), (1, 1, 128, 1))
    u_2 = u.slice(0, 1, 65)
    u_0_m1 = u_2.slice(1, 0, 63).slice(2, 8, 136)
    t_u_0_m1 = ct.load(u_0_m1, (x0, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
    t_u_0_m1_0 = ct.extract(t_u_0_m1, (0, 0, 0, 0), (1, 1, 128, 1))
    t_u_0_m1_1 = ct.extract(t_u_0_m1, (0, 0, 0, 1), (1, 1, 128, 1))
    u_0 = u_2.slice(1, 1, 64)
    u_0_0 = u_0.slice(2, 8, 136)
    t_u_0_0 = ct.load(u_0_0, (x0, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
    t_u_0_0_0 = ct.extract(t_u_0_0, (0, 0, 0, 0), (1, 1, 128, 1))
    u_0_0_m1 = u_0.slice(2, 7, 135)
    t_u_0_0_m1 = ct.load(u_0_0_m1, (x0, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
    t_u_0_0_m1_1 = ct.extract(t_u_0_0_m1, (0, 0, 0, 1), (1, 1, 128, 1))
    t_u_0_0_1 = ct.extract(t_u_0_0, (0, 0, 0, 1), (1, 1, 128, 1))
    u_0_0_p1 = u_0.slice(2, 9, 137)
    t_u_0_0_p1 = ct.load(u_0_0_p1, (x0, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
    t_u_0_0_p1_0 = ct.extract(t_u_0_0_p1, (0, 0, 0, 0), (1, 1, 128, 1))
    u_0_p1 = u_2.slice(1, 2, 65)
    u_0_p1_2 = u_0_p1.slice(2, 8, 136)
    t_u_0_p1_2 = ct.load(u_0_p1_2, (x0, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
    t_u_0_p1_2_0 = ct.extract(t_u_0_p1_2, (0, 0, 0, 0), (1, 1, 128, 1))
    acc0 = c_0p1 * t_u_m1_0_0 + c_0p1 * t_u_0_m1_0 + c_0p4 * t_u_0_0_0 + c_0p1 * (t_u_0_0_m1_1 + t_u_0_0_1) + c_0p1 * t_u_0_p1_2_0
    t_u_0_p1_2_1 = ct.extract(t_u_0_p1_2, (0, 0, 0, 1), (1, 1, 128, 1))
    acc0_2 = c_0p1 * t_u_m1_0_1 + c_0p1 * t_u_0_m1_1 + c_0p4 * t_u_0_0_1 + c_0p1 * (t_u_0_0_0 + t_u_0_0_p1_0) + c_0p1 * t_u_0_p1_2_1
    u_0_p1_m1 = u_0_p1.slice(2, 7, 135)
    t_u_0_p1_m1 = ct.load(u_0_p1_m1, (x0, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
    t_u_0_p1_m1_1 = ct.extract(t_u_0_p1_m1, (0, 0, 0, 1), (1, 1, 128, 1))
    v = c_0p1 * t_u_m1_p1_0 + c_0p1 * t_u_0_0_0 + c_0p4 * t_u_0_p1_2_0 + c_0p1 * (t_u_0_p1_m1_1 + t_u_0_p1_2_1)
    u_0_p1_p1 = u_0_p1.slice(2, 9, 137)
    t_u_0_p1_p1 = ct.load(u_0_p1_p1, (x0, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
    t_u_0_p1_p1_0 = ct.extract(t_u_0_p1_p1, (0, 0, 0, 0), (1, 1, 128, 1))
    v_2 = c_0p1 * t_u_m1_p1_1 + c_0p1 * t_u_0_0_1 + c_0p4 * t_u_0_p1_2_1 + c_0p1 * (t_u_0_p1_2_0 + t_u_0_p1_p1_0)
    u_0_p2 = u_2.slice(1, 3, 66).slice(2, 8, 136)
    t_u_0_p2 = ct.load(u_0_p2, (x0, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
    t_u_0_p2_0 = ct.extract(t_u_0_p2, (0, 0, 0, 0), (1, 1, 128, 1))
    t_u_0_p2_1 = ct.extract(t_u_0_p2, (0, 0, 0, 1), (1, 1, 128, 1))
    x_tail = x1 - 1
    u_p1 = u.slice(0, 2, 66)
    u_p1_m1 = u_p1.slice(1, 0, 63).slice(2, 8, 136)
    u_p1_2 = u_p1.slice(1, 1, 64)
    u_p1_0 = u_p1_2.slice(2, 8, 136)
    u_p1_0_m1 = u_p1_2.slice(2, 7, 135)
    u_p1_0_p1 = u_p1_2.slice(2, 9, 137)
    u_p1_p1 = u_p1.slice(1, 2, 65)
    u_p1_p1_2 = u_p1_p1.slice(2, 8, 136)
    u_p1_p1_m1 = u_p1_p1.slice(2, 7, 135)
    u_p1_p1_p1 = u_p1_p1.slice(2, 9, 137)
    u_p1_p2 = u_p1.slice(1, 3, 66).slice(2, 8, 136)
    out0_at_0 = out_2.slice(1, 1, 64)
    acc0_3 = acc0
    acc1 = c_0p1 * t_u_0_0_0
    acc0_4 = acc0_2
    acc1_2 = c_0p1 * t_u_0_0_1
    acc0_5 = v + c_0p1 * t_u_0_p2_0
    acc1_3 = c_0p1 * t_u_0_p1_2_0
    acc0_6 = v_2 + c_0p1 * t_u_0_p2_1
    acc1_4 = c_0p1 * t_u_0_p1_2_1
    for x in range(x0, x_tail):
        t_u_p1_m1 = ct.load(u_p1_m1, (x, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
        t_u_p1_m1_0 = ct.extract(t_u_p1_m1, (0, 0, 0, 0), (1, 1, 128, 1))
        t_u_p1_m1_1 = ct.extract(t_u_p1_m1, (0, 0, 0, 1), (1, 1, 128, 1))
        t_u_p1_0 = ct.load(u_p1_0, (x, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
        t_u_p1_0_0 = ct.extract(t_u_p1_0, (0, 0, 0, 0), (1, 1, 128, 1))
        t_u_p1_0_m1 = ct.load(u_p1_0_m1, (x, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
        t_u_p1_0_m1_1 = ct.extract(t_u_p1_0_m1, (0, 0, 0, 1), (1, 1, 128, 1))
        t_u_p1_0_1 = ct.extract(t_u_p1_0, (0, 0, 0, 1), (1, 1, 128, 1))
        t_u_p1_0_p1 = ct.load(u_p1_0_p1, (x, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
        t_u_p1_0_p1_0 = ct.extract(t_u_p1_0_p1, (0, 0, 0, 0), (1, 1, 128, 1))
        t_u_p1_p1_2 = ct.load(u_p1_p1_2, (x, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
        t_u_p1_p1_2_0 = ct.extract(t_u_p1_p1_2, (0, 0, 0, 0), (1, 1, 128, 1))
        acc0_7 = acc1 + c_0p1 * t_u_p1_m1_0 + c_0p4 * t_u_p1_0_0 + c_0p1 * (t_u_p1_0_m1_1 + t_u_p1_0_1) + c_0p1 * t_u_p1_p1_2_0
        t_u_p1_p1_2_1 = ct.extract(t_u_p1_p1_2, (0, 0, 0, 1), (1, 1, 128, 1))
        acc0_8 = acc1_2 + c_0p1 * t_u_p1_m1_1 + c_0p4 * t_u_p1_0_1 + c_0p1 * (t_u_p1_0_0 + t_u_p1_0_p1_0) + c_0p1 * t_u_p1_p1_2_1
        t_u_p1_p1_m1 = ct.load(u_p1_p1_m1, (x, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
        t_u_p1_p1_m1_1 = ct.extract(t_u_p1_p1_m1, (0, 0, 0, 1), (1, 1, 128, 1))
        t_u_p1_p1_p1 = ct.load(u_p1_p1_p1, (x, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
        t_u_p1_p1_p1_0 = ct.extract(t_u_p1_p1_p1, (0, 0, 0, 0), (1, 1, 128, 1))
        t_u_p1_p2 = ct.load(u_p1_p2, (x, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
        t_u_p1_p2_0 = ct.extract(t_u_p1_p2, (0, 0, 0, 0), (1, 1, 128, 1))
        acc0_9 = acc1_3 + c_0p1 * t_u_p1_0_0 + c_0p4 * t_u_p1_p1_2_0 + c_0p1 * (t_u_p1_p1_m1_1 + t_u_p1_p1_2_1) + c_0p1 * t_u_p1_p2_0
        t_u_p1_p2_1 = ct.extract(t_u_p1_p2, (0, 0, 0, 1), (1, 1, 128, 1))
        acc0_10 = acc1_4 + c_0p1 * t_u_p1_0_1 + c_0p4 * t_u_p1_p1_2_1 + c_0p1 * (t_u_p1_p1_2_0 + t_u_p1_p1_p1_0) + c_0p1 * t_u_p1_p2_1
        ct.store(out, (x, i, bz), ct.reshape(ct.cat((acc0_3 + c_0p1 * t_u_p1_0_0, acc0_4 + c_0p1 * t_u_p1_0_1), 3), (1, 1, 256)), check_bounds=False, allow_tma=False)
        row = ct.reshape(ct.cat((acc0_5 + c_0p1 * t_u_p1_p1_2_0, acc0_6 + c_0p1 * t_u_p1_p1_2_1), 3), (1, 1, 256))
        ct.store(out0_at_0, (x, i, bz), row, check_bounds=False, allow_tma=False)
        next_acc0_3 = acc0_7
        next_acc1 = c_0p1 * t_u_p1_0_0
        next_acc0_4 = acc0_8
        next_acc1_2 = c_0p1 * t_u_p1_0_1
        next_acc0_5 = acc0_9
        next_acc1_3 = c_0p1 * t_u_p1_p1_2_0
        next_acc0_6 = acc0_10
        next_acc1_4 = c_0p1 * t_u_p1_p1_2_1
        acc0_3 = next_acc0_3
        acc1 = next_acc1
        acc0_4 = next_acc0_4
        acc1_2 = next_acc1_2
        acc0_5 = next_acc0_5
        acc1_3 = next_acc1_3
        acc0_6 = next_acc0_6
        acc1_4 = next_acc1_4
    t_u_p1_0_2 = ct.load(u_p1_0, (x_tail, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
    t_u_p1_0_2_0 = ct.extract(t_u_p1_0_2, (0, 0, 0, 0), (1, 1, 128, 1))
    t_u_p1_0_2_1 = ct.extract(t_u_p1_0_2, (0, 0, 0, 1), (1, 1, 128, 1))
    t_u_p1_p1_2_2 = ct.load(u_p1_p1_2, (x_tail, i, bz, 0), (1, 1, 128, 2), check_bounds=False, allow_tma=False)
    t_u_p1_p1_2_2_0 = ct.extract(t_u_p1_p1_2_2, (0, 0, 0, 0), (1, 1, 128, 1))
    t_u_p1_p1_2_2_1 = ct.extract(t_u_p1_p1_2_2, (0, 0, 0, 1), (1, 1, 128, 1))
    row_2 = ct.reshape(ct.cat((acc0_3 + c_0p1 * t_u_p1_0_2_0, acc0_4 + c_0p1 * t_u_p1_0_2_1), 3), (1, 1, 256))
    ct.store(out, (x_tail, i, bz), row_2, check_bounds=False, allow_tma=False)
    row_3 = ct.reshape(ct.cat((acc0_5 + c_0p1 * t_u_p1_p1_2_2_0, acc0_6 + c_0p1 * t_u_p1_p1_2_2_1), 3), (1, 1, 256))
    ct.store(out0_at_0, (x_tail, i, bz), row_3, check_bounds=False, allow_tma=False)


def launch_star(stream, u, out):
    """Enqueue one sweep on a stream; arrays are CuPy's, fields start at their first halo cell."""
    import cupy

    u = cupy.ndarray((66, 66, 144, 2), u.dtype, u.data, (152064, 2304, 16, 8))
    grid = (1, 32, 2)
    ct.launch(stream, grid, star, (u, out, out,))
