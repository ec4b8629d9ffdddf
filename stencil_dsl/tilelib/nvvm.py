"""NVVM IR as text: the module around device functions, and a builder of straight-line ones.

Text is written with opaque pointers (`ptr`) throughout. For architectures below sm_100 libNVVM reads an older dialect
whose pointers carry their element type; `module_text` spells them that way.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stencil_dsl.tilelib.errors import TileLibraryError
from stencil_dsl.tilelib.exports import LLVM_TYPES, Export, Parameter

_DATA_LAYOUT = (
    "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64"
    "-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
)
_ALL_LANES = "i32 -1"
_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_COMPARE = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
_LOGIC = ("and", "or", "xor")
# libNVVM knows few of LLVM's own intrinsics; its device library has them all.
_LIBDEVICE = {"abs": "fabs", "minnum": "fmin", "maxnum": "fmax"}
_LIBDEVICE |= {n: n for n in ("sqrt", "floor", "exp", "log", "sin", "cos", "tan", "tanh", "pow")}


def opaque_pointers(arch: str) -> bool:
    """Whether libNVVM reads `ptr` for an architecture such as "sm_90"."""
    match = re.fullmatch(r"(?:sm|compute)_(\d+)[af]?", arch)
    if match is None:
        raise TileLibraryError(f"{arch!r} is no architecture; write it like sm_90")
    return int(match[1]) >= 100


def module_text(functions: Iterable[str], exports: Sequence[Export], arch: str) -> str:
    """One module of several texts; equal declarations and definitions appear once.

    Raises:
        TileLibraryError: an export's symbol is not defined as its description says.
    """
    parts: dict[str, None] = {}
    for text in functions:
        for part in _top_level(text):
            parts[part] = None
    for export in exports:
        check_definition(export, list(parts))
    declared = [p for p in parts if p.startswith("declare")]
    defined = [p for p in parts if not p.startswith("declare")]
    body = "\n".join(declared) + "\n\n" + "\n\n".join(defined)
    if not opaque_pointers(arch):
        body = _typed(body, exports)
    return (
        f'target datalayout = "{_DATA_LAYOUT}"\ntarget triple = "nvptx64-nvidia-cuda"\n\n{body}\n\n'
        "!nvvmir.version = !{!0}\n!0 = !{i32 2, i32 0, i32 3, i32 1}\n"
    )


def _top_level(text: str) -> list[str]:
    """Definitions and declarations of a text, comments dropped."""
    parts: list[str] = []
    open_part: list[str] | None = None
    for raw in text.splitlines():
        line = raw.split(";")[0].rstrip()
        if not line:
            continue
        if open_part is not None:
            open_part.append(line)
            if line == "}":
                parts.append("\n".join(open_part))
                open_part = None
        elif line.startswith("define") and line.endswith("{"):
            open_part = [line]
        elif line.startswith("declare"):
            parts.append(line)
        else:
            raise TileLibraryError(
                f"NVVM IR of a device function holds `define ... {{`, its lines and `}}`, and `declare`; not {line!r}"
            )
    if open_part is not None:
        raise TileLibraryError(f"no line `}}` ends {open_part[0]!r}")
    return parts


_HEAD = re.compile(r"define\s+(?P<result>[^@(]*?)\s*@(?P<name>[\w.$]+)\((?P<arguments>.*)\)[^()]*\{")


def check_definition(export: Export, parts: Sequence[str]) -> None:
    """Compare an export with the text that should define it; the assembler would not."""
    heads = [m for m in (_HEAD.match(part) for part in parts) if m is not None and m["name"] == export.symbol]
    if not heads:
        names = [m["name"] for m in (_HEAD.match(part) for part in parts) if m is not None]
        raise TileLibraryError(
            f"export {export.name!r}: the code does not define {export.symbol!r} (it defines {', '.join(names)});"
            f" expected {export.prototype()}"
        )
    types = [re.sub(r"\s*%[\w.$]+$", "", a.strip()) for a in heads[0]["arguments"].split(",") if a.strip()]
    linkage = heads[0]["result"].split()
    if types != [p.abi for p in export.parameters] or linkage[-1:] != ["void"] or "internal" in linkage:
        raise TileLibraryError(
            f"export {export.name!r}: the code has `{heads[0][0].rstrip(' {')}`, its description means"
            f" `{export.prototype()}` (one thread's elements: by value what is one element and only read, else"
            f" by pointer; results through trailing pointers)"
        )


_MEMORY = re.compile(
    r"(?P<before>(?:load|getelementptr(?: inbounds)?) (?P<type>[\w<> ]+), )ptr(?P<space> addrspace\(\d\))? "
    r"|(?P<store>store (?P<stored>[\w<>]+) [^,]+, )ptr(?P<space2> addrspace\(\d\))? "
)


def _typed(body: str, exports: Sequence[Export]) -> str:
    """The same text with the element type in every pointer."""

    def pointer(match: re.Match[str]) -> str:
        kind = match["type"] or match["stored"]
        return f"{match['before'] or match['store']}{kind}{match['space'] or match['space2'] or ''}* "

    by_symbol = {e.symbol: e for e in exports}
    lines = []
    for line in body.splitlines():
        head = _HEAD.match(line)
        if head is not None and head["name"] in by_symbol:
            parameters = by_symbol[head["name"]].parameters
            arguments = [_typed_argument(a, p) for a, p in zip(head["arguments"].split(","), parameters, strict=True)]
            line = line[: head.start("arguments")] + ", ".join(arguments) + line[head.end("arguments") :]
        lines.append(_MEMORY.sub(pointer, line))
    return "\n".join(lines)


def _typed_argument(argument: str, p: Parameter) -> str:
    return re.sub(r"\bptr( addrspace\(\d\))?", lambda m: f"{LLVM_TYPES[p.dtype]}{m[1] or ''}*", argument.strip())


@dataclass(frozen=True)
class Register:
    """A value of a device function: its name or constant as text, and its type."""

    text: str
    type: str

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


SHUFFLE_F64 = """
define internal double @shuffle_f64(double %value, i32 %lane) alwaysinline {
  %bits = bitcast double %value to i64
  %low = trunc i64 %bits to i32
  %shifted = lshr i64 %bits, 32
  %high = trunc i64 %shifted to i32
  %low.there = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %low, i32 %lane, i32 31)
  %high.there = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %high, i32 %lane, i32 31)
  %low.wide = zext i32 %low.there to i64
  %high.wide = zext i32 %high.there to i64
  %high.bits = shl i64 %high.wide, 32
  %joined = or i64 %high.bits, %low.wide
  %result = bitcast i64 %joined to double
  ret double %result
}
"""


class FunctionBuilder:
    """Builds a straight-line device function; equal operations are one.

    Operations have the names of a stencil's expression: add, mul, select, lt, ...
    """

    def __init__(self, export: Export) -> None:
        self.export = export
        self.lines: list[str] = []
        self.declared: dict[str, None] = {}
        self.helpers: dict[str, None] = {}
        self.known: dict[tuple[str, ...], Register] = {}

    # -- parameters

    def read(self, parameter: int, element: int = 0) -> Register:
        """One of the elements that this thread is handed."""
        p = self.export.parameters[parameter]
        kind = LLVM_TYPES[p.dtype]
        if p.by_value:
            return Register(f"%{p.name}", kind)
        return self._new(kind, f"load {kind}, {self._address(parameter, element)}")

    def write(self, parameter: int, element: int, value: Register) -> None:
        self.lines.append(f"store {value}, {self._address(parameter, element)}")

    def _address(self, parameter: int, element: int) -> str:
        p = self.export.parameters[parameter]
        if element == 0:
            return f"ptr %{p.name}"
        kind = LLVM_TYPES[p.dtype]
        return str(self._new("ptr", f"getelementptr inbounds {kind}, ptr %{p.name}, i32 {element}"))

    # -- operations

    def _new(self, kind: str, text: str) -> Register:
        if (kind, text) not in self.known:
            register = Register(f"%v{len(self.known)}", kind)
            self.known[kind, text] = register
            self.lines.append(f"{register.text} = {text}")
        return self.known[kind, text]

    def _call(self, kind: str, name: str, *args: Register | str) -> Register:
        types = [str(a).split()[0] for a in args]
        self.declared[f"declare {kind} @{name}({', '.join(types)})"] = None
        return self._new(kind, f"call {kind} @{name}({', '.join(map(str, args))})")

    @staticmethod
    def constant(value: float, kind: str) -> Register:
        """A floating point constant, exact (rounded to float32 first for type "float")."""
        if kind == "float":
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        return Register(f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}", kind)

    def op(self, name: str, *args: Register) -> Register:
        """An elementwise operation; min and max hand NaN on."""
        kind = args[-1].type
        first, last = args[0], args[-1].text
        if name in _BINARY:
            return self._new(kind, f"{_BINARY[name]} {first}, {last}")
        if name in _COMPARE:
            return self._new("i1", f"fcmp {_COMPARE[name]} {first}, {last}")
        if name in _LOGIC:
            return self._new("i1", f"{name} {first}, {last}")
        if name == "not":
            return self._new("i1", f"xor {first}, true")
        if name == "neg":
            # The older dialect has no fneg.
            return self._new(kind, f"fsub {self.constant(-0.0, kind)}, {last}")
        if name == "select":
            return self._new(kind, f"select {first}, {args[1]}, {args[2]}")
        if name in ("min", "max"):
            wins = self._new("i1", f"fcmp {'ogt' if name == 'max' else 'olt'} {first}, {last}")
            undefined = self._new("i1", f"fcmp uno {first}, {first.text}")
            return self.op("select", self.op("or", wins, undefined), first, args[1])
        if name in _LIBDEVICE:
            return self._call(kind, f"__nv_{_LIBDEVICE[name]}{'' if kind == 'double' else 'f'}", *args)
        raise TileLibraryError(f"device functions have no operation {name!r}")

    def lane(self) -> Register:
        """This thread's number in its warp."""
        return self._call("i32", "llvm.nvvm.read.ptx.sreg.laneid")

    def lane_plus(self, distance: int) -> Register:
        lane = self.lane()
        return self._new("i32", f"add {lane}, {distance}") if distance else lane

    def lane_is(self, relation: str, bound: int) -> Register:
        """Compare the lane with a number; `relation` as in icmp (slt, sge, ...)."""
        return self._new("i1", f"icmp {relation} {self.lane()}, {bound}")

    def shuffle(self, value: Register, lane: Register) -> Register:
        """The value that another lane of the warp holds (lane numbers wrap at 32)."""
        self.need_warp("shuffles")
        if value.type == "double":
            self.declared["declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)"] = None
            self.helpers[SHUFFLE_F64] = None
            return self._new("double", f"call double @shuffle_f64({value}, {lane})")
        name = f"llvm.nvvm.shfl.sync.idx.{'f32' if value.type == 'float' else 'i32'}"
        return self._call(value.type, name, _ALL_LANES, value, lane, "i32 31")

    def need_warp(self, what: str) -> None:
        if self.export.sync != "warp":
            raise TileLibraryError(f"export {self.export.name!r} {what} between lanes: it needs sync='warp'")

    def text(self) -> str:
        """The function with all that it needs."""
        arguments = ", ".join(f"{p.abi} %{p.name}" for p in self.export.parameters)
        body = "\n".join(f"  {line}" for line in [*self.lines, "ret void"])
        declared = "".join(f"{line}\n" for line in self.declared)
        helpers = "".join(self.helpers)
        return f"{declared}{helpers}\ndefine void @{self.export.symbol}({arguments}) {{\n{body}\n}}\n"
