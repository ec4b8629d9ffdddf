"""Claims and what a run found about them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

#: What a predicate may say.
VERDICTS = ("holds", "weaker", "reversed", "cannot be tested here")
#: What a verdict rests on: compile-time facts (and values of the interpreter), values on a device, or times on one.
TIERS = ("code", "values", "time")


@dataclass(frozen=True)
class Claim:
    """A statement of a source that a probe measures again.

    Attributes:
        number: its place in the list of claims.
        text: the claim in one sentence.
        source: where it was made and on what it was measured.
    """

    number: int
    text: str
    source: str

    def record(self) -> dict[str, Any]:
        return {"claim": self.number, "text": self.text, "source": self.source}


@dataclass(frozen=True)
class Finding:
    """A verdict with the figures it rests on, in one line."""

    verdict: str
    why: str
    tier: str = "code"

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict {self.verdict!r}: one of {', '.join(VERDICTS)}")
        if self.tier not in TIERS:
            raise ValueError(f"tier {self.tier!r}: one of {', '.join(TIERS)}")

    def record(self) -> dict[str, Any]:
        return asdict(self)
