"""The step on a GPU: the compiler's loop, and the kernels of a text as CUDA graphs of two steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from repro.acoustic import cuda, dsl, triton_text
from repro.acoustic.grid import SERIES, Program
from repro.acoustic.model import Cube, wavelet
from repro.baselines import cubins

VARIANTS = ("dsl", "dsl-apart", "triton", "shared", "plain")
INPLACE = {"dsl": True, "dsl-apart": False}
"""The compiler's variants: whether the new u overwrites the oldest."""

WHAT = ("step", "inner", "layer")
GRAPH_STEPS = 16
"""The loop's graphs hold so many steps; counts of steps are multiples of it, so that all of them are launched so."""

STATE = ("u", "older", "phi")
Load = Callable[[str], Callable[..., None]]


def program(variant: str, cube: Cube) -> Program:
    """The texts of a variant that is not the compiler's."""
    return triton_text.generate(cube) if variant == "triton" else cuda.generate(variant, cube)


def compiled(made: Program, arch: str) -> dict[str, tuple[bytes, str, int]] | None:
    """Launch name to cubin, symbol and threads a block (0: the launch's own); None where no compiler is found."""
    if made.variant != "triton":
        found = cubins.cubin(made.source, arch)
        return found and {k.kernel: (found[0], k.kernel, 0) for k in made.launches}
    import importlib.util

    if importlib.util.find_spec("triton") is None:
        return None
    from repro.baselines.triton_kernels import compile_text

    result = {}
    for k in made.launches:
        done = compile_text(made.source, k.kernel, k.args, "fp32", int(made.config["warps"]), arch)
        if done.shared:
            raise ValueError(f"triton {k.kernel} wants {done.shared} bytes of dynamic shared memory")
        result[k.kernel] = (done.cubin, done.kernel, done.threads)
    return result


class LoopRun:
    """The compiler's kernels in a time loop."""

    def __init__(self, cube: Cube, arch: str, inplace: bool = True) -> None:
        self.cube = cube
        self.loop = dsl.simulation(cube, "gpu", target=arch, inplace=inplace)

    def cells(self, name: str) -> Any:
        """The cube's part of u, older, phi or vp; which memory that is changes from step to step."""
        return dsl.cells(self.loop, self.cube, name)

    def new(self) -> Any:
        """The cells that the kernels of the next step write as u."""
        array = self.loop.program.array("u", self.loop.stepper.position + 1)
        return dsl.within(array, self.cube)

    def restart(self) -> None:
        """The next step is the first one; fields stay."""
        self.loop.step = 0

    def advance(self, steps: int, stream: Any) -> None:
        with stream:
            self.loop.run(steps)

    def once(self, what: str, stream: Any) -> None:
        """The kernels of the inner box or of the layer once, without a change of places."""
        sweeps = self.loop.program.phase(self.loop.stepper.position).sweeps
        with stream:
            for sweep in sweeps[:1] if what == "inner" else sweeps[1:]:
                sweep.launch()


class TextRun:
    """The kernels of a text on arrays of the paper's layout.

    Args:
        device: a device of `stencil_dsl.testing`.
    """

    def __init__(self, made: Program, device: Any, arch: str) -> None:
        xp = device.xp
        self.program, self.xp, grid = made, xp, made.grid
        self.arrays = {name: xp.zeros(grid.size, "float32") for name in (*STATE, "vp")}
        self.arrays["eta"] = grid.eta(xp)
        self.arrays["series"] = xp.asarray(np.array([wavelet(step) for step in range(SERIES)], "float32"))
        self.arrays["clock"] = xp.zeros(1, "int64")
        self._kernels = self._load(device, arch)
        self._graph: Any = None
        for launch in (*made.launches, cuda.SOURCE):  # loads code, which must not happen while a graph is captured
            self._launch(launch, self.arrays["u"], self.arrays["older"], xp.cuda.get_current_stream())
        self.arrays["older"].fill(0)
        self.restart()

    def _load(self, device: Any, arch: str) -> dict[str, Callable[..., None]]:
        triton = self.program.variant == "triton"
        text = (program("plain", self.program.grid.cube) if triton else self.program).source
        found = compiled(self.program, arch)
        base = cubins.cubin(text, arch)
        add = device.load_cubin(base[0], "add_source") if base else device.load_cuda(text, "add_source", cubins.OPTIONS)
        loaded = {"add_source": add}
        for launch in self.program.launches:
            if found is None and triton:
                raise RuntimeError("triton is not installed")
            if found is None:
                loaded[launch.kernel] = device.load_cuda(text, launch.kernel, cubins.OPTIONS)
                continue
            cubin, symbol, threads = found[launch.kernel]
            loaded[launch.kernel] = _with_threads(device.load_cubin(cubin, symbol), threads)
        return loaded

    def cells(self, name: str) -> Any:
        """The cube's part of u, older, phi or vp after an even number of steps."""
        return self.program.grid.cells(self.arrays[name])

    def new(self) -> Any:
        """The cells that the kernels of the next step write as u."""
        return self.cells("older")

    def restart(self) -> None:
        """The next step is the first one; fields stay."""
        self.arrays["clock"].fill(0)

    def advance(self, steps: int, stream: Any) -> None:
        """Launches graphs of two steps, so an even number of them."""
        if steps % 2:
            raise ValueError(f"graphs hold two steps: {steps} is odd")
        if self._graph is None:
            self._graph = self._capture()
        for _ in range(steps // 2):
            self._graph.launch(stream)

    def _capture(self) -> Any:
        u, older = self.arrays["u"], self.arrays["older"]
        stream = self.xp.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            try:
                for now, new in ((u, older), (older, u)):
                    for launch in (*self.program.launches, cuda.SOURCE):
                        self._launch(launch, now, new, stream)
            finally:
                graph = stream.end_capture()
        return graph

    def once(self, what: str, stream: Any) -> None:
        """The kernels of the inner box or of the layer once, without a change of places."""
        for launch in [self.program.inner] if what == "inner" else self.program.layer:
            self._launch(launch, self.arrays["u"], self.arrays["older"], stream)

    def _launch(self, launch: Any, now: Any, new: Any, stream: Any) -> None:
        roles = self.arrays | {"u": now, "v": new}
        arguments = tuple(roles[name] for name in launch.args)
        self._kernels[launch.kernel](launch.grid, launch.block, arguments, stream)


def _with_threads(launch: Callable[..., None], threads: int) -> Callable[..., None]:
    if not threads:
        return launch

    def triton(grid: Sequence[int], block: Sequence[int], arguments: tuple[Any, ...], stream: Any) -> None:
        # Triton's kernels have two more pointers, to scratch memory that these do not use.
        launch(grid, (threads, 1, 1), (*arguments, np.uint64(0), np.uint64(0)), stream)

    return triton


def make_run(variant: str, cube: Cube, device: Any, arch: str) -> LoopRun | TextRun:
    """A variant's fields and kernels on a device."""
    if variant in INPLACE:
        return LoopRun(cube, arch, INPLACE[variant])
    return TextRun(program(variant, cube), device, arch)
