"""Stencil star on 8x9x300 float64 cells.

Schedule: shifted (1,2,64), occupancy 4, source.
Fields are full arrays with halo and padding; outputs are views of the interior.
"""

from typing import Annotated

import cuda.tile as ct

Static = Annotated[
    ct.Array, ct.ArrayAnnotation(static_shape_dims=(0, 1, 2), static_stride_dims=(0, 1, 2))
]


@ct.kernel(occupancy=4)
def star(u: Static, out: Static):
    c_0p1 = ct.bitcast(ct.full((1, 1, 1), 4591870180066957722, dtype=ct.int64), ct.float64)
    c_0p4 = ct.bitcast(ct.full((1, 1, 1), 4600877379321698714, dtype=ct.int64), ct.float64)
    bz = ct.bid(0)
    by = ct.bid(1)
    bx = ct.bid(2)
    view = u.slice(0, 1, 9)
    view_2 = view.slice(1, 1, 11)
    u_0_0 = view_2.slice(2, 16, 336)
    t_u_0_0 = ct.load(u_0_0, (bx, by, bz), (1, 2, 64), check_bounds=False, allow_tma=False)
    u_m1_0 = u.slice(0, 0, 8).slice(1, 1, 11).slice(2, 16, 336)
    t_u_m1_0 = ct.load(u_m1_0, (bx, by, bz), (1, 2, 64), check_bounds=False, allow_tma=False)
    u_p1_0 = u.slice(0, 2, 10).slice(1, 1, 11).slice(2, 16, 336)
    t_u_p1_0 = ct.load(u_p1_0, (bx, by, bz), (1, 2, 64), check_bounds=False, allow_tma=False)
    u_0_m1 = view.slice(1, 0, 10).slice(2, 16, 336)
    t_u_0_m1 = ct.load(u_0_m1, (bx, by, bz), (1, 2, 64), check_bounds=False, allow_tma=False)
    u_0_p1 = view.slice(1, 2, 12).slice(2, 16, 336)
    t_u_0_p1 = ct.load(u_0_p1, (bx, by, bz), (1, 2, 64), check_bounds=False, allow_tma=False)
    u_0_0_m1 = view_2.slice(2, 15, 335)
    t_u_0_0_m1 = ct.load(u_0_0_m1, (bx, by, bz), (1, 2, 64), check_bounds=False, allow_tma=False)
    u_0_0_p1 = view_2.slice(2, 17, 337)
    t_u_0_0_p1 = ct.load(u_0_0_p1, (bx, by, bz), (1, 2, 64), check_bounds=False, allow_tma=False)
    ct.store(out, (bx, by, bz), c_0p4 * t_u_0_0 + c_0p1 * (t_u_m1_0 + t_u_p1_0 + t_u_0_m1 + t_u_0_p1 + t_u_0_0_m1 + t_u_0_0_p1), allow_tma=False)


def launch_star(stream, u, out):
    """Enqueue one sweep on a stream; arrays are CuPy's, fields start at their first halo cell."""
    import cupy

    u = cupy.ndarray((10, 12, 337), u.dtype, u.data, (28160, 2560, 8))
    grid = (5, 5, 8)
    ct.launch(stream, grid, star, (u, out,))
