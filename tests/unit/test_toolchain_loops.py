"""Loops, classes and spills of hand-written instruction lists."""

from __future__ import annotations

import pytest

from stencil_dsl.toolchain.cubin import ElfFacts
from stencil_dsl.toolchain.disasm import Instruction, count_classes, format_sass
from stencil_dsl.toolchain.loops import find_loops, innermost
from stencil_dsl.toolchain.resources import instruction_facts


def program(*lines: str) -> list[Instruction]:
    """Instructions from "@P0 BRA >2": one a line, `>n` is a branch to line n."""
    code = []
    for n, line in enumerate(lines):
        words = line.split()
        predicate = words.pop(0) if words[0].startswith("@") else ""
        opcode, operands = words[0], ",".join(words[1:])
        target = None
        if ">" in operands:
            target = 16 * int(operands.split(">")[1])
            operands = operands.replace(f">{target // 16}", hex(target))
        code.append(Instruction(16 * n, predicate, opcode, operands, target))
    return code


def spans(loops):
    return [(loop.head // 16, [i.address // 16 for i in loop.body]) for loop in loops]


def test_straight_code_has_no_loop():
    assert find_loops(program("MOV", "@P0 BRA >3", "ADD", "EXIT")) == []
    assert find_loops([]) == []


def test_simple_loop():
    assert spans(find_loops(program("MOV", "LDG.E", "@P0 BRA >1", "EXIT"))) == [(1, [1, 2])]


def test_loop_from_the_first_instruction_on():
    assert spans(find_loops(program("LDG.E", "@P0 BRA >0", "EXIT"))) == [(0, [0, 1])]


def test_backward_branch_from_moved_code_is_no_loop():
    """Unlikely code behind the end (4, 5) comes back to where it left."""
    assert find_loops(program("MOV", "@P0 BRA >4", "ADD", "EXIT", "CALL", "BRA >2")) == []


def test_moved_code_inside_a_loop_belongs_to_it():
    code = program("MOV", "@P0 BRA >5", "ADD", "@P1 BRA >1", "EXIT", "LDL.64", "BRA >2", "STL")
    assert spans(find_loops(code)) == [(1, [1, 2, 3, 5, 6])]
    facts = instruction_facts(code)
    assert (facts["spill_loads"], facts["spill_stores"], facts["loop_spills"]) == (1, 1, 1)
    assert facts["spill_bytes"] == 8 + 4


def test_nested_loops():
    code = program("MOV", "ADD", "LDG.E.64", "MUL", "@P0 BRA >2", "@P1 BRA >1", "STG.E", "@P2 BRA >6", "EXIT")
    loops = find_loops(code)
    assert spans(loops) == [(1, [1, 2, 3, 4, 5]), (2, [2, 3, 4]), (6, [6, 7])]
    assert spans(innermost(loops)) == [(2, [2, 3, 4]), (6, [6, 7])]
    facts = instruction_facts(code)
    assert facts["loop_instructions"] == 3
    assert facts["loop_classes"] == {"BRA": 1, "LDG.E.64": 1, "MUL": 1}


def test_condition_among_the_operands_falls_through():
    """`BRA P0, target` may go on behind it, unlike `BRA target`."""
    assert spans(find_loops(program("MOV", "BRA P0 >3", "BRA >1", "EXIT"))) == [(1, [1, 2])]
    assert find_loops(program("MOV", "BRA >3", "BRA >1", "EXIT")) == []


def test_loop_in_a_subroutine():
    code = program("CALL", "EXIT", "MOV", "@P0 BRA >2", "RET")
    assert spans(find_loops(code)) == [(2, [2, 3])]


def test_branch_to_itself_is_no_branch_unless_it_is_conditional():
    facts = instruction_facts(program("@P0 BRA >0", "EXIT", "BRA >2", "EXIT"))
    assert facts["branches"] == 1


@pytest.mark.parametrize(
    "opcode, name",
    [
        ("LDG.E", "LDG.E.32"),
        ("LDG.E.64.CONSTANT", "LDG.E.64"),
        ("LDG.E.LTC128B.128", "LDG.E.128"),
        ("STG.E.U8", "STG.E.8"),
        ("LDS.128", "LDS"),
        ("UTMALDG.3D", "UTMA"),
        ("BAR.SYNC.DEFER_BLOCKING", "BAR"),
        ("IMAD.MOV.U32", "IMAD"),
    ],
)
def test_classes(opcode, name):
    assert count_classes(program(opcode)) == {name: 1}


def test_text_has_labels_in_the_order_of_their_places():
    code = program("MOV R1 R2", "ADD R3 R1", "@P1 BRA >1", "@!P0 BRA >4", "EXIT", "RET")
    elf = ElfFacts("k", 8, 0, 0, 128, "", {0: "k", 80: "$helper"})
    assert format_sass(code, elf) == (
        "k:\n    MOV R1, R2\n.L1:\n    ADD R3, R1\n    @P1 BRA .L1\n    @!P0 BRA .L2\n"
        ".L2:\n    EXIT\n$helper:\n    RET\n"
    )
