"""The nine rows of the table: names, traffic and operation counts. Their definitions are in
`repro.stencils`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One stencil of the benchmark set.

    Attributes:
        id: its name everywhere: in test ids, tables and plots.
        label: as a reader of the papers knows it.
        function: its name in `repro.stencils`.
        bytes: compulsory bytes a point: every field that is read once, every output once.
        loads: distinct accesses.
        flops: operations a point in the papers' convention (every access times its own coefficient, then
            summed);
            for cns as written.
        slots: double-precision instructions a point when equal partial sums are formed once for all outputs.
    """

    id: str
    label: str
    function: str
    bytes: int
    loads: int
    flops: int
    slots: int


ROWS = {
    row.id: row
    for row in (
        Row("star-7", "7-point star", "star_7", 16, 7, 13, 7),
        Row("star-13", "13-point star", "star_13", 16, 13, 25, 13),
        Row("star-19", "19-point star", "star_19", 16, 19, 37, 19),
        Row("star-25", "25-point star", "star_25", 16, 25, 49, 25),
        Row("box-27", "27-point box", "box_27", 16, 27, 53, 13),
        Row("box-125", "125-point box", "box_125", 16, 125, 249, 41),
        Row("iso3dfd", "iso3dfd, 3 grids", "iso3dfd", 32, 27, 53, 27),
        Row("cond", "cond (max/abs)", "cond", 16, 7, 21, 15),
        Row("cns", "CNS hypterm, 8 in / 5 out", "cns", 104, 144, 358, 204),
    )
}

#: Edge lengths of the cubes: the papers' size, and one several times the L2 of a large GPU.
SIZES = (256, 512)
