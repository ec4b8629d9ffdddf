"""The other end of `build_many`: `python -m stencil_dsl.toolchain.worker FD CACHE FOLDER`.

Receives one BuildRequest at a time through the pipe and answers with an Entry or a ToolchainError, until
the pipe closes.
"""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection
from pathlib import Path

from stencil_dsl.errors import ToolchainError
from stencil_dsl.toolchain.builder import build
from stencil_dsl.toolchain.cache import KernelCache
from stencil_dsl.toolchain.entry import Entry


def main(descriptor: int, cache_root: str, folder: str) -> None:
    """Serve requests; temporary files lie below `folder`, which the parent removes."""
    cache = KernelCache(cache_root)
    with Connection(descriptor) as pipe:
        while True:
            try:
                request = pipe.recv()
            except EOFError:
                return
            answer: Entry | ToolchainError
            try:
                answer = build(
                    request.source,
                    request.function,
                    request.params,
                    symbol=request.symbol,
                    arch=request.arch,
                    toolkit=request.toolkit,
                    cache=cache,
                    opt_level=request.opt_level,
                    remarks=request.remarks,
                    timeout=request.timeout,
                    meta=request.meta,
                    temporary=Path(folder),
                    libraries=request.libraries,
                )
            except ToolchainError as error:
                error.__cause__ = error.__context__ = None
                answer = error
            except Exception as error:
                answer = ToolchainError(f"{type(error).__name__}: {error}")
            pipe.send(answer)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
