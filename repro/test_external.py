"""bricklib's own programs, as the user has built them: ``pytest repro/ --gpu --bricklib DIR``.

They time themselves, so they take no part in our rounds; the table puts the medians beside each other and says so.
"""

from __future__ import annotations

import time

import pytest

from repro.external import ExternalError, Source, sources
from repro.rows import ROWS
from stencil_dsl.testing.fixtures import PROPERTY
from stencil_dsl.testing.options import settings


def pytest_generate_tests(metafunc):
    folder = metafunc.config.getoption("bricklib")
    try:
        found = sources(metafunc.config.invocation_params.dir / folder)
    except ExternalError as error:
        raise pytest.UsageError(f"--bricklib: {error}") from error
    metafunc.parametrize("source", found, ids=[source.id for source in found])


def test_program(source: Source, request):
    row, chosen = ROWS[source.stencil], settings(request.config)
    common = {
        "kind": "variant",
        "node": request.node.nodeid,
        "module": request.node.nodeid.split("::")[0],
        "group": f"bricklib({source.id})",
        "question": source.id,
        "shape": [source.size] * 3,
        "dtype": "float64",
        "bytes": row.bytes * source.size**3,
        "baseline": None,
        "arch": chosen.archs[0],
        "toolkit": None,
        "params": {"stencil": source.stencil, "size": source.size},
    }
    started = time.time()
    try:
        found = source.times(chosen.rounds)
    except ExternalError as error:
        failed = common | {"variant": "bricklib", "failure": f"ExternalError: {error}"}
        request.node.user_properties.append((PROPERTY, failed))
        pytest.fail(str(error), pytrace=False)
    origin = "its own program" if source.program else "CSV file"
    for variant, times in found.items():
        samples = [{"round": n, "place": 0, "ms": ms, "used": True} for n, ms in enumerate(times)]
        record = {"variant": variant, "samples": samples, "run": f"{source.id}@{started:.3f}"}
        record["facts"] = {"schedule": f"timed by {origin}"}
        request.node.user_properties.append((PROPERTY, common | record))
