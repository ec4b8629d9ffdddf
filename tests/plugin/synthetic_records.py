"""Records of a whole run as a device would give them, made from nothing: what tables and figures are drawn from."""

from __future__ import annotations

from math import prod

from repro import opponents
from repro.random_draws import DRAWS
from repro.rows import ROWS, SIZES
from repro.test_ceilings import ELEMENTS
from repro.test_groupings import GROUPS
from repro.test_random import OTHERS
from repro.test_shapes import CASES
from repro.test_steps import STENCILS, steps_of

COPY_RATE = 4.2e9  # bytes a millisecond


def record(module, test, question, variant, ms, *, shape, nbytes, params, run=None, **more):
    """One record; ms None is one that no device timed."""
    row = {
        "kind": "variant", "node": f"repro/{module}.py::{test}[{question}-{variant}]", "module": f"repro/{module}.py",
        "group": question, "outcome": "passed", "question": question, "variant": variant, "baseline": "copy",
        "arch": "sm_90", "toolkit": None, "dtype": "float64", "shape": list(shape), "bytes": nbytes, "params": params,
    }  # fmt: skip
    if variant != "copy":
        row["facts"] = {"registers": 96, "spill_bytes": 0, "instructions": 400, "branches": 8, "schedule": variant}
        row["facts"] |= {"classes": {"LDG.E.128": 12, "STG.E.128": 2}, "tool_set": {"tileiras": "13.5.37"}}
        row["values"] = {"ok": True, "max_rel_err": 2.5e-16, "how": "device", "why": ""}
    if ms is not None:
        times = [ms * (1 + 0.001 * (r % 5)) for r in range(9)]
        row["samples"] = [{"round": r, "place": 0, "ms": t, "used": True} for r, t in enumerate(times)]
        row |= {"run": run or question, "l2": "warm", "dropped": 0, "throttled": False}
    return row | more


FACTORS = {
    "dsl": 1.0,
    "dsl-again": 1.002,
    "arr": 1.6,
    "stream": 1.1,
    "trans": 1.9,
    "published": 2.0,
    "triton": 2.2,
    "cupy": 2.6,
    "jax": 3.4,
}


def nine_rows():
    """Every variant of every row."""
    rows = []
    for i, stencil in enumerate(ROWS):
        for size in SIZES:
            copy = ROWS[stencil].bytes * size**3 / COPY_RATE
            common = {"shape": (size,) * 3, "nbytes": ROWS[stencil].bytes * size**3}
            for n, variant in enumerate(("dsl", "dsl-again", *opponents.ids(stencil, size), "copy")):
                kind = opponents.kind_of(variant)
                ms = copy * (1 if variant == "copy" else FACTORS[kind] * (1.05 + 0.15 * i) * (1 + 0.01 * n * (n > 1)))
                params = {"stencil": stencil, "size": size, "variant": variant, "arch": "sm_90"}
                rows.append(
                    record("test_bricklib", "test_row", f"{stencil}-{size}", variant, ms, params=params, **common)
                )
    return rows


def ceilings():
    amounts = {"copy": 16 * ELEMENTS, "triad": 24 * ELEMENTS, "l2": 1 << 30, "l1": 1 << 34, "fma": 1 << 33}
    rates = {"copy": 4.2e9, "triad": 4.3e9, "l2": 6e9, "l1": 3e10, "fma": 3.3e10}
    rows = []
    for kind, amount in amounts.items():
        row = record(
            "test_ceilings", "test_ceiling", "ceilings", f"ceiling-{kind}", amount / rates[kind], shape=(ELEMENTS,),
            nbytes=16 * ELEMENTS, params={"variant": f"ceiling-{kind}"},
        )  # fmt: skip
        del row["values"]
        row["facts"] = {"schedule": f"ceiling-{kind}", "amount": amount, "unit": "byte"}
        rows.append(row)
    return rows


def others():
    """Steps, shapes, groupings, random expressions and tools."""
    rows = []
    for stencil, (_, _, shape) in STENCILS.items():
        copy = 16 * prod(shape) / COPY_RATE
        for k in steps_of(stencil):
            for variant, ms in (("dsl", copy * (1.05 + 0.15 * (k - 1))), ("copy", copy)):
                params = {"stencil": stencil, "steps": k, "variant": variant}
                question = f"{stencil}-steps-{k}"
                common = {"shape": shape, "nbytes": 16 * prod(shape), "params": params}
                rows.append(record("test_steps", "test_steps", question, variant, ms, **common))
    for n, (case, of) in enumerate(CASES.items()):
        size = 8 if of.dtype == "float64" else 4
        copy = 2 * size * prod(of.shape) / COPY_RATE
        for variant, factor in (("dsl", 1.1 + 0.05 * n), ("shifted", 1.5 + 0.1 * n), ("copy", 1.0)):
            common = {"shape": of.shape, "nbytes": 2 * size * prod(of.shape), "params": {"case": case}}
            row = record("test_shapes", "test_shape", f"shape-{case}", variant, copy * factor, **common)
            rows.append(row | {"dtype": of.dtype})
    for n, variant in enumerate((*GROUPS, "copy")):
        common = {"shape": (512,) * 3, "nbytes": 104 * 512**3, "params": {"variant": variant}}
        rows.append(record("test_groupings", "test_grouping", "cns-groupings", variant, 6.0 - 0.3 * n, **common))
    for n, case in enumerate(DRAWS):
        for m, variant in enumerate(("dsl", *OTHERS, "copy")):
            ms = 0.064 if variant == "copy" else 0.2 * (1 + 0.1 * n) * (1 + 0.2 * m)
            common = {"shape": (256,) * 3, "nbytes": 16 * 256**3, "params": {"case": case, "variant": variant}}
            rows.append(record("test_random", "test_random", f"random-{case}", variant, ms, **common))
    return rows + tools()


def tools():
    """What no device times; a release that is missing and a refused pairing among it."""
    rows = []
    common = {"shape": (512,) * 3, "nbytes": 16 * 512**3, "arch": "sm_120"}
    for n, release in enumerate(("13.2", "13.3", "13.4", "13.5")):
        params = {"stencil": "box-27"}
        row = record("test_tools", "test_stack", "box-27-stacks", f"stack-{release}", None, params=params, **common)
        row["facts"]["instructions"] = 344 + 200 * n
        if release == "13.4":
            row = {k: v for k, v in row.items() if k not in ("facts", "values")}
            row["failure"] = "ToolError: toolkit 13.4 is not installed"
        rows.append(row)
    pairing = "tileiras-13.3-nvvm-13.2-ptxas-13.2"
    params = {"which": "published"}
    row = record("test_tools", "test_pairing", "box-27-pairings-published", pairing, None, params=params, **common)
    del row["facts"], row["values"]
    return [*rows, row | {"failure": "ToolError: tileiras failed with return code 5"}]


def whole_run():
    return [*nine_rows(), *ceilings(), *others()]
