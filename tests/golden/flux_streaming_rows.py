"""Stencil flux on 16x12x128 float64 cells.

Schedule: streaming (1,4,32), rows 1, chunk 8, unroll 2, fast.
Fields are full arrays with halo and padding; outputs are views of the interior.
"""

from typing import Annotated

import cuda.tile as ct

Static = Annotated[
    ct.Array, ct.ArrayAnnotation(static_shape_dims=(0, 1, 2), static_stride_dims=(0, 1, 2))
]


@ct.kernel(opt_level=2)
def flux(rho: Static, q: Static, flux_0_out_0: Static, flux_0_out: Static, flux_1_out_0: Static, flux_1_out: Static):
    bz = ct.bid(0)
    by = ct.bid(1)
    bx = ct.bid(2)
    x0 = bx * 8
    x1 = x0 + 8
    x_tail = x1 - 2
    rho_m1_0 = rho.slice(0, 0, 16).slice(1, 0, 12).slice(2, 0, 128)
    q_m1_0 = q.slice(0, 0, 16).slice(1, 0, 12).slice(2, 0, 128)
    rho_p1 = rho.slice(0, 2, 18)
    rho_p1_0 = rho_p1.slice(1, 0, 12).slice(2, 0, 128)
    q_p1_0 = q.slice(0, 2, 18).slice(1, 0, 12).slice(2, 0, 128)
    rho_2 = rho.slice(0, 1, 17)
    rho_0_p1 = rho_2.slice(1, 1, 13).slice(2, 0, 128)
    rho_0_0 = rho_2.slice(1, 0, 12).slice(2, 0, 128)
    q_0_0 = q.slice(0, 1, 17).slice(1, 0, 12).slice(2, 0, 128)
    rho_p2_0 = rho.slice(0, 3, 18).slice(1, 0, 12).slice(2, 0, 128)
    q_p2_0 = q.slice(0, 3, 18).slice(1, 0, 12).slice(2, 0, 128)
    rho_p1_p1 = rho_p1.slice(1, 1, 13).slice(2, 0, 128)
    out0_at = flux_0_out.slice(0, 1, 16)
    out1_at = flux_1_out.slice(0, 1, 16)
    for x in range(x0, x_tail, 2):
        t_rho_m1_0 = ct.load(rho_m1_0, (x, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
        t_q_m1_0 = ct.load(q_m1_0, (x, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
        t_rho_p1_0 = ct.load(rho_p1_0, (x, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
        t_q_p1_0 = ct.load(q_p1_0, (x, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
        t_rho_0_p1 = ct.load(rho_0_p1, (x, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
        ct.store(flux_0_out_0, (x, by, bz), 0.5 * (t_rho_m1_0 * t_q_m1_0) + -0.5 * (t_rho_p1_0 * t_q_p1_0), check_bounds=False, allow_tma=False)
        ct.store(flux_1_out_0, (x, by, bz), ct.sqrt(ct.abs(t_rho_0_p1) + 1.5), check_bounds=False, allow_tma=False)
        t_rho_0_0 = ct.load(rho_0_0, (x, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
        t_q_0_0 = ct.load(q_0_0, (x, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
        t_rho_p2_0 = ct.load(rho_p2_0, (x, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
        t_q_p2_0 = ct.load(q_p2_0, (x, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
        t_rho_p1_p1 = ct.load(rho_p1_p1, (x, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
        ct.store(out0_at, (x, by, bz), 0.5 * (t_rho_0_0 * t_q_0_0) + -0.5 * (t_rho_p2_0 * t_q_p2_0), check_bounds=False, allow_tma=False)
        ct.store(out1_at, (x, by, bz), ct.sqrt(ct.abs(t_rho_p1_p1) + 1.5), check_bounds=False, allow_tma=False)
    t_rho_m1_0_2 = ct.load(rho_m1_0, (x_tail, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
    t_q_m1_0_2 = ct.load(q_m1_0, (x_tail, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
    t_rho_p1_0_2 = ct.load(rho_p1_0, (x_tail, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
    t_q_p1_0_2 = ct.load(q_p1_0, (x_tail, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
    t_rho_0_p1_2 = ct.load(rho_0_p1, (x_tail, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
    ct.store(flux_0_out_0, (x_tail, by, bz), 0.5 * (t_rho_m1_0_2 * t_q_m1_0_2) + -0.5 * (t_rho_p1_0_2 * t_q_p1_0_2), check_bounds=False, allow_tma=False)
    ct.store(flux_1_out_0, (x_tail, by, bz), ct.sqrt(ct.abs(t_rho_0_p1_2) + 1.5), check_bounds=False, allow_tma=False)
    t_rho_0_0_2 = ct.load(rho_0_0, (x_tail, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
    t_q_0_0_2 = ct.load(q_0_0, (x_tail, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
    t_rho_p2_0_2 = ct.load(rho_p2_0, (x_tail, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
    t_q_p2_0_2 = ct.load(q_p2_0, (x_tail, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
    t_rho_p1_p1_2 = ct.load(rho_p1_p1, (x_tail, by, bz), (1, 4, 32), check_bounds=False, allow_tma=False)
    ct.store(out0_at, (x_tail, by, bz), 0.5 * (t_rho_0_0_2 * t_q_0_0_2) + -0.5 * (t_rho_p2_0_2 * t_q_p2_0_2), check_bounds=False, allow_tma=False)
    ct.store(out1_at, (x_tail, by, bz), ct.sqrt(ct.abs(t_rho_p1_p1_2) + 1.5), check_bounds=False, allow_tma=False)


def launch_flux(stream, rho, q, flux_0_out, flux_1_out):
    """Enqueue one sweep on a stream; arrays are CuPy's, fields start at their first halo cell."""
    import cupy

    rho = cupy.ndarray((18, 13, 128), rho.dtype, rho.data, (13312, 1024, 8))
    q = cupy.ndarray((18, 13, 128), q.dtype, q.data, (13312, 1024, 8))
    grid = (4, 3, 2)
    ct.launch(stream, grid, flux, (rho, q, flux_0_out, flux_0_out, flux_1_out, flux_1_out,))
