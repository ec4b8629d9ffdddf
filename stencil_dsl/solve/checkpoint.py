"""Checkpoints: one file, complete or not there at all."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stencil_dsl.errors import StencilError
from stencil_dsl.solve.views import Profile

if TYPE_CHECKING:
    from stencil_dsl.solve.loop import TimeLoop

FORMAT = 1


def write(path: str | Path, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
    """Write arrays and facts (JSON values) to an .npz file; a crash leaves the earlier file, if any, as it was."""
    path = Path(path)
    buffer = io.BytesIO()
    text = json.dumps({**facts, "format": FORMAT}, sort_keys=True)
    np.savez(buffer, allow_pickle=False, facts=np.frombuffer(text.encode(), np.uint8), **_prefixed(arrays))
    # Always the same name: what a killed run leaves behind is overwritten by the next one.
    temporary = path.with_name(f".{path.name}.partial")
    with open(temporary, "wb") as file:
        file.write(buffer.getbuffer())
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


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


def save(loop: TimeLoop, path: str | Path) -> None:
    """Write the state of a loop; fields that no step changes with their ghost cells, which may be the user's.

    With several ranks the first one writes the whole state, so that any number of ranks can continue.
    """
    arrays: dict[str, np.ndarray] = {}
    halo, box = loop.program.halo, loop.domain.box
    for name in loop.fields:
        array = loop[name]
        if isinstance(array, Profile):
            continue
        if name not in loop.lasting:
            arrays[name] = loop.to_numpy(name)
            continue
        data = array.with_halo(halo)
        wide = tuple((lo, hi + sum(w)) for (lo, hi), w in zip(box, halo, strict=True))
        shape = [n + sum(w) for n, w in zip(loop.shape, halo, strict=True)]
        arrays[name] = loop.ranks.assemble(data.get() if array.device == "gpu" else np.array(data), wide, shape)
    arrays |= {f"receiver {n}": loop.samples(r) for n, r in enumerate(loop.receivers)}
    if loop.ranks.transport.rank == 0:
        write(path, arrays, {"step": loop.step, "identity": loop.identity})
    loop.ranks.transport.barrier()


def load(loop: TimeLoop, path: str | Path) -> None:
    """Put a loop into a saved state.

    Raises:
        StencilError: where the file is no checkpoint, or belongs to another program, shape or element type.
    """
    arrays, facts = read(path)
    if facts["identity"] != loop.identity:
        raise StencilError(f"{path} was written by another program, or for another shape or element type")
    for n, receiver in enumerate(loop.receivers):
        receiver.blocks = [arrays[f"receiver {n}"][:, receiver.mine]] if f"receiver {n}" in arrays else []
    for name in loop.fields:
        if name in arrays:
            loop.set(name, arrays[name], includes_halo=name in loop.lasting)
    loop.step = int(facts["step"])
