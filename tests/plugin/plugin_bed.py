"""A pytester folder with a fake device and a test module that asks a question of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

QUESTIONS = '''
import os
import time
from pathlib import Path

import pytest

from stencil_dsl.errors import ToolchainError
from stencil_dsl.testing import CallableVariant, CopyVariant, Prepared, Question, RandomField, asks


class Compiled(CallableVariant):
    """Counts compilations and checks values without a device."""

    def compile_facts(self, target):
        with Path("compiled.log").open("a") as file:
            file.write(f"{self.id} {target.arch} {target.toolkit}\\n")
        if self.id == "broken":
            raise ToolchainError("no such instruction", command="tileiras x.bc")
        return dict(self.facts) | {"tool_set": {"tileiras": target.toolkit or "13.5"}}

    def validate(self, target):
        bad = self.id == "wrong"
        return {"ok": not bad, "max_rel_err": 0.5 if bad else 0.0, "how": "fake", "why": "differs" if bad
        else ""}


def doubled(factor, ms, label, fault=None):
    def make(bench):
        if fault == "exit":
            os._exit(11)
        if fault == "hang":
            time.sleep(600)
        if fault == "raise":
            raise MemoryError("no room for the bricks")
        values, out = bench.input("u"), bench.output(0)

        def enqueue(stream):
            out[...] = factor * values
            if fault == "gap":
                out[0, 0] = float("nan")

        enqueue.ms, enqueue.label = ms, label
        return Prepared(enqueue, outputs=[out])

    return make


FACTS = {"registers": 40, "instructions": 120, "branches": 1, "spill_bytes": 0, "text_hash": "aa"}


def doubling(size):
    u = RandomField(1)
    return Question(
        id=f"doubling-{size}",
        shape=(size, size),
        variants=(
            Compiled("fast", doubled(2.0, 0.5, "fast"), FACTS),
            Compiled("slow", doubled(2.0, 2.0, "slow"), FACTS),
            Compiled("wrong", doubled(3.0, 0.1, "wrong"), FACTS),
            Compiled("gap", doubled(2.0, 0.1, "gap", "gap"), FACTS),
            Compiled("raises", doubled(2.0, 0.1, "raises", "raise"), FACTS),
            Compiled("exits", doubled(2.0, 0.1, "exits", "exit"), FACTS),
            Compiled("hangs", doubled(2.0, 0.1, "hangs", "hang"), FACTS),
            Compiled("broken", doubled(2.0, 0.1, "broken"), FACTS),
            CopyVariant("copy", 16 * size * size),
        ),
        inputs={"u": u},
        reference=lambda lo, shape: [2.0 * u(lo, shape, __import__("numpy"))],
        bytes=16 * size * size,
        baseline="copy",
        limit_s=LIMIT,
        prepare_limit_s=LIMIT,
    )


LIMIT = 5.0
'''

TEST = """

@pytest.mark.parametrize("size", [8, 12])
@pytest.mark.parametrize("variant", {variants!r})
@asks(doubling)
def test_double(variant, size, result):
    result.check()
"""


class Bed:
    """A pytester folder, and how to run and read it."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pytester, self.monkeypatch = pytester, monkeypatch
        self.path = pytester.path
        source = Path(__file__).with_name("fake_device.py").read_text()
        (self.path / "fake_device.py").write_text(source)
        pytester.makeconftest("def pytest_stencil_device(config):\n    return 'fake_device:FakeDevice'\n")
        self.log = self.path / "device.log"
        monkeypatch.setenv("FAKE_DEVICE_LOG", str(self.log))
        monkeypatch.syspath_prepend(str(self.path))
        # pytest-benchmark takes a run that inherits it for a worker of xdist, and measures nothing.
        monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)

    def module(self, *variants: str, name: str = "test_doubling", questions: str = QUESTIONS, test: str = TEST) -> None:
        (self.path / f"{name}.py").write_text(questions + test.format(variants=list(variants)))

    def run(self, *arguments: str, without: tuple[str, ...] = ("benchmark", "hypothesispytest")) -> pytest.RunResult:
        # Plugins that a test does not need are left out: every run is a process of its own.
        blocked = [part for name in ("cacheprovider", *without) for part in ("-p", f"no:{name}")]
        return self.pytester.runpytest_subprocess(*blocked, *arguments)

    def order(self) -> list[str]:
        return self.log.read_text().split("\n")[:-1]

    def files(self) -> list[Path]:
        return sorted(self.path.glob("results/*/records/*"))

    def rows(self, kind: str = "variant") -> list[dict]:
        lines = [json.loads(line) for file in self.files() for line in file.read_text().splitlines()]
        return [line for line in lines if line["kind"] == kind]
