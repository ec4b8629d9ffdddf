"""One computation in several styles."""

import cuda.tile as ct


def bent(x, scale):
    return ct.where(x > 0, x, x * scale)


@ct.kernel
def written_out(u, v, out):
    i = ct.bid(0)
    a, b = ct.load(u, (i,), (128,)), ct.load(v, (i,), (128,))
    ct.store(out, (i,), ct.where(a > 0, a, a * 0.25) + ct.where(b > 0, b, b * 0.25))


@ct.kernel
def helper(u, v, out):
    i = ct.bid(0)
    ct.store(out, (i,), bent(ct.load(u, (i,), (128,)), 0.25) + bent(ct.load(v, (i,), (128,)), 0.25))


@ct.kernel
def closure(u, v, out):
    i = ct.bid(0)
    scale = 0.25

    def own(x):
        return ct.where(x > 0, x, x * scale)

    ct.store(out, (i,), own(ct.load(u, (i,), (128,))) + own(ct.load(v, (i,), (128,))))


@ct.kernel
def unit_axes(u, v, out):
    i = ct.bid(0)
    a = ct.reshape(ct.load(u, (i,), (128,)), (128, 1))
    b = ct.reshape(ct.load(v, (i,), (128,)), (1, 128, 1))
    total = ct.reshape(ct.where(a > 0, a, a * 0.25), (1, 128, 1)) + ct.where(b > 0, b, b * 0.25)
    ct.store(out, (i,), ct.reshape(total, (128,)))
