"""`compile(f, num_gpus=n)`: one kernel over several devices, each of which computes a box of the interior."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np

from stencil_dsl.dialects.boundary import FaceAttr, face_from_text
from stencil_dsl.errors import StencilError
from stencil_dsl.runtime.arrays import Device, PaddedArray, zeros
from stencil_dsl.runtime.devices import require_cupy
from stencil_dsl.runtime.kernel import Kernel
from stencil_dsl.solve.crew import Crew
from stencil_dsl.solve.ghosts import GhostFill, RunTimeValues
from stencil_dsl.solve.launches import BoundSweep
from stencil_dsl.solve.ranks import HaloExchange, Ranks
from stencil_dsl.solve.transports.base import Transport
from stencil_dsl.solve.transports.mpi import world

KEEP = face_from_text("keep")


class OneOfMany:
    """This process as one rank among those of an MPI launch."""

    def __init__(self, transport: Transport) -> None:
        self.transports = [transport]

    def all(self, work: Any) -> list[Any]:
        """What this rank, the first of this process, makes of its position."""
        return [work(0)]


Team = Crew | OneOfMany


class SpreadArray:
    """A field whose boxes lie on several devices.

    Attributes:
        shape: extents of the whole interior.
        parts: the boxes of this process's ranks, each with its halo.
    """

    def __init__(self, kernel: SpreadKernel, shape: Sequence[int], device: Device) -> None:
        self.shape, self.device, self.dtype = tuple(shape), device, kernel.dtype
        self._team, self._number = kernel.team(device), kernel.next_number()
        self._ranks = [Ranks.along(t, len(self.shape), kernel.grid) for t in self._team.transports]
        self._boxes = [r.domain(self.shape) for r in self._ranks]
        self._halo = kernel.halo
        make = [b.local_shape for b in self._boxes]
        self.parts: list[PaddedArray] = self._team.all(lambda n: zeros(make[n], self._halo, self.dtype, device))
        self._exchanges: list[HaloExchange | None] = self._team.all(self._exchange)
        self.stale = False

    def _exchange(self, n: int) -> HaloExchange | None:
        ranks, part = self._ranks[n], self.parts[n]
        axes = [a for a in ranks.axes if any(self._halo[a])]
        faces: list[tuple[FaceAttr | None, FaceAttr | None]] = []
        for axis in range(len(self.shape)):
            first, last = self._boxes[n].ends(axis) if axis in axes else (True, True)
            faces.append((KEEP if first else None, KEEP if last else None))
        fill = GhostFill("a field", part, faces, self._halo, RunTimeValues())
        return ranks.exchange(fill, self._halo, axes, self._number) if axes else None

    def refresh(self, n: int) -> None:
        """Get the halo of one rank's box from its neighbours; that beyond the interior stays what it is."""
        exchange = self._exchanges[n]
        if self.stale and exchange is not None:
            exchange.start()
            exchange.wait()

    def set(self, data: Any) -> None:
        """Take over values and halo: a PaddedArray, or an array whose outer cells are the halo."""
        whole = data.with_halo(self._halo) if isinstance(data, PaddedArray) else data
        expected = tuple(n + lo + hi for n, (lo, hi) in zip(self.shape, self._halo, strict=True))
        if tuple(whole.shape) != expected:
            raise StencilError(f"values with halo have the shape {expected}, got {tuple(whole.shape)}")
        cuts = [
            tuple(slice(lo, hi + sum(w)) for (lo, hi), w in zip(b.box, self._halo, strict=True)) for b in self._boxes
        ]
        if self.device == "cpu":
            host = whole.get() if hasattr(whole, "get") else np.asarray(whole)
            self._team.all(lambda n: np.copyto(self.parts[n].with_halo(self._halo), host[cuts[n]]))
        else:
            cupy = require_cupy()
            # Contiguous boxes on the device that has the values; they have to be there before other devices copy them.
            boxes = [cupy.ascontiguousarray(cupy.asarray(whole)[cut]) for cut in cuts]
            cupy.cuda.get_current_stream().synchronize()
            self._team.all(lambda n: self._receive(n, boxes[n]))
        self.stale = False

    def _receive(self, n: int, box: Any) -> None:
        cupy = require_cupy()
        self.parts[n].with_halo(self._halo)[...] = cupy.array(_here(box))
        cupy.cuda.get_current_stream().synchronize()

    def to_numpy(self) -> np.ndarray:
        """The whole interior on the host, under MPI of every rank."""
        pieces = self._team.all(lambda n: self.parts[n].to_numpy())
        if len(pieces) == 1:
            return self._ranks[0].assemble(pieces[0], self._boxes[0].box, self.shape)
        whole = np.empty(self.shape, self.dtype)
        for domain, piece in zip(self._boxes, pieces, strict=True):
            whole[tuple(slice(*ends) for ends in domain.box)] = piece
        return whole


def _here(array: Any) -> Any:
    """A contiguous array of another device on the current one."""
    cupy = require_cupy()
    if array.device.id == cupy.cuda.Device().id:
        return array
    copy = cupy.empty(array.shape, array.dtype)
    stream = cupy.cuda.get_current_stream()
    cupy.cuda.runtime.memcpyPeerAsync(
        copy.data.ptr, copy.device.id, array.data.ptr, array.device.id, array.nbytes, stream.ptr
    )
    return copy


class SpreadKernel:
    """A kernel that several devices run, each on a box of the interior; used like the kernel of one device.

    Called with ordinary arrays it sends each device its box and brings the results back, which takes longer than the
    sweep: it is for one-off calls. Called with `SpreadArray`s (`scatter`, `zeros`), boxes stay where they are and only
    faces travel. Under an MPI launcher each process is one rank, whatever `num_gpus` says. With order="source" results
    have the bits of one device.

    Args:
        kernel: of the whole interior.
        num_gpus: ranks in this process: the GPUs 0, 1, ..., or threads where arrays are on the host.
        grid: ranks along x, or along x and y; None cuts along x.
    """

    def __init__(self, kernel: Kernel, num_gpus: int, grid: Sequence[int] | None = None) -> None:
        self.kernel, self.num_gpus, self.grid = kernel, num_gpus, grid
        # Boxes have shapes of their own, and each may have its own schedule.
        self._local = kernel if kernel.shape is None else Kernel(kernel.definition, None, kernel._asked, kernel.options)
        self._teams: dict[Device, Team] = {}
        self._bound: dict[tuple[int, ...], tuple[list[BoundSweep], Sequence[SpreadArray]]] = {}
        self._spare: dict[tuple[Any, ...], list[SpreadArray]] = {}
        self._numbers = count()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.kernel, name)

    def team(self, device: Device) -> Team:
        """The ranks of this process for fields on a kind of device."""
        if device not in self._teams:
            launched = world()
            self._teams[device] = OneOfMany(launched) if launched.size > 1 else Crew(self.num_gpus, device)
        return self._teams[device]

    def next_number(self) -> int:
        return next(self._numbers)

    def zeros(self, shape: Sequence[int], device: Device | None = None) -> SpreadArray:
        """A field of zeros over the devices, halo included; arguments as for `stencil_dsl.zeros`."""
        from stencil_dsl.runtime.devices import gpu_available

        return SpreadArray(self, shape, device or ("gpu" if gpu_available() else "cpu"))

    def scatter(self, data: Any, device: Device | None = None) -> SpreadArray:
        """A field over the devices with the values and the halo of an array.

        Args:
            data: a PaddedArray, or an array of any library whose outer cells are the halo.
            device: where boxes lie; None for the kind of device that the array is on.
        """
        wide = data.with_halo(self.halo) if isinstance(data, PaddedArray) else data
        shape = [n - lo - hi for n, (lo, hi) in zip(wide.shape, self.halo, strict=True)]
        array = SpreadArray(self, shape, device or ("cpu" if isinstance(wide, np.ndarray) else "gpu"))
        array.set(data)
        return array

    def __call__(self, *arrays: Any, **scalars: float) -> None:
        """One sweep; arguments as for `Kernel`, all of them ordinary arrays or all `SpreadArray`s."""
        spread = [isinstance(a, SpreadArray) for a in arrays]
        if all(spread):
            return self._sweep(arrays, scalars)
        if any(spread):
            raise StencilError(f"{self.name} takes arrays of one kind: pass all of them through scatter(), or none")
        inputs, _, _ = self.kernel._arguments(arrays)
        shape = inputs[0].layout.shape
        device: Device = "cpu" if inputs[0].device is None else "gpu"
        parts = self._spare.setdefault((shape, device), [])
        parts += [SpreadArray(self, shape, device) for _ in range(len(arrays) - len(parts))]
        for part, array in zip(parts, arrays[: len(inputs)], strict=False):
            part.set(array)
        self._sweep(parts, scalars)
        for part, array in zip(parts[len(inputs) :], arrays[len(inputs) :], strict=True):
            target = array.interior if isinstance(array, PaddedArray) else _interior(array, shape, self.halo)
            values = part.to_numpy()
            target[...] = values if isinstance(target, np.ndarray) else require_cupy().asarray(values)

    def _sweep(self, arrays: Sequence[SpreadArray], scalars: dict[str, float]) -> None:
        d = self._local.definition
        if len(arrays) != len(d.fields) + len(d.outputs) or set(scalars) != set(d.scalars):
            wanted = f"{len(d.fields) + len(d.outputs)} arrays and the scalars {list(d.scalars) or 'none'}"
            raise StencilError(f"{self.name} takes {wanted}, got {len(arrays)} and {sorted(scalars) or 'none'}")
        key, fields, outputs = tuple(map(id, arrays)), arrays[: len(d.fields)], arrays[len(d.fields) :]
        team = self.team(arrays[0].device)

        def bind(n: int) -> BoundSweep:
            return BoundSweep(
                self._local, [f.parts[n] for f in fields], [o.parts[n] for o in outputs], d.scalars, "kernel"
            )

        if key not in self._bound:
            self._bound[key] = (team.all(bind), list(arrays))
        sweeps = self._bound[key][0]

        def work(n: int) -> None:
            for f in dict.fromkeys(fields):
                f.refresh(n)
            sweeps[n].set(scalars)
            sweeps[n].launch()

        team.all(work)
        for f in fields:
            f.stale = False
        for o in outputs:
            o.stale = True


def _interior(array: Any, shape: Sequence[int], halo: Sequence[tuple[int, int]]) -> Any:
    """The cells of an output that is no PaddedArray: all of it, or all but its halo."""
    if tuple(array.shape) == tuple(shape):
        return array
    return array[tuple(slice(lo, lo + n) for n, (lo, _) in zip(shape, halo, strict=True))]
