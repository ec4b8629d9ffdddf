"""What a compiled kernel uses: registers, memory, instructions by class."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from stencil_dsl.toolchain.cubin import read_elf
from stencil_dsl.toolchain.disasm import (
    Instruction,
    count_classes,
    disassemble,
    find_disassembler,
    format_sass,
)
from stencil_dsl.toolchain.kit import Toolkit
from stencil_dsl.toolchain.loops import find_loops, innermost


@dataclass(frozen=True)
class Resources:
    """Resources of one kernel. Instruction facts are None where no nvdisasm was at hand.

    Attributes:
        symbol: name of the kernel.
        registers: per thread.
        stack_bytes: per thread.
        shared_bytes: static shared memory per block.
        threads: threads per block.
        text_hash: SHA-256 of the code section; equal hashes mean equal machine code.
        instructions: all, without the padding at the end.
        barriers: BAR instructions.
        branches: BRA instructions, without branches to themselves.
        spill_loads, spill_stores: LDL and STL instructions.
        spill_bytes: bytes that one thread moves by one pass through all LDL and STL.
        loop_spills: LDL and STL inside a loop.
        loop_instructions: instructions of the largest innermost loop; 0 without loops.
        classes: instruction class -> count, for example {"LDG.E.128": 4, "DFMA": 12, ...}.
        loop_classes: the same for the largest innermost loop.
    """

    symbol: str
    registers: int | None
    stack_bytes: int | None
    shared_bytes: int | None
    threads: int | None
    text_hash: str
    instructions: int | None = None
    barriers: int | None = None
    branches: int | None = None
    spill_loads: int | None = None
    spill_stores: int | None = None
    spill_bytes: int | None = None
    loop_spills: int | None = None
    loop_instructions: int | None = None
    classes: dict[str, int] | None = None
    loop_classes: dict[str, int] | None = None

    def count(self, prefix: str) -> int | None:
        """Instructions whose class is `prefix` or starts with `prefix` and a dot ("LDG", "LDG.E.128")."""
        if self.classes is None:
            return None
        return sum(n for name, n in self.classes.items() if name == prefix or name.startswith(prefix + "."))

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @staticmethod
    def from_json(values: dict[str, Any]) -> Resources:
        """Inverse of `to_json`; entries that this version does not know are ignored."""
        known = {f.name for f in fields(Resources)}
        return Resources(**{k: v for k, v in values.items() if k in known})


def inspect(cubin: bytes, toolkit: Toolkit | None = None, symbol: str | None = None) -> Resources:
    """Resources of a kernel in a cubin (the only one, or `symbol`).

    Works without any NVIDIA tool; the instruction facts need nvdisasm, of the toolkit or of this
    machine. Raises ToolchainError where the bytes are no cubin.
    """
    return examine(cubin, toolkit, symbol)[0]


def examine(cubin: bytes, toolkit: Toolkit | None = None, symbol: str | None = None) -> tuple[Resources, str | None]:
    """`inspect` and `sass` in one run of nvdisasm; the text is None where there is no nvdisasm."""
    elf = read_elf(cubin, symbol)
    disassembler = find_disassembler(toolkit)
    facts: dict[str, Any] = {}
    text = None
    if disassembler is not None:
        code = disassemble(cubin, disassembler, elf)
        facts, text = instruction_facts(code), format_sass(code, elf)
    resources = Resources(
        symbol=elf.symbol,
        registers=elf.registers,
        stack_bytes=elf.stack_bytes,
        shared_bytes=elf.shared_bytes,
        threads=elf.threads,
        text_hash=elf.text_hash,
        **facts,
    )
    return resources, text


def instruction_facts(code: list[Instruction]) -> dict[str, Any]:
    """The part of Resources that comes from the instructions."""
    loads = [i for i in code if i.base == "LDL"]
    stores = [i for i in code if i.base == "STL"]
    loops = find_loops(code)
    looped = {i.address for loop in loops for i in loop.body}
    largest = max((loop.body for loop in innermost(loops)), key=len, default=())
    return {
        "instructions": len(code),
        "barriers": sum(i.base == "BAR" for i in code),
        "branches": sum(i.base == "BRA" and not i.idles for i in code),
        "spill_loads": len(loads),
        "spill_stores": len(stores),
        "spill_bytes": sum(i.width for i in loads + stores),
        "loop_spills": sum(i.address in looped for i in loads + stores),
        "loop_instructions": len(largest),
        "classes": count_classes(code),
        "loop_classes": count_classes(list(largest)),
    }
