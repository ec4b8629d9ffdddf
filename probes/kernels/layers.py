"""A damped wave: u and v are two time levels, eta the damping, zero outside the absorbing layers."""

import cuda.tile as ct


def shifted(u, x, y, z, dx: int, dy: int, dz: int):
    """The tile of u that many cells away; u has a halo of (2, 2, 32) cells."""
    view = u.slice(0, 2 + dx, 2 + dx + u.shape[0] - 4).slice(1, 2 + dy, 2 + dy + u.shape[1] - 4)
    view = view.slice(2, 32 + dz, 32 + dz + u.shape[2] - 64)
    return ct.load(view, (x, y, z), (1, 4, 32), check_bounds=False, allow_tma=False)


def undamped(u, v, x, y, z):
    """2 u + lap(u) / 8, the older level, and u itself; second differences of fourth order."""
    here = shifted(u, x, y, z, 0, 0, 0)
    old = ct.load(v, (x, y, z), (1, 4, 32), check_bounds=False, allow_tma=False)
    near = shifted(u, x, y, z, -1, 0, 0) + shifted(u, x, y, z, 1, 0, 0) + shifted(u, x, y, z, 0, -1, 0)
    near = near + shifted(u, x, y, z, 0, 1, 0) + shifted(u, x, y, z, 0, 0, -1) + shifted(u, x, y, z, 0, 0, 1)
    far = shifted(u, x, y, z, -2, 0, 0) + shifted(u, x, y, z, 2, 0, 0) + shifted(u, x, y, z, 0, -2, 0)
    far = far + shifted(u, x, y, z, 0, 2, 0) + shifted(u, x, y, z, 0, 0, -2) + shifted(u, x, y, z, 0, 0, 2)
    return 2.0 * here + 0.125 * (near - 0.0625 * far - 5.625 * here), old, here


@ct.kernel
def inner(u, v, eta, out, bx: ct.Constant[int], by: ct.Constant[int], bz: ct.Constant[int]):
    """Where there is no damping."""
    z, y, x = ct.bid(0) + bz, ct.bid(1) + by, ct.bid(2) + bx
    new, old, _ = undamped(u, v, x, y, z)
    ct.store(out, (x, y, z), new - old, check_bounds=False, allow_tma=False)


@ct.kernel
def layer(u, v, eta, out, bx: ct.Constant[int], by: ct.Constant[int], bz: ct.Constant[int]):
    """Where there is."""
    z, y, x = ct.bid(0) + bz, ct.bid(1) + by, ct.bid(2) + bx
    new, old, here = undamped(u, v, x, y, z)
    e = ct.load(eta, (x, y, z), (1, 4, 32), check_bounds=False, allow_tma=False)
    damped = (new - e * e * here + 2.0 * e * here - old) / (1.0 + 2.0 * e)
    ct.store(out, (x, y, z), damped, check_bounds=False, allow_tma=False)


@ct.kernel
def branch(u, v, eta, out, wx: ct.Constant[int], wy: ct.Constant[int], wz: ct.Constant[int]):
    """Both, chosen block by block; the layers are wx, wy and wz blocks wide."""
    z, y, x = ct.bid(0), ct.bid(1), ct.bid(2)
    new, old, here = undamped(u, v, x, y, z)
    within = (x >= wx) & (x < ct.num_blocks(2) - wx) & (y >= wy) & (y < ct.num_blocks(1) - wy)
    if within & (z >= wz) & (z < ct.num_blocks(0) - wz):
        ct.store(out, (x, y, z), new - old, check_bounds=False, allow_tma=False)
    else:
        e = ct.load(eta, (x, y, z), (1, 4, 32), check_bounds=False, allow_tma=False)
        damped = (new - e * e * here + 2.0 * e * here - old) / (1.0 + 2.0 * e)
        ct.store(out, (x, y, z), damped, check_bounds=False, allow_tma=False)
