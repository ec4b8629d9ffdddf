"""Finds the loops in machine code.

A backward branch alone does not make a loop: the compiler moves unlikely code behind the end of a
kernel and branches back from there. A loop is a back edge whose target dominates it; its body is every
block that reaches the edge without passing the target. Subroutines called from a loop are not part of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from stencil_dsl.toolchain.disasm import Instruction

_ENDS = ("EXIT", "RET", "BRX", "JMX", "JMP", "KILL")  # nothing that we can follow comes after these


@dataclass(frozen=True)
class Loop:
    """One natural loop: address of its head, and its instructions in address order."""

    head: int
    body: tuple[Instruction, ...]


def find_loops(code: list[Instruction]) -> list[Loop]:
    """All loops, one per head, in address order."""
    blocks = _blocks(code)
    if not blocks:
        return []
    heads = {block[0].address: n for n, block in enumerate(blocks)}
    follows = [_successors(block, n, heads) for n, block in enumerate(blocks)]
    dominators = _dominators(follows)
    bodies: dict[int, set[int]] = {}
    before: list[list[int]] = [[] for _ in blocks]
    for n, targets in enumerate(follows):
        for target in targets:
            before[target].append(n)
    for n, targets in enumerate(follows):
        for head in targets:
            if head in dominators[n]:
                bodies.setdefault(head, {head}).update(_reaching(n, head, before))
    return [
        Loop(blocks[head][0].address, tuple(i for n in sorted(body) for i in blocks[n]))
        for head, body in sorted(bodies.items())
    ]


def innermost(loops: list[Loop]) -> list[Loop]:
    """Loops that hold no other loop."""
    heads = {loop.head for loop in loops}
    return [loop for loop in loops if not heads & {i.address for i in loop.body if i.address != loop.head}]


def _blocks(code: list[Instruction]) -> list[list[Instruction]]:
    """Basic blocks in address order."""
    leaders = {i.target for i in code if i.target is not None}
    blocks: list[list[Instruction]] = []
    fresh = True
    for instruction in code:
        if fresh or instruction.address in leaders:
            blocks.append([])
        blocks[-1].append(instruction)
        fresh = instruction.base == "BRA" or instruction.base in _ENDS
    return blocks


def _successors(block: list[Instruction], n: int, heads: dict[int, int]) -> list[int]:
    """Blocks that may run after block `n`; `heads` gives the block that starts at an address."""
    last = block[-1]
    follows = []
    falls_through = last.conditional or (last.base != "BRA" and last.base not in _ENDS)
    if falls_through and n + 1 < len(heads):
        follows.append(n + 1)
    if last.base == "BRA" and last.target in heads:
        follows.append(heads[last.target])
    return follows


def _dominators(follows: list[list[int]]) -> list[set[int]]:
    """Blocks that every way to a block passes, per block.

    Subroutines are only reached by calls, which are not followed: each block that nothing leads to is
    an entry of its own.
    """
    count = len(follows)
    before: list[list[int]] = [[] for _ in range(count)]
    for n, targets in enumerate(follows):
        for target in targets:
            before[target].append(n)
    entries = {0} | {n for n in range(count) if not [p for p in before[n] if p != n]}
    everything = set(range(count))
    dominators = [{n} if n in entries else set(everything) for n in range(count)]
    changed = True
    while changed:
        changed = False
        for n in range(count):
            if n in entries:
                continue
            new = {n} | set.intersection(*(dominators[p] for p in before[n]))
            if new != dominators[n]:
                dominators[n], changed = new, True
    return dominators


def _reaching(start: int, head: int, before: list[list[int]]) -> set[int]:
    """Blocks from which `start` is reached without passing `head`."""
    found, todo = {start}, [start]
    while todo:
        n = todo.pop()
        if n == head:
            continue
        for previous in before[n]:
            if previous not in found:
                found.add(previous)
                todo.append(previous)
    return found | {head}
