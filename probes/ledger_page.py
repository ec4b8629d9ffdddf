"""The documentation's page of claims, made from the ledger and the probes themselves."""

from __future__ import annotations

from pathlib import Path
from textwrap import shorten, wrap

from probes import catalogue
from stencil_dsl.testing import ledger

ROOT = Path(__file__).parent.parent
PAGE, LEDGER = ROOT / "docs/claims.md", ROOT / "results/claims.csv"

HEAD = """# Claims

Design choices rest on measured behaviour of compilers and GPUs. Each is a claim that a probe under `probes/` measures
again: on code (registers, spills, instructions, branches, memory operations) without a GPU, on times with one. After an
upgrade the ledger says which choices went stale.

    pytest probes                                   # compile tier, default toolkit, sm_90
    pytest probes -k occupancy --toolkit 13.4 --toolkit 13.5
    pytest probes --gpu                             # adds times
    pytest probes --golden                          # the gate: compares with the golden files of this tool set

This page is made by `python -m probes ledger --page` from `results/claims.csv`; do not edit it.
"""
MARK = {"holds": "holds", "weaker": "weaker", "reversed": "**reversed**", "cannot be tested here": "untested"}


def page(rows: list[ledger.Row]) -> str:
    """The page: a table of the newest verdicts, then what each rests on."""
    claims = catalogue.claims()
    by_claim = {number: [row for row in rows if row["claim"] == str(number)] for number in claims}
    lines = [HEAD, "| claim | | code | on a device |", "|---|---|---|---|"]
    for number, (claim, _) in claims.items():
        cells = [_verdicts(by_claim[number], *tiers) for tiers in (("code",), ("values", "time"))]
        lines.append(f"| [{number}](#claim-{number}) | {_cell(claim.text)} | {cells[0]} | {cells[1]} |")
    for number, (claim, module) in claims.items():
        path = f"{module.replace('.', '/')}.py"
        lines += [
            "",
            f"(claim-{number})=",
            f"## {number}. {claim.text}",
            "",
            f"Source: {claim.source}. Probe: `{path}`.",
            "",
        ]
        for row in by_claim[number]:
            place = f"{row['device'] or row['arch']}, {row['tools']}"
            lines.append(f"- {row['tier']}, {place}: *{row['verdict']}*. {row['why']}")
        if not by_claim[number]:
            lines.append("- not in the ledger yet")
    return "\n".join(lines) + "\n"


def docstring(text: str, module: str, rows: list[ledger.Row]) -> str:
    """A probe's source with what the ledger says last in its docstring; unchanged where it has no such place.

    The place is the end of the module's docstring, from a line that starts with "Last measured" on. Newest tool sets
    count, one entry a claim and tier.
    """
    opening = text.index('"""')
    end = text.index('"""', opening + 3)
    start = text.find("\nLast measured", opening, end)
    own = [row for row in rows if row["probe"] == f"{module.replace('.', '/')}.py"]
    newest = {(row["claim"], row["tier"], row["device"] or row["arch"]): row for row in own}
    if start < 0 or not newest:
        return text
    lines = ["Last measured:"]
    for (claim, tier, place), row in newest.items():
        words = shorten(row["why"].replace("\\", "/"), 280, placeholder=" ...")
        entry = f"- claim {claim}, {tier}, {place}, {row['tools']}: {row['verdict']}. {words}"
        lines += wrap(entry, 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return text[: start + 1] + "\n".join(lines) + "\n" + text[end:]


def docstrings(rows: list[ledger.Row], write: bool) -> list[str]:
    """Names of probe modules whose docstring does not say what the ledger does; with `write` they then do."""
    stale = []
    for module in catalogue.modules():
        path = ROOT / f"{module.replace('.', '/')}.py"
        text = path.read_text(encoding="utf-8")
        now = docstring(text, module, rows)
        if now != text:
            stale.append(module)
            if write:
                path.write_text(now, encoding="utf-8")
    return stale


def _verdicts(rows: list[ledger.Row], *tiers: str) -> str:
    """Verdicts of some tiers by tool set, newest last; one word where they agree."""
    found = [(row["tools"], MARK[row["verdict"]]) for row in rows if row["tier"] in tiers]
    # A release that lacks what the probe uses says nothing beside one that has it.
    found = [pair for pair in found if pair[1] != "untested"] or found
    verdicts = list(dict.fromkeys(verdict for _, verdict in found))
    if len(verdicts) <= 1:
        return "".join(verdicts)
    return "; ".join(f"{verdict} ({tools})" for tools, verdict in found)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
