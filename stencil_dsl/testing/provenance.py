"""Where figures come from: versions, device, commit, command line. No host names and no absolute paths."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

#: Distributions whose versions belong to a record: name in the record -> names on the index, first found
#: counts.
_DISTRIBUTIONS = {
    "cuda_tile": ("cuda-tile",),
    "tileiras": ("nvidia-cuda-tileiras",),
    "nvvm": ("nvidia-nvvm",),
    "ptxas": ("nvidia-cuda-nvcc",),
    "numpy": ("numpy",),
    "cupy": ("cupy-cuda13x", "cupy-cuda12x", "cupy"),
    "xdsl": ("xdsl",),
    "pytest": ("pytest",),
    "triton": ("triton",),
    "jax": ("jax",),
}


@cache
def commit(root: Path) -> str:
    """Short commit; with ``-dirty-<hash of the changes>`` when files differ from it; "unknown" outside a
    repository.
    """
    head = _git(root, "rev-parse", "--short=10", "HEAD")
    if not head:
        return "unknown"
    # Results are written by runs themselves and must not make the next run look different.
    changes = _git(root, "diff", "HEAD", "--", ".", ":(exclude)results")
    return head if not changes else f"{head}-dirty-{hashlib.sha256(changes.encode()).hexdigest()[:8]}"


def versions() -> dict[str, str]:
    """Versions of installed distributions that matter to a figure."""
    found = {}
    for name, candidates in _DISTRIBUTIONS.items():
        for candidate in candidates:
            try:
                found[name] = metadata.version(candidate)
                break
            except metadata.PackageNotFoundError:
                continue
    return found


def provenance(root: Path, argv: tuple[str, ...], rounds: int, device: Mapping[str, Any] | None) -> dict[str, Any]:
    """The first line of a record file, except for the time."""
    return {
        "kind": "provenance",
        "commit": commit(root),
        "argv": [argument.replace(str(root), ".") for argument in argv],
        "rounds": rounds,
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "versions": versions(),
        "device": dict(device) if device else None,
    }


def resume_key(facts: Mapping[str, Any]) -> str:
    """Equal for runs whose records may be mixed: same code, tools, device and rounds."""
    same = {name: facts[name] for name in ("commit", "rounds", "python", "versions", "device")}
    return hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()[:16]


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
