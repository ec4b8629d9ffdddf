"""Runs straight-line NVVM IR on NumPy, all threads at once: what a device function means, without a GPU.

Values are arrays over (invocations, participants). The text that is run is the one that is compiled, so a slip in a
builder shows here. Not covered: branches, vectors, memory other than a thread's own elements; contraction of a
multiplication and an addition is not modelled.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stencil_dsl.tilelib.errors import TileLibraryError

TYPES: dict[str, Any] = {
    "double": np.float64,
    "float": np.float32,
    "half": np.float16,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}
_FLAGS = r"(?:\b(?:nuw|nsw|exact|fast|contract|nnan|ninf|nsz|arcp|reassoc|afn)\s+)*"
_WARP = 32


def _logical_shift(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    unsigned = np.dtype(f"u{np.asarray(a).dtype.name}")
    return (np.asarray(a).view(unsigned) >> np.asarray(b).view(unsigned)).view(np.asarray(a).dtype)


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "fadd": np.add,
    "fsub": np.subtract,
    "fmul": np.multiply,
    "fdiv": np.divide,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "ashr": np.right_shift,
    "lshr": _logical_shift,
}
_PREDICATES: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}
_UNARY_CALLS = {"fabs": np.abs, "sqrt": np.sqrt, "floor": np.floor, "abs": np.abs}
_UNARY_CALLS |= {n: getattr(np, n) for n in ("exp", "log", "sin", "cos", "tan", "tanh")}
_BINARY_CALLS = {"minnum": np.fmin, "maxnum": np.fmax, "fmin": np.fmin, "fmax": np.fmax, "pow": np.power}


@dataclass
class _Pointer:
    """A thread's own elements, shape (invocations, participants, footprint), and how far into them."""

    memory: np.ndarray
    offset: int = 0


@dataclass
class _Function:
    name: str
    parameters: list[str]
    lines: list[str] = field(default_factory=list)


_HEAD = re.compile(r"define\s+[^@(]*@([\w.$]+)\((.*)\)[^()]*\{")


def read_functions(text: str) -> dict[str, _Function]:
    """The definitions of a text by name."""
    found: dict[str, _Function] = {}
    current: _Function | None = None
    for raw in text.splitlines():
        line = raw.split(";")[0].strip()
        if head := _HEAD.match(line):
            names = [a.split()[-1] for a in head[2].split(",") if a.strip()]
            current = found[head[1]] = _Function(head[1], names)
        elif line == "}":
            current = None
        elif line and current is not None:
            current.lines.append(line)
    return found


def count_operations(text: str, symbol: str) -> Counter[str]:
    """Floating point operations of one thread in a function, by the names of a stencil's expression."""
    names = {"fadd": "add", "fsub": "sub", "fmul": "mul", "fdiv": "div", "select": "select"}
    found: Counter[str] = Counter()
    for line in read_functions(text)[symbol].lines:
        op, _, rest = line.partition(" = ")[2].partition(" ")
        if op in names:
            found[names[op]] += 1
        elif call := re.match(r"\w+ @(?:llvm\.|__nv_)(\w+?)(?:f?\(|\.f)", rest) if op == "call" else None:
            found[{"fabs": "abs", "fmin": "minnum", "fmax": "maxnum"}.get(call[1], call[1])] += 1
    return found


def run_function(text: str, symbol: str, arguments: Sequence[Any]) -> None:
    """Run one function for all threads.

    Args:
        arguments: arrays (invocations, participants) for what travels by value, (invocations, participants,
            footprint) for what is behind a pointer; the latter are changed in place.

    Raises:
        TileLibraryError: naming the line that cannot be run.
    """
    functions = read_functions(text)
    if symbol not in functions:
        raise TileLibraryError(f"the code does not define {symbol!r}, only {', '.join(functions)}")
    values = [_Pointer(a) if a.ndim == 3 else a for a in arguments]
    shape = np.shape(arguments[0])[:2]
    with np.errstate(all="ignore"):
        _Run(functions, shape).call(symbol, values)


class _Run:
    def __init__(self, functions: dict[str, _Function], shape: tuple[int, ...]) -> None:
        self.functions, self.shape = functions, shape
        self.lanes = np.broadcast_to(np.arange(shape[1], dtype=np.int32) % _WARP, shape)

    def call(self, name: str, values: Sequence[Any]) -> Any:
        function = self.functions[name]
        known = dict(zip(function.parameters, values, strict=True))
        for line in function.lines:
            if line == "ret void":
                return None
            if line.startswith("ret "):
                return self._operand(known, *line.removeprefix("ret ").split(" ", 1))
            target, _, right = line.partition(" = ") if line.startswith("%") else ("", "", line)
            try:
                result = self._instruction(known, right)
            except (KeyError, ValueError) as error:
                raise TileLibraryError(
                    f"{name}: cannot run {line!r} ({error}); straight-line scalar NVVM IR can, for anything else give"
                    " the meaning of the function"
                ) from None
            if target:
                known[target] = result
        raise TileLibraryError(f"{name}: no return at the end; branches are not run")

    def _operand(self, known: dict[str, Any], kind: str, text: str) -> Any:
        text = text.strip()
        if text.startswith("%"):
            return known[text]
        dtype = TYPES[kind]
        if kind == "i1":
            return np.bool_({"true": True, "false": False}[text])
        if text.startswith("0x"):
            return dtype(struct.unpack("<d", struct.pack("<Q", int(text, 16)))[0])
        return dtype(float(text)) if kind in ("double", "float", "half") else np.asarray(int(text)).astype(dtype)[()]

    def _instruction(self, known: dict[str, Any], text: str) -> Any:
        op, _, rest = text.partition(" ")
        if op in ("tail", "notail"):
            return self._instruction(known, rest)
        if op in _BINARY:
            match = re.fullmatch(rf"{_FLAGS}(\w+) (\S+), (\S+)", rest)
            if match is None:
                raise ValueError("unknown form")
            a, b = self._operand(known, match[1], match[2]), self._operand(known, match[1], match[3])
            return _BINARY[op](a, b)
        if op == "fneg":
            return -self._operand(known, *rest.split(" ", 1))
        if op in ("fcmp", "icmp"):
            return self._compare(known, op, rest)
        if op == "select":
            (ck, c), (ak, a), (bk, b) = (part.strip().split(" ") for part in rest.split(","))
            chosen = np.where(self._operand(known, ck, c), self._operand(known, ak, a), self._operand(known, bk, b))
            return chosen.astype(TYPES[ak])
        if op in ("bitcast", "trunc", "zext", "sext", "fptrunc", "fpext", "sitofp"):
            return self._convert(known, op, rest)
        if op in ("load", "store", "getelementptr"):
            return self._memory(known, op, rest)
        if op == "call":
            return self._call(known, rest)
        raise ValueError("unknown instruction")

    def _compare(self, known: dict[str, Any], op: str, rest: str) -> Any:
        match = re.fullmatch(rf"{_FLAGS}(\w+) (\w+) (\S+), (\S+)", rest)
        if match is None:
            raise ValueError("unknown form")
        predicate = match[1]
        a, b = self._operand(known, match[2], match[3]), self._operand(known, match[2], match[4])
        if op == "icmp":
            if predicate.startswith("u"):
                raise ValueError("unsigned comparison")
            return _PREDICATES[predicate[-2:]](a, b)
        unordered = np.isnan(a) | np.isnan(b)
        if predicate in ("uno", "ord"):
            return unordered if predicate == "uno" else ~unordered
        plain = _PREDICATES[predicate[1:]](a, b)
        return plain | unordered if predicate[0] == "u" else plain & ~unordered

    def _convert(self, known: dict[str, Any], op: str, rest: str) -> Any:
        kind, text, _, wanted = rest.split()
        value = np.asarray(self._operand(known, kind, text))
        if op == "bitcast":
            return value.view(TYPES[wanted])
        if op == "zext" and kind != "i1":
            return value.view(np.dtype(f"u{value.dtype.name}")).astype(TYPES[wanted])
        return value.astype(TYPES[wanted])

    def _memory(self, known: dict[str, Any], op: str, rest: str) -> Any:
        rest = re.sub(r", align \d+$", "", rest)
        parts = [p.strip() for p in rest.split(",")]
        if op == "getelementptr":
            pointer, index = known[parts[1].split()[-1]], int(parts[2].split()[-1])
            return _Pointer(pointer.memory, pointer.offset + index)
        pointer = known[parts[1].split()[-1]]
        if not 0 <= pointer.offset < pointer.memory.shape[2]:
            raise ValueError(f"element {pointer.offset} of a buffer of {pointer.memory.shape[2]}")
        if op == "load":
            return pointer.memory[:, :, pointer.offset].copy()
        kind, value = parts[0].split()
        pointer.memory[:, :, pointer.offset] = self._operand(known, kind, value)
        return None

    def _call(self, known: dict[str, Any], rest: str) -> Any:
        match = re.fullmatch(r"(\w+) @([\w.$]+)\((.*)\)[^()]*", rest)
        if match is None:
            raise ValueError("unknown form")
        name = match[2]
        args = [self._operand(known, *a.strip().split(" ", 1)) for a in match[3].split(",") if a.strip()]
        if name in self.functions:
            return self.call(name, args)
        if name == "llvm.nvvm.read.ptx.sreg.laneid":
            return self.lanes
        if name.startswith("llvm.nvvm.shfl.sync."):
            return self._shuffle(name.split(".")[4], *args[1:])
        plain = re.sub(r"^llvm\.|^__nv_|\.f(16|32|64)$", "", name)
        plain = plain if plain in _UNARY_CALLS or plain in _BINARY_CALLS else plain.removesuffix("f")
        if plain == "fma":
            return args[0] * args[1] + args[2]
        return _UNARY_CALLS[plain](args[0]) if len(args) == 1 else _BINARY_CALLS[plain](*args)

    def _shuffle(self, mode: str, value: Any, by: Any, clamp: Any) -> Any:
        if self.shape[1] % _WARP:
            raise ValueError("a shuffle needs whole warps")
        if int(np.ravel(clamp)[0]) != (0 if mode == "up" else 31):
            raise ValueError("only shuffles over the whole warp are run")
        lane = self.lanes
        there = {"idx": by + 0 * lane, "bfly": lane ^ by, "up": lane - by, "down": lane + by}[mode]
        if mode == "idx":
            there = there & 31
        there = np.where((there < 0) | (there > 31), lane, there)
        first = np.arange(self.shape[1]) // _WARP * _WARP
        return np.take_along_axis(np.broadcast_to(value, self.shape), first + there, axis=1)
