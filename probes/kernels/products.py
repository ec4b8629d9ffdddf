"""Matrix products of half precision."""

import cuda.tile as ct


@ct.kernel
def few_rows(q, k, out, rows: ct.Constant[int]):
    """out = q k^T with `rows` rows of q a block: the narrow side is the M side of the product."""
    i = ct.bid(0)
    some = ct.load(q, (i, 0), (rows, 128))
    keys = ct.transpose(ct.load(k, (0, 0), (64, 128)))
    ct.store(out, (i, 0), ct.mma(some, keys, ct.zeros((rows, 64), ct.float32)))


@ct.kernel
def few_columns(k, q, out, columns: ct.Constant[int]):
    """out = k q with `columns` columns of q a block: the narrow side is the N side."""
    i = ct.bid(0)
    some = ct.load(q, (0, i), (128, columns))
    keys = ct.load(k, (0, 0), (64, 128))
    ct.store(out, (0, i), ct.mma(keys, some, ct.zeros((64, columns), ct.float32)))


@ct.kernel
def gemm(a, b, out, near: ct.Constant[int]):
    """A 64 x 64 tile of a b; `near` is the latency hint of its loads, 0 for none."""
    i, j = ct.bid(0), ct.bid(1)
    total = ct.zeros((64, 64), ct.float32)
    for k in range(ct.num_tiles(a, 1, (64, 64))):
        if near == 0:
            left, right = ct.load(a, (i, k), (64, 64)), ct.load(b, (k, j), (64, 64))
        else:
            left = ct.load(a, (i, k), (64, 64), latency=near)
            right = ct.load(b, (k, j), (64, 64), latency=near)
        total = ct.mma(left, right, total)
    ct.store(out, (i, j), total)


@ct.kernel
def whole_pages(q, k, v, out):
    """out = (q k^T) v over pages of 64 keys in int8, each page converted at once."""
    queries = ct.load(q, (0, 0), (16, 128))
    total = ct.zeros((16, 128), ct.float32)
    for page in range(ct.num_tiles(k, 0, (64, 128))):
        keys = ct.astype(ct.load(k, (page, 0), (64, 128)), ct.float16)
        values = ct.astype(ct.load(v, (page, 0), (64, 128)), ct.float16)
        weights = ct.mma(queries, ct.transpose(keys), ct.zeros((16, 64), ct.float32))
        total = ct.mma(ct.astype(weights, ct.float16), values, total)
    ct.store(out, (0, 0), total)


@ct.kernel
def pieces(q, k, v, out):
    """The same, 32 keys and half of the columns at a time."""
    first, second = ct.load(q, (0, 0), (16, 64)), ct.load(q, (0, 1), (16, 64))
    left, right = ct.zeros((16, 64), ct.float32), ct.zeros((16, 64), ct.float32)
    for part in range(ct.num_tiles(k, 0, (32, 64))):
        keys = ct.astype(ct.load(k, (part, 0), (32, 64)), ct.float16)
        weights = ct.mma(first, ct.transpose(keys), ct.zeros((16, 32), ct.float32))
        keys = ct.astype(ct.load(k, (part, 1), (32, 64)), ct.float16)
        weights = ct.astype(ct.mma(second, ct.transpose(keys), weights), ct.float16)
        left = ct.mma(weights, ct.astype(ct.load(v, (part, 0), (32, 64)), ct.float16), left)
        right = ct.mma(weights, ct.astype(ct.load(v, (part, 1), (32, 64)), ct.float16), right)
    ct.store(out, (0, 0), left)
    ct.store(out, (0, 1), right)


@ct.kernel
def gemm_loads(a, b, out, tma: ct.Constant[bool]):
    """A 64 x 64 tile of a b, its loads by TMA or through the cache."""
    i, j = ct.bid(0), ct.bid(1)
    total = ct.zeros((64, 64), ct.float32)
    for k in range(ct.num_tiles(a, 1, (64, 64))):
        left = ct.load(a, (i, k), (64, 64), allow_tma=tma)
        total = ct.mma(left, ct.load(b, (k, j), (64, 64), allow_tma=tma), total)
    ct.store(out, (i, j), total)
