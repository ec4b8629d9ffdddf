"""Machine code of a cubin as data (through `nvdisasm -json`) and as text that diffs well."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from stencil_dsl.errors import ToolchainError
from stencil_dsl.toolchain.cubin import ElfFacts, read_elf
from stencil_dsl.toolchain.kit import Toolkit
from stencil_dsl.toolchain.paths import work_folder
from stencil_dsl.toolchain.process import run_tool

_BYTES = 16  # every instruction since sm_70
_GLOBAL = ("LDG", "STG")
_WIDTHS = {"8": 1, "U8": 1, "S8": 1, "16": 2, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
_TARGET = re.compile(r"(?:^|,)(0x[0-9a-f]+)$")


@dataclass(frozen=True)
class Instruction:
    """One machine instruction.

    Attributes:
        address: offset in bytes from the start of the code section.
        predicate: "@P0", "@!UP1" or "".
        opcode: with its modifiers, "LDG.E.64".
        operands: as nvdisasm writes them, "R8,desc[UR4][R8.64+0x1100]".
        target: address that a branch or call goes to, None for the rest.
    """

    address: int
    predicate: str
    opcode: str
    operands: str
    target: int | None = None

    @property
    def base(self) -> str:
        """Opcode without modifiers: "LDG"."""
        return self.opcode.split(".", 1)[0]

    @property
    def width(self) -> int:
        """Bytes per thread that a load or store moves (4 where no modifier says otherwise)."""
        return next((_WIDTHS[m] for m in self.opcode.split(".")[1:] if m in _WIDTHS), 4)

    @property
    def conditional(self) -> bool:
        """Whether it may not take effect: a predicate in front or among a branch's operands."""
        return bool(self.predicate) or (self.base == "BRA" and "," in self.operands)

    @property
    def idles(self) -> bool:
        """A branch to itself, which ends every code section."""
        return self.base == "BRA" and self.target == self.address and not self.conditional


def find_disassembler(toolkit: Toolkit | None = None) -> Path | None:
    """nvdisasm of the toolkit, else any on this machine, else None."""
    if toolkit is not None and toolkit.nvdisasm is not None:
        return toolkit.nvdisasm
    from stencil_dsl.toolchain.discover import find_tool

    return find_tool("nvdisasm")


def disassemble(cubin: bytes, disassembler: Path, elf: ElfFacts) -> list[Instruction]:
    """Instructions of one kernel with its subroutines, in order, without the padding at the end.

    Padding is what follows the last real instruction: the branch to itself and the NOPs.
    """
    with work_folder() as folder:
        (folder / "kernel.cubin").write_bytes(cubin)
        command = [str(disassembler), "-json", "kernel.cubin"]
        text = run_tool(command, tool="nvdisasm", cwd=str(folder), timeout=120).stdout
    parsed = json.loads(text)[1]
    entry = next((f for f in parsed if f["function-name"] == elf.symbol), None)
    if entry is None:
        raise ToolchainError(f"nvdisasm shows no function {elf.symbol!r}")
    starts = {name: address for address, name in elf.functions.items()}
    code = [_instruction(i, raw, starts) for i, raw in enumerate(entry["sass-instructions"])]
    while code and (code[-1].base == "NOP" or code[-1].idles):
        code.pop()
    return code


def _instruction(index: int, raw: dict, starts: dict[str, int]) -> Instruction:
    operands = raw.get("operands", "")
    target = None
    if "other-attributes" in raw:
        match = _TARGET.search(operands)
        target = int(match.group(1), 16) if match else starts.get(operands.rsplit(",", 1)[-1])
    return Instruction(index * _BYTES, raw.get("predicate", ""), raw["opcode"], operands, target)


def instruction_class(instruction: Instruction) -> str:
    """The class under which an instruction is counted.

    Global loads and stores are told apart by bits per thread ("LDG.E.32" where SASS writes only
    "LDG.E"); all TMA copies are "UTMA"; everything else counts under its opcode without modifiers.
    """
    base = instruction.base
    if base in _GLOBAL:
        return f"{base}.E.{instruction.width * 8}"
    return "UTMA" if base.startswith("UTMA") else base


def count_classes(code: list[Instruction]) -> dict[str, int]:
    """Instructions per class, sorted by name."""
    return dict(sorted(Counter(map(instruction_class, code)).items()))


def sass(cubin: bytes, toolkit: Toolkit | None = None, symbol: str | None = None) -> str:
    """Machine code as text: one instruction a line, labels for targets, no addresses or encodings.

    The same code gives the same text, whatever the paths, dates and tool that read it. Raises
    ToolchainError where no nvdisasm is found.
    """
    disassembler = find_disassembler(toolkit)
    if disassembler is None:
        raise ToolchainError("no nvdisasm on this machine; install it with: pip install nvidia-cuda-nvdisasm")
    elf = read_elf(cubin, symbol)
    return format_sass(disassemble(cubin, disassembler, elf), elf)


def format_sass(code: list[Instruction], elf: ElfFacts) -> str:
    """The text of `sass` for instructions that are already there."""
    names = {address: name for address, name in elf.functions.items() if address}
    names[0] = elf.symbol
    inner = sorted({i.target for i in code if i.target is not None and i.target not in names})
    labels = names | {address: f".L{n}" for n, address in enumerate(inner, start=1)}
    lines = []
    for instruction in code:
        if instruction.address in labels:
            lines.append(labels[instruction.address] + ":")
        operands = instruction.operands
        if instruction.target is not None:
            operands = ",".join([*operands.split(",")[:-1], labels[instruction.target]])
        words = [instruction.predicate, instruction.opcode, operands.replace(",", ", ")]
        lines.append("    " + " ".join(w for w in words if w))
    last = code[-1].address if code else 0
    lines += [f"{labels[a]}:" for a in inner if a > last]
    return "\n".join(lines) + "\n"
