"""Runs many steps of a program: one by one, or as CUDA graphs of whole cycles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stencil_dsl.runtime.devices import require_cupy
from stencil_dsl.solve.graphs import capturer
from stencil_dsl.solve.points import BLOCK_STEPS
from stencil_dsl.solve.program import Program
from stencil_dsl.solve.streams import current, mark
from stencil_dsl.solve.transports.base import Transport

Scalars = Callable[[int], Mapping[str, float]]
"""Values of the run-time scalars in a step, by the step's number."""

GRAPH_STEPS = 16
"""Steps that one graph holds, about: enough to hide its own launch."""


class Stepper:
    """Steps of a program from any place of its cycle on.

    Args:
        transport: this rank's end.
        graphs: capture whole cycles in CUDA graphs, where fields are on a GPU and the transport allows it.

    Attributes:
        position: the place in the cycle.
        size: time steps that the program makes at once.
    """

    def __init__(self, program: Program, transport: Transport, graphs: bool = True, size: int = 1) -> None:
        self.program, self.size, self.transport = program, size, transport
        on_gpu = any(b.device == "gpu" for b in program.buffers)
        self.capturer = capturer(transport) if graphs and on_gpu else None
        self.position = 0
        self._warm: set[int] = set()
        self._captured: dict[tuple[Any, ...], Any] = {}
        self._stream: Any = None

    @property
    def graph_steps(self) -> int:
        """Steps of one graph: whole cycles."""
        return self.program.cycle * max(1, GRAPH_STEPS // self.program.cycle)

    def run(self, first: int, count: int, scalars: Scalars, constant: bool) -> None:
        """Run the program `count` times, from time step `first` on.

        Args:
            constant: the scalars are the same in all of them, so that steps can be captured.
        """
        points = self.program.points
        while points and count:
            block = min(count, BLOCK_STEPS)
            for each in points:
                each.prepare(first, block)
            self.program.clock.reset()
            self._run(first, block, scalars, constant)
            self.transport.settle()
            for each in points:
                each.collect(first, block)
            first, count = first + block, count - block
        if count:
            self._run(first, count, scalars, constant)

    def changed(self) -> None:
        """Forget what was captured, after the program's actions changed."""
        self._captured.clear()
        self._warm.clear()

    def _run(self, first: int, count: int, scalars: Scalars, constant: bool) -> None:
        if self.capturer is None:
            self._prepare(scalars(first))
            for n in range(count):
                self._one(scalars(first + n * self.size))
            return
        cupy = require_cupy()
        caller = cupy.cuda.get_current_stream()
        if self._stream is None:
            self._stream = cupy.cuda.Stream(non_blocking=True)
        self._stream.wait_event(mark(caller))
        with current(self._stream):
            self._prepare(scalars(first))
            done = 0
            while done < count:
                size = self.graph_steps
                if constant and count - done >= size and len(self._warm) == self.program.cycle:
                    self.capturer.launch(self._graph(scalars(first), size), self._stream)
                    done += size
                else:
                    self._one(scalars(first + done * self.size))
                    done += 1
        caller.wait_event(mark(self._stream))

    def _prepare(self, values: Mapping[str, float]) -> None:
        self.program.values.set(values)
        for action in self.program.lasting():
            action()

    def _one(self, values: Mapping[str, float]) -> None:
        phase = self.program.phase(self.position)
        self.program.values.set(values)
        phase.set(values)
        phase.run()
        self._warm.add(self.position)
        self.position = (self.position + 1) % self.program.cycle

    def _graph(self, values: Mapping[str, float], size: int) -> Any:
        """A graph of `size` steps from the present position; launching it leaves the position as it is."""
        key = (self.position, size, tuple(sorted(values.items())))
        if key not in self._captured:
            if len(self._captured) >= 8:
                self._captured.clear()
            phases = [self.program.phase(self.position + n) for n in range(self.program.cycle)]
            for phase in phases:
                phase.set(values)

            def enqueue() -> None:
                for n in range(size):
                    phases[n % len(phases)].run()

            assert self.capturer is not None
            self._captured[key] = self.capturer.capture(self._stream, enqueue)
        self.program.values.set(values)
        return self._captured[key]
