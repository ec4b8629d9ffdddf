"""Reads facts from a cubin's ELF sections, without any NVIDIA tool."""

from __future__ import annotations

import hashlib
import io
import struct
from dataclasses import dataclass, field

from stencil_dsl.errors import ToolchainError

# Attributes of the .nv.info sections (format byte, attribute byte, 16-bit value or size).
_FRAME_SIZE, _MIN_STACK, _REQNTID, _REGCOUNT = 0x11, 0x12, 0x10, 0x2F
_SIZED = 0x04  # format: the 16-bit field is the size of a payload that follows


@dataclass(frozen=True)
class ElfFacts:
    """What a cubin says about one kernel.

    Attributes:
        symbol: name of the kernel.
        registers: per thread.
        stack_bytes: frame or minimal stack per thread, whichever is larger.
        shared_bytes: static shared memory per block.
        threads: threads per block that the kernel requires (product over the axes); None if it does not say.
        text_hash: SHA-256 of the kernel's code section.
        functions: offset in the code section -> name, for the kernel and its subroutines.
    """

    symbol: str
    registers: int | None
    stack_bytes: int | None
    shared_bytes: int
    threads: int | None
    text_hash: str
    functions: dict[int, str] = field(default_factory=dict)


def kernels(cubin: bytes) -> list[str]:
    """Names of the kernels in a cubin, in section order."""
    prefix = ".text."
    return [s.name[len(prefix) :] for s in _open(cubin).iter_sections() if s.name.startswith(prefix)]


def read_elf(cubin: bytes, symbol: str | None = None) -> ElfFacts:
    """Facts of kernel `symbol`, by default the only kernel.

    Raises ToolchainError where the bytes are no cubin or the kernel is not in it.
    """
    names = kernels(cubin)
    if symbol is None:
        if len(names) != 1:
            listed = ", ".join(names) or "none"
            raise ToolchainError(f"the cubin holds {len(names)} kernels ({listed}); name one of them")
        symbol = names[0]
    if symbol not in names:
        raise ToolchainError(f"no kernel {symbol!r} in the cubin; it holds: {', '.join(names) or 'none'}")
    elf = _open(cubin)
    text = elf.get_section_by_name(f".text.{symbol}")
    table = elf.get_section_by_name(".symtab")
    index = next(i for i, s in enumerate(table.iter_symbols()) if s.name == symbol and s["st_size"])
    of_symbol = _per_symbol(elf, index)
    frame = [of_symbol[a] for a in (_FRAME_SIZE, _MIN_STACK) if a in of_symbol]
    shared = elf.get_section_by_name(f".nv.shared.{symbol}")
    return ElfFacts(
        symbol=symbol,
        registers=of_symbol.get(_REGCOUNT),
        stack_bytes=max(frame) if frame else None,
        shared_bytes=shared["sh_size"] if shared is not None else 0,
        threads=_threads(elf, symbol),
        text_hash=hashlib.sha256(text.data()).hexdigest(),
        functions=_functions(elf, table, text),
    )


def _open(cubin: bytes):
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        return ELFFile(io.BytesIO(cubin))
    except ELFError as error:
        raise ToolchainError(f"not a cubin ({len(cubin)} bytes): {error}") from error


def _attributes(data: bytes) -> list[tuple[int, bytes]]:
    """Entries of an .nv.info section that carry a payload, as (attribute, payload)."""
    entries, place = [], 0
    while place + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, place)
        place += 4
        if form == _SIZED:
            entries.append((attribute, data[place : place + size]))
            place += size
    return entries


def _per_symbol(elf, index: int) -> dict[int, int]:
    """Attribute -> value of the entries (symbol index, value) of the shared section for one symbol."""
    section = elf.get_section_by_name(".nv.info")
    values: dict[int, int] = {}
    for attribute, payload in _attributes(section.data()) if section is not None else ():
        if attribute in (_FRAME_SIZE, _MIN_STACK, _REGCOUNT) and len(payload) == 8:
            owner, value = struct.unpack("<II", payload)
            if owner == index:
                values[attribute] = value
    return values


def _threads(elf, symbol: str) -> int | None:
    section = elf.get_section_by_name(f".nv.info.{symbol}")
    for attribute, payload in _attributes(section.data()) if section is not None else ():
        if attribute == _REQNTID and len(payload) == 12:
            x, y, z = struct.unpack("<III", payload)
            return x * y * z
    return None


def _functions(elf, table, text) -> dict[int, str]:
    sections = list(elf.iter_sections())
    found = {}
    for symbol in table.iter_symbols():
        place = symbol["st_shndx"]  # a name instead of a number for the undefined ones
        is_code = symbol["st_info"]["type"] == "STT_FUNC" and isinstance(place, int)
        if is_code and sections[place].name == text.name:
            found[symbol["st_value"]] = symbol.name
    return found
