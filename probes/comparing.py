"""`python -m probes diff`: what changed between two toolkits, or between the golden files of two commits."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from stencil_dsl.testing.golden import differences, facts_of

ROOT = Path(__file__).parent.parent
Facts = Mapping[tuple[str, str, str], Mapping[str, Any]]
"""(question, variant, arch) -> facts, or ``{"failure": words}``."""


def is_toolkit(name: str) -> bool:
    """Whether a name means a toolkit: a release such as 13.5, a composition, or a folder. Anything else is a commit."""
    return name[:1].isdigit() and "." in name or "/" in name and Path(name).is_dir()


def of_toolkits(first: str, second: str, expression: str | None, arch: str) -> tuple[Facts, Facts]:
    """Compiles all variants (those that the -k expression selects) with two toolkits.

    The run judges no values again that an earlier one judged, and writes its records to a folder of its own.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "probes", "-q", "-p", "no:cacheprovider", "--arch", arch]
        command += ["--toolkit", first, "--toolkit", second, "--results", folder]
        command += ["-k", expression] if expression else []
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        rows = []
        for file in Path(folder).glob("*/records/*"):
            rows += [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        if not rows:
            raise RuntimeError(f"{' '.join(command)} measured nothing:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    found: dict[str, dict[tuple[str, str, str], Any]] = {first: {}, second: {}}
    for row in rows:
        if row["kind"] == "variant" and row["toolkit"] in found and (row.get("facts") or row.get("failure")):
            key = (row["question"], row["variant"], row["arch"])
            found[row["toolkit"]][key] = facts_of(row) if row.get("facts") else {"failure": row["failure"]}
    return found[first], found[second]


def of_commits(first: str, second: str) -> tuple[Facts, Facts]:
    """Golden facts of two commits; those of one tool set are compared, the newest that both have."""
    files = [_golden_files(commit) for commit in (first, second)]
    sides: tuple[dict, dict] = ({}, {})
    for name in sorted(set(files[0]) | set(files[1])):
        for side, commit, there in zip(sides, (first, second), files, strict=True):
            if name in there:
                content = json.loads(_git("show", f"{commit}:{name}"))
                tools = name.rsplit("-sm_", 1)[-1].split("-", 1)[-1].removesuffix(".json")
                for entry, facts in content["variants"].items():
                    question, _, variant = entry.partition(", ")
                    side[question, f"{variant} ({tools})", content["arch"]] = facts
    return sides


def _golden_files(commit: str) -> list[str]:
    return [name for name in _git("ls-tree", "-r", "--name-only", commit, "probes/golden/").splitlines() if name]


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    return done.stdout


def report(first: Facts, second: Facts, names: tuple[str, str]) -> list[str]:
    """One line a variant that differs, what grew before what shrank; then how many are equal."""
    worse, better, equal = [], [], 0
    for key in _keys(first, second):
        label = f"{key[0]}/{key[1]}, {key[2]}"
        before, after = first.get(key), second.get(key)
        if before is None or after is None:
            worse.append(f"{label}: only with {names[after is not None]}")
            continue
        if "failure" in before or "failure" in after:
            if ("failure" in before) != ("failure" in after):
                side = "failure" in after
                words = (after if side else before)["failure"].splitlines()[0]
                worse.append(f"{label}: fails with {names[side]}: {words}")
            else:
                equal += 1
            continue
        bad, notes = differences(before, after)
        if bad:
            worse.append(f"{label}: {', '.join(bad + notes)}")
        elif notes:
            better.append(f"{label}: {', '.join(notes)}")
        else:
            equal += 1
    lines = [f"{names[0]} -> {names[1]}: {len(worse)} grew or broke, {len(better)} changed otherwise, {equal} equal"]
    return lines + [f"  {line}" for line in (*worse, *better)]


def _keys(*sides: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(key for side in sides for key in side))
