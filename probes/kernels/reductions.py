"""Reductions of a block, in chains that make their latency visible, and of tiles in several layouts."""

import cuda.tile as ct

SMALL = 0.00000095367431640625  # 2^-20, which float32 holds exactly


@ct.kernel
def sums(u, out, n: ct.Constant[int], trips: ct.Constant[int]):
    t = ct.load(u, (ct.bid(0),), (n,))
    for _ in range(trips):
        t = t + ct.sum(t) * SMALL
    ct.store(out, (ct.bid(0),), t)


@ct.kernel
def maxima(u, out, n: ct.Constant[int], trips: ct.Constant[int]):
    t = ct.load(u, (ct.bid(0),), (n,))
    for _ in range(trips):
        t = t - ct.max(t) * SMALL
    ct.store(out, (ct.bid(0),), t)


@ct.kernel
def maxima_nan(u, out, n: ct.Constant[int], trips: ct.Constant[int]):
    t = ct.load(u, (ct.bid(0),), (n,))
    for _ in range(trips):
        t = t - ct.max(t, propagate_nan=True) * SMALL
    ct.store(out, (ct.bid(0),), t)


@ct.kernel
def places(u, out, n: ct.Constant[int], trips: ct.Constant[int]):
    t = ct.load(u, (ct.bid(0),), (n,))
    for _ in range(trips):
        t = t - ct.astype(ct.argmax(t, 0), ct.float32) * SMALL
    ct.store(out, (ct.bid(0),), t)


@ct.kernel
def places_nan(u, out, n: ct.Constant[int], trips: ct.Constant[int]):
    t = ct.load(u, (ct.bid(0),), (n,))
    for _ in range(trips):
        t = t - ct.astype(ct.argmax(t, 0, propagate_nan=True), ct.float32) * SMALL
    ct.store(out, (ct.bid(0),), t)


def larger(value, place, other, other_place):
    """The larger pair, ties to the smaller place."""
    keep = (value > other) | ((value == other) & (place < other_place))
    return ct.where(keep, value, other), ct.where(keep, place, other_place)


@ct.kernel
def pairs(u, out, n: ct.Constant[int], trips: ct.Constant[int]):
    t = ct.load(u, (ct.bid(0),), (n,))
    index = ct.arange(n, dtype=ct.int32)
    for _ in range(trips):
        _, place = ct.reduce((t, index), 0, larger, (-3.0e38, 0))
        t = t - ct.astype(place, ct.float32) * SMALL
    ct.store(out, (ct.bid(0),), t)


@ct.kernel
def rows_last(u, out):
    """Sums of rows, the reduced axis contiguous."""
    i = ct.bid(0)
    ct.store(out, (i,), ct.sum(ct.load(u, (i, 0), (64, 128)), 1))


@ct.kernel
def rows_first(ut, out):
    """The same sums from the transposed array: the reduced axis comes first."""
    i = ct.bid(0)
    ct.store(out, (i,), ct.sum(ct.load(ut, (0, i), (128, 64)), 0))


@ct.kernel
def rows_third(u, out):
    """The same sums of a 3-D tile over its third axis."""
    i = ct.bid(0)
    cube = ct.reshape(ct.load(u, (i, 0), (64, 128)), (8, 8, 128))
    ct.store(out, (i,), ct.reshape(ct.sum(cube, 2), (64,)))


@ct.kernel
def rows_kept(u, out):
    """The same with the reduced axis kept as an axis of extent 1."""
    i = ct.bid(0)
    ct.store(out, (i,), ct.reshape(ct.sum(ct.load(u, (i, 0), (64, 128)), 1, keepdims=True), (64,)))
