"""Writes the two Tile IR bytecode modules of a library: declarations, and what implements them.

Nothing here needs a tool. The formats are described in docs/tile-libraries.md; tests read the bytes back with
tileirdisasm.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stencil_dsl.tilelib.exports import Export, Parameter
from stencil_dsl.tilelib.layouts import Layout

VERSION = (13, 5)
"""The bytecode version that has these descriptions; assemblers read preview content only at their newest version."""

_PREVIEW = 1
_SIMPLE_TYPES = {"int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 7, "float64": 9}
_TILE, _FUNCTION, _FRAGMENT = 13, 16, 210
_ARRAY, _STRING, _DICTIONARY = 6, 5, 10
_EXPR_INT, _SYMBOLIC_TUPLE, _LAYOUT, _ACCESS = 209, 216, 217, 223
_ACCESS_KEY = "cuda_tile.preview$access"
_ACCESSES = ("in", "out", "inout")
_SYNCS = ("none", "warp", "warpgroup", "cta")
_SPACES = ("local", "smem")
# Flags of a function entry: declared only, and an implementation. A kernel would be 2.
_DECLARED, _IMPLEMENTATION = 1, 4
# Optional attributes of an implementation, by bit, in the order in which they follow.
_ARG_ATTRS, _ARCH, _SYNCHRONIZATION = 1 << 2, 1 << 6, 1 << 8
_STRINGS, _FUNCTIONS, _DEBUG, _CONSTANTS, _TYPES = 1, 2, 3, 4, 5
_PAD = b"\xcb"


def interface(exports: Iterable[Export]) -> bytes:
    """The module of declarations: every parameter is a tile, results are the written ones."""
    module = _Module()
    for export in exports:
        tiles = {p.name: module.tile(p) for p in export.parameters}
        signature = module.function(tiles.values(), [tiles[p.name] for p in export.results])
        attributes = _varint(_ARRAY) + module.accesses(export.parameters)
        no_body, no_constants = _varint(0), _varint(_ARRAY) + _varint(0)
        module.add(export.name, signature, _DECLARED, attributes + no_body + no_constants)
    return module.finish()


def implementation(exports: Iterable[Export]) -> bytes:
    """The module that says which symbol implements a declaration, and what each thread is handed."""
    module = _Module()
    for export in exports:
        signature = module.function([module.fragment(p) for p in export.parameters], [])
        present = _ARG_ATTRS
        optional = module.accesses(export.parameters)
        if export.archs:
            present |= _ARCH
            names = [_varint(_STRING) + module.string(a) for a in export.archs]
            optional += _varint(len(names)) + b"".join(names)
        if export.sync != "none":
            present |= _SYNCHRONIZATION
            optional += _varint(_SYNCS.index(export.sync))
        head = _varint(present) + module.string(export.symbol) + module.string(export.name) + _varint(signature)
        one_empty_region, no_body = b"\x01\x00", _varint(0)
        body = head + optional + one_empty_region + no_body
        module.add(export.symbol, signature, _DECLARED | _IMPLEMENTATION, body)
    return module.finish()


def _varint(n: int) -> bytes:
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes(out) + bytes([n])


def _signed(n: int) -> bytes:
    return _varint(n << 1 if n >= 0 else ~(n << 1))


def _ints(values: Sequence[int]) -> bytes:
    return _varint(len(values)) + b"".join(v.to_bytes(8, "little", signed=True) for v in values)


def _expression(mode: Any) -> bytes:
    """An extent: an integer, or a tuple of extents."""
    if isinstance(mode, tuple):
        return _varint(_SYMBOLIC_TUPLE) + _expressions(mode)
    return _varint(_EXPR_INT) + _signed(mode)


def _expressions(modes: Sequence[Any]) -> bytes:
    return _varint(len(modes)) + b"".join(map(_expression, modes))


def _layout(layout: Layout) -> bytes:
    return _varint(_LAYOUT) + _expressions(layout.shape) + _expressions(layout.stride)


class _Module:
    """Collects functions with the types and strings that they name by number."""

    def __init__(self) -> None:
        self.strings: dict[bytes, int] = {}
        self.types: dict[bytes, int] = {}
        self.functions: list[bytes] = []
        # The first two type numbers belong to i1 and i32 in every module.
        self._type(_varint(0))
        self._type(_varint(3))

    def string(self, text: str) -> bytes:
        return _varint(self.strings.setdefault(text.encode(), len(self.strings)))

    def _type(self, encoded: bytes) -> int:
        return self.types.setdefault(encoded, len(self.types))

    def _element(self, p: Parameter) -> bytes:
        return _varint(self._type(_varint(_SIMPLE_TYPES[p.dtype])))

    def tile(self, p: Parameter) -> int:
        return self._type(_varint(_TILE) + self._element(p) + _ints(p.shape))

    def fragment(self, p: Parameter) -> int:
        shape = (p.footprint,)
        alignment = _expression(1)  # in elements
        return self._type(
            _varint(_FRAGMENT)
            + _expression(shape)
            + _ints(shape)
            + self._element(p)
            + _varint(_SPACES.index(p.space))
            + _layout(p.memory)
            + _layout(p.fragmap)
            + alignment
        )

    def function(self, inputs: Iterable[int], results: Iterable[int]) -> int:
        sides = [_varint(len(ids)) + b"".join(map(_varint, ids)) for ids in (list(inputs), list(results))]
        return self._type(_varint(_FUNCTION) + b"".join(sides))

    def accesses(self, parameters: Sequence[Parameter]) -> bytes:
        """One dictionary an argument, with its access."""
        entries = [
            _varint(_DICTIONARY)
            + _varint(1)
            + self.string(_ACCESS_KEY)
            + _varint(_ACCESS)
            + _varint(_ACCESSES.index(p.access))
            for p in parameters
        ]
        return _varint(len(entries)) + b"".join(entries)

    def add(self, name: str, signature: int, flags: int, rest: bytes) -> None:
        # The location is a number in the debug section, which has one entry a function.
        location = _varint(len(self.functions) + 1)
        self.functions.append(self.string(name) + _varint(signature) + bytes([flags]) + location + rest)

    def finish(self) -> bytes:
        out = bytearray(b"\x7fTileIR\0" + bytes([*VERSION, _PREVIEW, 0]))
        _section(out, _FUNCTIONS, 8, _varint(len(self.functions)) + b"".join(self.functions))
        _section(out, _CONSTANTS, 8, _table([], 8))
        _section(out, _DEBUG, 8, self._debug())
        _section(out, _TYPES, 4, _table(list(self.types), 4))
        _section(out, _STRINGS, 4, _table(list(self.strings), 4))
        return bytes(out) + b"\0"

    def _debug(self) -> bytes:
        """One unknown location a function."""
        count = len(self.functions)
        out = bytearray(_varint(count))
        _pad(out, 4)
        for n in range(count):
            out += n.to_bytes(4, "little")
        out += _varint(count)
        _pad(out, 8)
        out += bytes(8 * count)
        return bytes(out) + _table([b"\0"], 4)


def _pad(out: bytearray, alignment: int) -> None:
    out += _PAD * (-len(out) % alignment)


def _section(out: bytearray, number: int, alignment: int, body: bytes) -> None:
    out.append(number | 0x80)
    out += _varint(len(body)) + _varint(alignment)
    _pad(out, alignment)
    out += body


def _table(items: list[bytes], width: int) -> bytes:
    """Number of items, their offsets, then the items."""
    out = bytearray(_varint(len(items)))
    _pad(out, width)
    offset = 0
    for item in items:
        out += offset.to_bytes(width, "little")
        offset += len(item)
    return bytes(out) + b"".join(items)
