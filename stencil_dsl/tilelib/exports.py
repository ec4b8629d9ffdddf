"""What a tile library offers: functions with their parameters, and the rules that the Tile compiler holds them to.

An export is declared twice from one description: as the interface that a kernel calls with whole tiles, and as the
implementation that gets fragments of them. Breaking a rule is found here, where the message can name the parameter;
the compiler finds most of it late, or never.
"""

from __future__ import annotations

import keyword
from collections import Counter
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

from stencil_dsl.tilelib.errors import TileLibraryError
from stencil_dsl.tilelib.layouts import VALUE, Layout, contiguous

Access = Literal["in", "out", "inout"]
Sync = Literal["none", "warp", "warpgroup", "cta"]

# Tile IR has no unsigned integers; their bits travel as signed ones.
LLVM_TYPES = {
    "float16": "half",
    "float32": "float",
    "float64": "double",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
}
PARTICIPANTS = {"none": 1, "warp": 32, "warpgroup": 128}
RESERVED = ("llvm.", "__nv", "nvvm")


@dataclass(frozen=True)
class Parameter:
    """One argument of an export.

    Attributes:
        name: in the interface.
        dtype: element type, a key of `LLVM_TYPES`.
        access: what the function does with it; results of a call are the "out" and "inout" ones, in order.
        shape: extents of the tile that a caller passes.
        fragmap: (invocations, participants, footprint) to tile index; see `layouts`.
        space: "local" (a thread's own buffer), or "smem" (the whole tile in shared memory).
    """

    name: str
    dtype: str
    access: Access
    shape: tuple[int, ...]
    fragmap: Layout
    space: Literal["local", "smem"] = "local"

    @property
    def footprint(self) -> int:
        """Elements that one thread is handed."""
        return self.fragmap.sizes()[2]

    @property
    def by_value(self) -> bool:
        """One element that is only read travels as itself, everything else behind a pointer."""
        return self.access == "in" and self.footprint == 1 and self.space == "local"

    @property
    def memory(self) -> Layout:
        """Layout of the fragment in the thread's memory."""
        return VALUE if self.by_value else contiguous(self.footprint)

    @property
    def abi(self) -> str:
        """Type of the implementation's parameter in NVVM IR, opaque pointers."""
        if self.space == "smem":
            return "ptr addrspace(3)"
        return LLVM_TYPES[self.dtype] if self.by_value else "ptr"

    def to_json(self) -> dict[str, Any]:
        values = {"name": self.name, "dtype": self.dtype, "access": self.access, "shape": list(self.shape)}
        return values | {"fragmap": str(self.fragmap)} | ({"space": self.space} if self.space != "local" else {})

    @staticmethod
    def from_json(values: dict[str, Any]) -> Parameter:
        return Parameter(**{**values, "shape": tuple(values["shape"]), "fragmap": Layout.parse(values["fragmap"])})


@dataclass(frozen=True)
class Export:
    """One function of a library; `check` it before use.

    Attributes:
        name: what a kernel calls.
        symbol: what the device code defines.
        parameters: "in" ones and one contiguous run of "out" and "inout" ones.
        sync: threads that call together: one ("none"), a warp, a warpgroup or the whole block ("cta").
        archs: architectures that the implementation is for, as in "sm_90"; empty means all.
    """

    name: str
    symbol: str
    parameters: tuple[Parameter, ...]
    sync: Sync = "none"
    archs: tuple[str, ...] = ()

    @property
    def results(self) -> tuple[Parameter, ...]:
        """The parameters that a call returns, in order."""
        return tuple(p for p in self.parameters if p.access != "in")

    @property
    def invocations(self) -> int:
        return self.parameters[0].fragmap.sizes()[0]

    @property
    def participants(self) -> int:
        return self.parameters[0].fragmap.sizes()[1]

    def prototype(self) -> str:
        """The definition that device code must contain, in NVVM IR with opaque pointers."""
        return f"define void @{self.symbol}({', '.join(p.abi for p in self.parameters)})"

    def check(self) -> Export:
        """Returns the export; raises TileLibraryError naming the rule, the parameter and what is allowed."""
        for what, name in (("name", self.name), ("symbol", self.symbol)):
            _check_name(f"{what} of export {self.name!r}", name)
        if self.sync not in (*PARTICIPANTS, "cta"):
            raise TileLibraryError(f"export {self.name!r}: sync is none, warp, warpgroup or cta, got {self.sync!r}")
        if not self.parameters:
            raise TileLibraryError(f"export {self.name!r} has no parameters; it needs at least one output")
        doubled = [n for n, k in Counter(p.name for p in self.parameters).items() if k > 1]
        if doubled:
            raise TileLibraryError(f"export {self.name!r} has two parameters named {doubled[0]!r}")
        for parameter in self.parameters:
            self._check_parameter(parameter)
        self._check_outputs()
        self._check_invocations()
        return self

    def _check_parameter(self, p: Parameter) -> None:
        where = f"parameter {p.name!r} of export {self.name!r}"
        _check_name(where, p.name)
        if p.dtype not in LLVM_TYPES:
            raise TileLibraryError(f"{where}: dtype {p.dtype!r} is none of {', '.join(LLVM_TYPES)}")
        if p.access not in ("in", "out", "inout"):
            raise TileLibraryError(f"{where}: access is in, out or inout, got {p.access!r}")
        if any(n < 1 or n & (n - 1) for n in p.shape):
            raise TileLibraryError(f"{where}: tile extents are powers of two, got {p.shape}")
        if len(p.fragmap.shape) != 3:
            raise TileLibraryError(
                f"{where}: a fragmap has three modes (invocation, participant, footprint), got {p.fragmap}"
            )
        threads = PARTICIPANTS.get(self.sync)
        _, participants, _ = p.fragmap.sizes()
        if threads is not None and participants != threads:
            raise TileLibraryError(
                f"{where}: sync={self.sync!r} means {threads} participants a call, its fragmap {p.fragmap} has"
                f" {participants}"
            )
        self._check_coverage(where, p)

    def _check_coverage(self, where: str, p: Parameter) -> None:
        """Reads may be shared between threads, an element is written once; nothing outside the tile is touched."""
        held = p.fragmap.offsets()
        size = prod(p.shape)
        if max(held) >= size:
            raise TileLibraryError(
                f"{where}: fragmap {p.fragmap} reaches element {max(held)} of a tile of {size} elements"
            )
        if len(set(held)) < size:
            missing = min(set(range(size)) - set(held))
            raise TileLibraryError(
                f"{where}: fragmap {p.fragmap} hands element {missing} of the {size} to nobody; tile sizes are"
                f" multiples of participants times footprint"
            )
        if p.access != "in" and len(held) != size:
            raise TileLibraryError(f"{where}: fragmap {p.fragmap} hands one element of an output to several threads")

    def _check_outputs(self) -> None:
        kinds = [p.access != "in" for p in self.parameters]
        if not any(kinds):
            raise TileLibraryError(f"export {self.name!r} has no output: return a value, or name a parameter as inout")
        first, last = kinds.index(True), len(kinds) - 1 - kinds[::-1].index(True)
        if not all(kinds[first : last + 1]):
            between = self.parameters[first + kinds[first:].index(False)]
            raise TileLibraryError(
                f"export {self.name!r}: the out and inout parameters must form one run, {between.name!r} (in) stands"
                f" between them; write the in parameters first"
            )

    def _check_invocations(self) -> None:
        first = self.parameters[0]
        for p in self.parameters[1:]:
            if p.fragmap.sizes()[:2] != first.fragmap.sizes()[:2]:
                calls = [f"{q.name!r} (footprint {q.footprint}) {q.fragmap.sizes()[0]}" for q in (first, p)]
                raise TileLibraryError(
                    f"export {self.name!r}: all fragments of a call belong together, but the fragmaps of"
                    f" {calls[0]} and {calls[1]} make different numbers of calls; use one footprint for all"
                    f" parameters of one tile size"
                )

    def to_json(self) -> dict[str, Any]:
        values: dict[str, Any] = {"name": self.name, "symbol": self.symbol, "sync": self.sync}
        values["parameters"] = [p.to_json() for p in self.parameters]
        return values | ({"archs": list(self.archs)} if self.archs else {})

    @staticmethod
    def from_json(values: dict[str, Any]) -> Export:
        parameters = tuple(Parameter.from_json(p) for p in values["parameters"])
        archs = tuple(values.get("archs", ()))
        return Export(values["name"], values["symbol"], parameters, values["sync"], archs)


def _check_name(what: str, name: str) -> None:
    if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name):
        raise TileLibraryError(f"{what}: {name!r} is no plain identifier")
    if name.startswith(RESERVED):
        raise TileLibraryError(f"{what}: {name!r} begins like a compiler's own name ({', '.join(RESERVED)})")
