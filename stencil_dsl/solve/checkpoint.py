"""Checkpoints: one file, complete or not there at all."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stencil_dsl.errors import StencilError

FORMAT = 1


def write(path: str | Path, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
    """Write arrays and facts (JSON values) to an .npz file; a crash leaves the earlier file, if any, as it was."""
    path = Path(path)
    buffer = io.BytesIO()
    text = json.dumps({**facts, "format": FORMAT}, sort_keys=True)
    np.savez(buffer, allow_pickle=False, facts=np.frombuffer(text.encode(), np.uint8), **_prefixed(arrays))
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            file.write(buffer.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def read(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and facts of a checkpoint.

    Raises:
        StencilError: where the file is none.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            facts = json.loads(file["facts"].tobytes())
            arrays = {name.removeprefix("field."): file[name] for name in file.files if name != "facts"}
    except FileNotFoundError:
        raise StencilError(f"there is no checkpoint {path}") from None
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise StencilError(f"{path} is no checkpoint of this package: {error}") from error
    if facts.get("format") != FORMAT:
        raise StencilError(f"{path} is a checkpoint of format {facts.get('format')}, this version reads {FORMAT}")
    return arrays, facts


def _prefixed(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {f"field.{name}": value for name, value in arrays.items()}
