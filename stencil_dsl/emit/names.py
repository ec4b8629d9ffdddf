"""Readable, unique Python names for SSA values."""

from __future__ import annotations

import keyword
import re

from xdsl.ir import SSAValue

_RESERVED = {"ct", "range", "min", "max", "cupy", "numpy", "stream"}


class Namer:
    """Gives each value one name, its hint where that is free."""

    def __init__(self) -> None:
        self.names: dict[SSAValue, str] = {}
        self.used: set[str] = set(_RESERVED)

    def fresh(self, hint: str) -> str:
        base = re.sub(r"\W", "_", hint) or "v"
        if base[0].isdigit() or keyword.iskeyword(base):
            base = f"v_{base}"
        name, n = base, 1
        while name in self.used:
            n += 1
            name = f"{base}_{n}"
        self.used.add(name)
        return name

    def bind(self, value: SSAValue, hint: str) -> str:
        name = self.names[value] = self.fresh(value.name_hint or hint)
        return name
