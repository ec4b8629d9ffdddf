"""Tile libraries as descriptions: exports and the device code that defines them.

A description is all that decides what a library does. It is hashed instead of the built file, so that a machine
without a toolkit knows which kernels were compiled against which library.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from stencil_dsl.tilelib import bytecode
from stencil_dsl.tilelib.errors import TileLibraryError
from stencil_dsl.tilelib.exports import Export, _check_name
from stencil_dsl.tilelib.nvvm import module_text

Meaning = Callable[..., Any]
"""A function of arrays that says what an export computes; see `meaning.evaluate`."""


@dataclass(frozen=True)
class Code:
    """Device code: NVVM IR with opaque pointers ("nvvm"), or CUDA C++ ("cuda")."""

    language: Literal["nvvm", "cuda"]
    text: str

    def __post_init__(self) -> None:
        # White space around it is no part of what it says, nor of its hash.
        object.__setattr__(self, "text", self.text.strip())


@dataclass(frozen=True)
class TileLibrary:
    """A tile library before it is built.

    Attributes:
        name: of the file, an identifier.
        exports: what kernels may call.
        code: device code that defines the exports' symbols, all in one language.
        meanings: for exports whose code is not run on NumPy, by name; they are not part of the library's identity.

    Raises:
        TileLibraryError: where a rule is broken; the message names export and parameter.
    """

    name: str
    exports: tuple[Export, ...]
    code: tuple[Code, ...]
    meanings: Mapping[str, Meaning] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        _check_name("library", self.name)
        if not self.exports:
            raise TileLibraryError(f"library {self.name!r} has no exports")
        for export in self.exports:
            export.check()
        for what, names in (("name", [e.name for e in self.exports]), ("symbol", [e.symbol for e in self.exports])):
            doubled = [n for n, count in Counter(names).items() if count > 1]
            if doubled:
                raise TileLibraryError(f"library {self.name!r} has two exports of {what} {doubled[0]!r}")
        languages = {c.language for c in self.code}
        if len(languages) != 1:
            raise TileLibraryError(
                f"library {self.name!r} has code in {' and '.join(sorted(languages)) or 'no language'}; a static"
                " library holds one piece of device code, so all of it is nvvm or all of it is cuda"
            )
        if self.language == "nvvm":
            self.nvvm("sm_90")
        _known[self.digest] = self

    def __reduce__(self) -> tuple[Any, ...]:
        # Meanings may be local functions; workers only compile.
        return TileLibrary.from_json, (self.to_json(),)

    @property
    def language(self) -> str:
        return self.code[0].language

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the description, hexadecimal."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def export(self, name: str) -> Export:
        for export in self.exports:
            if export.name == name:
                return export
        raise TileLibraryError(
            f"library {self.name!r} has no export {name!r}; it has {', '.join(e.name for e in self.exports)}"
        )

    # -- what goes into the file

    def interface(self) -> bytes:
        """Bytecode of the declarations."""
        return bytecode.interface(self.exports)

    def implementation(self) -> bytes:
        """Bytecode of what implements them."""
        return bytecode.implementation(self.exports)

    def nvvm(self, arch: str) -> str:
        """The device code as one NVVM module for an architecture."""
        return module_text([c.text for c in self.code], self.exports, arch)

    def cuda(self) -> str:
        """The device code as one CUDA C++ translation unit."""
        return "\n".join(c.text for c in self.code)

    # -- as plain values

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "exports": [e.to_json() for e in self.exports],
            "code": [{"language": c.language, "text": c.text} for c in self.code],
        }

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> TileLibrary:
        exports = tuple(Export.from_json(e) for e in values["exports"])
        return TileLibrary(values["name"], exports, tuple(Code(**c) for c in values["code"]))


# Libraries that this process has described, by digest: how an interpreted call finds what it means.
_known: dict[str, TileLibrary] = {}


def is_known(digest: str) -> bool:
    """Whether this process has described the library."""
    return digest in _known


def find_library(digest: str) -> TileLibrary:
    """A library described earlier in this process; raises TileLibraryError."""
    if digest not in _known:
        raise TileLibraryError(
            f"no tile library with digest {digest[:12]} was described in this process, so a call of it has no"
            " meaning here; make the TileLibrary before the kernel runs"
        )
    return _known[digest]
