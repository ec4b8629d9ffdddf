"""Calls of tile libraries in an emitted file: the library, written out, and the statements that use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from stencil_dsl.dialects import simt, tile
from stencil_dsl.schedule.problem import Lowered

if TYPE_CHECKING:
    from stencil_dsl.emit.cutile import Emitter

_WIDTH = 100


def library_lines(lowered: Lowered, header: list[str]) -> list[str]:
    """The file's first lines with the libraries of its kernel; as they are where it calls none."""
    lines: list[str] = []
    for library in lowered.libraries:
        lines += ["", "# What one lane does, in NVVM IR; built and linked in when this file is compiled."]
        lines += ["LIBRARY = embedded(", f"    {library.name!r},", "    exports=["]
        for export in library.exports:
            values = export.to_json()
            parameters = values.pop("parameters")
            head = ", ".join(f"{k!r}: {v!r}" for k, v in values.items())
            lines += ["        {", f"            {head},", "            'parameters': ["]
            lines += [f"                {p}," for p in parameters]
            lines += ["            ],", "        },"]
        lines += ["    ],", "    nvvm=["]
        for code in library.code:
            lines += ['        r"""', *code.text.strip().splitlines(), '""",']
        lines += ["    ],", ")"]
    if not lines:
        return header
    place = header.index("import cuda.tile as ct") + 1
    imports = ["", "from stencil_dsl.tilelib.preview import embedded, foreign_call"]
    return [*header[:place], *imports, *header[place:], *lines]


def call(emitter: Emitter, op: simt.CallOp) -> None:
    """One statement that binds all results."""
    inputs = [emitter.full(a) for a in op.args]
    kinds = [_kind(emitter, r) for r in op.res]
    names = [emitter.names.bind(r, "v") for r in op.res]
    for text in _wrapped("(", names, ",) = foreign_call("):
        emitter.line(text)
    emitter.line(f"    (LIBRARY,), {op.callee.data!r}, (),")
    for text in _wrapped("(", inputs, ",),") + _wrapped("(", kinds, ",), pure=True,"):
        emitter.line("    " + text)
    emitter.line(")")


def call_operand(emitter: Emitter, op: Operation) -> tuple[str, str]:
    """Text of an operation that makes tiles for calls, and a name for its value."""
    match op:
        case simt.SlotOp():
            return f"ct.zeros({emitter.shape(op.result)}, dtype=ct.{emitter.problem.dtype})", "slot"
        case simt.HaloIndexOp():
            return _halo_index(emitter, op), "near"
    raise NotImplementedError(op.name)


def _kind(emitter: Emitter, value: SSAValue) -> str:
    assert isinstance(value.type, tile.TileType)
    return f"(ct.{emitter.problem.dtype}, {value.type.extents})"


def _wrapped(before: str, items: list[str], after: str) -> list[str]:
    """A list over as many lines as it needs."""
    lines, current = [], before
    for n, item in enumerate(items):
        piece = item + (", " if n + 1 < len(items) else "")
        if len(current) + len(piece) > _WIDTH and current.strip():
            lines.append(current.rstrip())
            current = " " + piece
        else:
            current += piece
    return [*lines, current + after]


def _halo_index(emitter: Emitter, op: simt.HaloIndexOp) -> str:
    """Index of what each lane needs beyond its warp; see `simt.halo_index`."""
    origin, footprint, part, left, right = (
        getattr(op, name).value.data for name in ("origin", "footprint", "part", "left", "right")
    )
    assert isinstance(op.result.type, tile.TileType)
    extents = op.result.type.extents
    lanes, warp = extents[-1], simt.WARP
    lane = f"(ct.arange({lanes}, dtype=ct.int32) & {warp - 1})"
    side = "0"
    if left:
        side = f"ct.where({lane} >= {warp - left}, {-warp * footprint}, {side})"
    if right:
        side = f"ct.where({lane} < {right}, {warp * footprint}, {side})"
    own = f"ct.arange({lanes}, dtype=ct.int32) * {footprint}"
    start = f"({emitter.text(op.block).at(2)} * {lanes * footprint} + {origin + part})"
    return f"ct.reshape({own} + {side} + {start}, {extents})"
