"""Tile kernels of a project that has nothing to do with stencils, and the host code that launches them."""

import cuda.tile as ct


@ct.kernel
def axpy(x, y, out, n: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, (i,), ct.load(x, (i,), (n,)) * 2 + ct.load(y, (i,), (n,)))


def root_mean_square(row):
    return ct.sqrt(ct.sum(row * row, 1, keepdims=True) * 0.0078125 + 0.00390625)


@ct.kernel
def normalize(x, out):
    """Rows of 128, divided by their root mean square."""
    i = ct.bid(0)
    row = ct.load(x, (i, 0), (4, 128), check_bounds=False, allow_tma=False)
    ct.store(out, (i, 0), row / root_mean_square(row), check_bounds=False, allow_tma=False)


def launch_axpy(stream, x, y, out):
    ct.launch(stream, (x.size // 256,), axpy, (x, y, out, 256))
