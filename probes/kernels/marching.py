"""Loops over planes with loads and stores: what orders them, and what is carried."""

import cuda.tile as ct


@ct.kernel
def by_induction(u, out, out_1, planes: ct.Constant[int]):
    """Every store's index is the loop's variable, and each row of output is a parameter of its own."""
    z, y, x0 = ct.bid(0), ct.bid(1) * 2, ct.bid(2) * planes
    second = out_1.slice(1, 1, out.shape[1])
    after = u.slice(0, 1, u.shape[0])
    for x in range(x0, x0 + planes):
        a = ct.load(after, (x, y, z), (1, 1, 128), check_bounds=False)
        b = ct.load(after, (x, y + 1, z), (1, 1, 128), check_bounds=False)
        ct.store(out, (x, y, z), a + b, check_bounds=False)
        ct.store(second, (x, y, z), a - b, check_bounds=False)


@ct.kernel
def shifted_index(u, out, out_1, planes: ct.Constant[int]):
    """The loop runs over input planes: a store's index is the variable less one."""
    z, y, x0 = ct.bid(0), ct.bid(1) * 2, ct.bid(2) * planes
    second = out_1.slice(1, 1, out.shape[1])
    for x in range(x0 + 1, x0 + planes + 1):
        a = ct.load(u, (x, y, z), (1, 1, 128), check_bounds=False)
        b = ct.load(u, (x, y + 1, z), (1, 1, 128), check_bounds=False)
        ct.store(out, (x - 1, y, z), a + b, check_bounds=False)
        ct.store(second, (x - 1, y, z), a - b, check_bounds=False)


@ct.kernel
def one_output(u, out, planes: ct.Constant[int]):
    """Both rows are stored through one parameter."""
    z, y, x0 = ct.bid(0), ct.bid(1) * 2, ct.bid(2) * planes
    after = u.slice(0, 1, u.shape[0])
    for x in range(x0, x0 + planes):
        a = ct.load(after, (x, y, z), (1, 1, 128), check_bounds=False)
        b = ct.load(after, (x, y + 1, z), (1, 1, 128), check_bounds=False)
        ct.store(out, (x, y, z), a + b, check_bounds=False)
        ct.store(out, (x, y + 1, z), a - b, check_bounds=False)


@ct.kernel
def computed_queue(u, out, planes: ct.Constant[int]):
    """A rotating queue of computed tiles."""
    z, x0 = ct.bid(0), ct.bid(1) * planes
    q0 = ct.maximum(ct.load(u, (x0, z), (1, 128), check_bounds=False), 0.0)
    q1 = ct.maximum(ct.load(u, (x0 + 1, z), (1, 128), check_bounds=False), 0.0)
    for x in range(x0, x0 + planes):
        d = ct.maximum(ct.load(u, (x + 2, z), (1, 128), check_bounds=False), 0.0)
        ct.store(out, (x, z), q0 + 2 * q1 + 4 * d, check_bounds=False)
        q0 = q1
        q1 = d


@ct.kernel
def raw_queue(u, out, planes: ct.Constant[int]):
    """A rotating queue of loads; the function is applied when they are used."""
    z, x0 = ct.bid(0), ct.bid(1) * planes
    q0 = ct.load(u, (x0, z), (1, 128), check_bounds=False)
    q1 = ct.load(u, (x0 + 1, z), (1, 128), check_bounds=False)
    for x in range(x0, x0 + planes):
        d = ct.load(u, (x + 2, z), (1, 128), check_bounds=False)
        total = ct.maximum(q0, 0.0) + 2 * ct.maximum(q1, 0.0) + 4 * ct.maximum(d, 0.0)
        ct.store(out, (x, z), total, check_bounds=False)
        q0 = q1
        q1 = d


@ct.kernel
def pair_queue(u, out, planes: ct.Constant[int]):
    """A rotating queue of loads of pairs, of which one lane at a time is used."""
    z, x0 = ct.bid(0), ct.bid(1) * planes
    q0 = ct.reshape(ct.load(u, (x0, z), (1, 256), check_bounds=False), (1, 128, 2))
    q1 = ct.reshape(ct.load(u, (x0 + 1, z), (1, 256), check_bounds=False), (1, 128, 2))
    for x in range(x0, x0 + planes):
        d = ct.reshape(ct.load(u, (x + 2, z), (1, 256), check_bounds=False), (1, 128, 2))
        a0 = ct.maximum(ct.extract(q0, (0, 0, 0), (1, 128, 1)), 0.0)
        a1 = ct.maximum(ct.extract(q1, (0, 0, 0), (1, 128, 1)), 0.0)
        a2 = ct.maximum(ct.extract(d, (0, 0, 0), (1, 128, 1)), 0.0)
        b0 = ct.maximum(ct.extract(q0, (0, 0, 1), (1, 128, 1)), 0.0)
        b1 = ct.maximum(ct.extract(q1, (0, 0, 1), (1, 128, 1)), 0.0)
        b2 = ct.maximum(ct.extract(d, (0, 0, 1), (1, 128, 1)), 0.0)
        both = ct.cat((a0 + 2 * a1 + 4 * a2, b0 + 2 * b1 + 4 * b2), 2)
        ct.store(out, (x, z), ct.reshape(both, (1, 256)), check_bounds=False)
        q0 = q1
        q1 = d


@ct.kernel
def copy_tiles(u, out, tma: ct.Constant[bool]):
    """Tiles of 64 x 64."""
    i, j = ct.bid(0), ct.bid(1)
    ct.store(out, (i, j), ct.load(u, (i, j), (64, 64), allow_tma=tma), allow_tma=tma)
