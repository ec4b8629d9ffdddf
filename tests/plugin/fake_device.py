"""A device on NumPy whose launches take the time that a script says. Copied into each pytester folder."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import numpy

from stencil_dsl.testing.device import DeviceInfo


class FakeDevice:
    xp = numpy
    l2_bytes = 1 << 20

    def __init__(self, number):
        self.log = Path(os.environ["FAKE_DEVICE_LOG"])
        self.states = json.loads(os.environ.get("FAKE_DEVICE_STATES", "[]"))

    @classmethod
    def describe(cls, number):
        return DeviceInfo("Fake GPU 9000", "sm_90", "1.2.3")

    def synchronize(self):
        pass

    def upload(self, values):
        return numpy.array(values)

    def download(self, values):
        return numpy.array(values)

    def copy_launch(self, nbytes):
        def enqueue(stream):
            pass

        enqueue.ms, enqueue.label = 1.0, "copy"
        return enqueue, "fake copy"

    def launch(self, enqueue):
        enqueue(None)

    def timer(self, enqueue, *, capturable, flush):
        rounds = iter(range(10**6))

        def once():
            number = next(rounds)
            with self.log.open("a") as file:
                file.write(f"{getattr(enqueue, 'label', '?')} {'flushed' if flush else 'warm'}\n")
            # A drift that grows with the round, common to all variants, and a little spread.
            return getattr(enqueue, "ms", 1.0) * (1 + 0.01 * number) + 1e-4 * (number % 3)

        return once

    @contextlib.contextmanager
    def profiled(self):
        launch = self.launch

        def noted(enqueue):
            with self.log.open("a") as file:
                file.write(f"{getattr(enqueue, 'label', '?')} profiled\n")
            launch(enqueue)

        self.launch = noted
        yield
        self.launch = launch

    def state(self):
        return self.states.pop(0) if self.states else {"sm_mhz": 1500, "power_w": 300.0, "throttle": []}

    def release(self):
        pass
