"""Kernels that differ in how many array parameters they have. Only the first array is read."""

import cuda.tile as ct


@ct.kernel
def arrays_2(a0, out):
    ct.store(out, (0, 0, 0), ct.load(a0, (0, 0, 0), (1, 1, 128)))


@ct.kernel
def arrays_4(a0, a1, a2, out):
    ct.store(out, (0, 0, 0), ct.load(a0, (0, 0, 0), (1, 1, 128)))


@ct.kernel
def arrays_5(a0, a1, a2, a3, out):
    ct.store(out, (0, 0, 0), ct.load(a0, (0, 0, 0), (1, 1, 128)))


@ct.kernel
def arrays_16(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, out):
    ct.store(out, (0, 0, 0), ct.load(a0, (0, 0, 0), (1, 1, 128)))
