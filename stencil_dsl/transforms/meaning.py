"""The NumPy meaning of every operation that may stand in a stencil body.

One table for all who compute with numbers on this side of the compiler (constant folding, the reference), so
that they cannot disagree. Functions are given by name, so that reading the table does not import NumPy.
"""

from __future__ import annotations

# Operation name -> NumPy function of as many arguments as the operation has operands.
NUMPY_FUNCTION: dict[str, str] = {
    "arith.addf": "add",
    "arith.subf": "subtract",
    "arith.mulf": "multiply",
    "arith.divf": "divide",
    "arith.negf": "negative",
    "arith.maximumf": "maximum",
    "arith.minimumf": "minimum",
    "arith.select": "where",
    "arith.andi": "logical_and",
    "arith.ori": "logical_or",
    "arith.xori": "logical_xor",
    "math.absf": "absolute",
    "math.sqrt": "sqrt",
    "math.exp": "exp",
    "math.log": "log",
    "math.sin": "sin",
    "math.cos": "cos",
    "math.tan": "tan",
    "math.tanh": "tanh",
    "math.floor": "floor",
    "math.powf": "power",
}

# Predicate of arith.cmpf -> NumPy function. Only those whose answer for NaN is NumPy's (and Python's):
# comparisons with NaN are false, except "not equal".
NUMPY_COMPARISON: dict[str, str] = {
    "oeq": "equal",
    "une": "not_equal",
    "olt": "less",
    "ole": "less_equal",
    "ogt": "greater",
    "oge": "greater_equal",
}
