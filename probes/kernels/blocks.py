"""An elementwise kernel for tiles of any length."""

import cuda.tile as ct


@ct.kernel
def double(u, out, n: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, (i,), ct.load(u, (i,), (n,)) * 2)
