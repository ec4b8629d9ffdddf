"""Stencil wave on any shape float32 cells.

Schedule: shifted (1,128), latency 2, dynamic, source.
Fields are full arrays with halo and padding; outputs are views of the interior.
"""

import cuda.tile as ct


@ct.kernel
def wave(p, p_prev, vel, out, dt):
    bz = ct.bid(0)
    bx = ct.bid(1)
    nx = out.shape[0]
    nz = out.shape[1]
    cover_z = ct.cdiv(nz, 128) * 128
    view = p.slice(0, 1, 1 + nx)
    p_0 = view.slice(1, 32, 32 + cover_z)
    t_p_0 = ct.load(p_0, (bx, bz), (1, 128), check_bounds=False, latency=2, allow_tma=False)
    p_prev_0 = p_prev.slice(0, 1, 1 + nx).slice(1, 32, 32 + cover_z)
    t_p_prev_0 = ct.load(p_prev_0, (bx, bz), (1, 128), check_bounds=False, latency=2, allow_tma=False)
    s = ct.bitcast(ct.full((1, 1), dt, dtype=ct.int32), ct.float32)
    vel_0 = vel.slice(0, 1, 1 + nx).slice(1, 32, 32 + cover_z)
    t_vel_0 = ct.load(vel_0, (bx, bz), (1, 128), check_bounds=False, latency=2, allow_tma=False)
    p_m1 = p.slice(0, 0, nx).slice(1, 32, 32 + cover_z)
    t_p_m1 = ct.load(p_m1, (bx, bz), (1, 128), check_bounds=False, latency=2, allow_tma=False)
    p_p1 = p.slice(0, 2, 2 + nx).slice(1, 32, 32 + cover_z)
    t_p_p1 = ct.load(p_p1, (bx, bz), (1, 128), check_bounds=False, latency=2, allow_tma=False)
    p_0_m1 = view.slice(1, 31, 31 + cover_z)
    t_p_0_m1 = ct.load(p_0_m1, (bx, bz), (1, 128), check_bounds=False, latency=2, allow_tma=False)
    p_0_p1 = view.slice(1, 33, 33 + cover_z)
    t_p_0_p1 = ct.load(p_0_p1, (bx, bz), (1, 128), check_bounds=False, latency=2, allow_tma=False)
    v = 2.0 * t_p_0 - t_p_prev_0 + s * s * t_vel_0 * (t_p_m1 + t_p_p1 + t_p_0_m1 + t_p_0_p1 - 4.0 * t_p_0)
    ct.store(out, (bx, bz), v, allow_tma=False)


def launch_wave(stream, p, p_prev, vel, out, dt):
    """Enqueue one sweep on a stream; arrays are CuPy's, fields start at their first halo cell."""
    import numpy

    grid = (ct.cdiv(out.shape[1], 128), ct.cdiv(out.shape[0], 1), 1)
    ct.launch(stream, grid, wave, (p, p_prev, vel, out, int(numpy.float32(dt).view(numpy.int32)),))
