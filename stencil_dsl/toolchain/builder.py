"""A kernel from the cache, or from the compiler and then into the cache."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stencil_dsl.errors import ToolchainError
from stencil_dsl.toolchain import cutile_adapter
from stencil_dsl.toolchain.cache import KernelCache, describe_request
from stencil_dsl.toolchain.discover import find
from stencil_dsl.toolchain.entry import Entry
from stencil_dsl.toolchain.export import Artifact, compile_source
from stencil_dsl.toolchain.kit import Toolkit
from stencil_dsl.toolchain.resources import examine
from stencil_dsl.toolchain.signature import Param, params_from_json

if TYPE_CHECKING:
    from stencil_dsl.tilelib import TileLibrary


def build(
    source: str,
    function: str,
    params: Sequence[Param],
    *,
    symbol: str,
    arch: str,
    toolkit: Toolkit | str | None = None,
    cache: KernelCache | None = None,
    opt_level: int | None = None,
    remarks: bool = True,
    timeout: float | None = 300,
    meta: dict[str, Any] | None = None,
    temporary: Path | None = None,
    libraries: Sequence[TileLibrary] = (),
) -> Entry:
    """Give the kernel of a request (arguments as in `compile_source`).

    A toolkit that is not there is no error as long as the cache has the kernel, made by the tools that
    were asked for, or by the newest ones where none were. Where those tools refused it, their error is
    raised again.

    Raises:
        ToolchainError: not in the cache and not to be compiled here; the message says what to do where.
            Or the compile failed.
    """
    cache = cache or KernelCache()
    key, kit, entry = plan(source, function, params, symbol, arch, opt_level, toolkit, cache, libraries)
    if kit is None:
        assert entry is not None
        return entry
    if entry is not None:  # it was made where no nvdisasm was at hand: complete it
        cache.remove(entry)
        known = entry.meta
        artifact = Artifact(
            entry.bytecode,
            entry.cubin,
            entry.remarks,
            known.get("seconds", 0.0),
            tuple(known.get("warnings", ())),
        )
    else:
        try:
            artifact = compile_source(
                source,
                function,
                params,
                symbol=symbol,
                arch=arch,
                toolkit=kit,
                opt_level=opt_level,
                remarks=remarks,
                timeout=timeout,
                temporary=temporary,
                libraries=libraries,
            )
        except ToolchainError as error:
            cache.refuse(key, kit, error)
            raise
    resources, text = examine(artifact.cubin, kit, symbol)
    facts: dict[str, Any] = {"arch": arch, "function": function, "symbol": symbol, "opt_level": opt_level}
    facts |= {"toolkit": kit.name, "seconds": round(artifact.seconds, 3)}
    if artifact.warnings:
        facts["warnings"] = list(artifact.warnings)
    facts |= meta or {}
    return cache.store(key, kit, artifact, resources, facts, source=source, sass=text)


def plan(
    source: str,
    function: str,
    params: Sequence[Param],
    symbol: str,
    arch: str,
    opt_level: int | None,
    toolkit: Toolkit | str | None,
    cache: KernelCache,
    libraries: Sequence[TileLibrary] = (),
) -> tuple[str, Toolkit | None, Entry | None]:
    """What a request needs: its key, the toolkit to compile with (None: nothing to do), the entry found.

    Toolkit and entry together mean an entry that lacks its SASS. Raises ToolchainError where the kernel
    is neither in the cache nor can be compiled.
    """
    key = cache.request_key(source, function, params, symbol, arch, opt_level, libraries)
    try:
        kit = usable_toolkit(toolkit)
    except ToolchainError as error:
        named = toolkit if toolkit is not None else os.environ.get("STENCIL_DSL_TOOLKIT") or None
        entry = cache.lookup(key, named)
        if entry is not None:
            return key, None, entry
        refused = cache.refusal(key, named) if named is None or isinstance(named, str) else None
        if refused is not None:
            raise refused from None
        request = describe_request(source, function, params, symbol, arch, opt_level, libraries)
        raise _missing(cache, key, request, named, error) from error
    entry = cache.lookup(key, kit)
    complete = entry is not None and (entry.sass is not None or kit.nvdisasm is None)
    return key, None if complete else kit, entry


def usable_toolkit(toolkit: Toolkit | str | None) -> Toolkit:
    """The toolkit, if this machine can compile with it; raises ToolchainError saying why not."""
    if isinstance(toolkit, Toolkit):
        return toolkit
    if not cutile_adapter.available():
        raise ToolchainError("cuda.tile is not installed here: pip install 'stencil-dsl[toolchain]'")
    return find(toolkit)


def build_request(request: dict[str, Any], **options: Any) -> Entry:
    """`build` for a request that a machine without toolkit wrote down (a file in `<cache>/wanted`)."""
    from stencil_dsl.tilelib import TileLibrary

    return build(
        request["source"],
        request["function"],
        params_from_json(request["params"]),
        symbol=request["symbol"],
        arch=request["arch"],
        opt_level=request["opt_level"],
        libraries=[TileLibrary.from_json(values) for values in request.get("libraries", ())],
        **{"toolkit": request.get("toolkit"), **options},
    )


def _missing(
    cache: KernelCache,
    key: str,
    request: dict[str, Any],
    toolkit: Toolkit | str | None,
    reason: ToolchainError,
) -> ToolchainError:
    """Write the request down, and say how it gets compiled elsewhere and brought here."""
    name = toolkit if isinstance(toolkit, str) else None
    wanted = cache.root / "wanted" / f"{request['symbol']}-{request['arch']}-{key[:12]}.json"
    steps = [
        "run the same program where a toolkit is installed (no GPU is needed there)",
        "python -m stencil_dsl.toolchain cache export FOLDER   (there)",
        "python -m stencil_dsl.toolchain cache import FOLDER   (here)",
    ]
    with contextlib.suppress(OSError):
        wanted.parent.mkdir(parents=True, exist_ok=True)
        wanted.write_text(json.dumps(request | {"toolkit": name}, indent=1))
        copied = shlex.quote(str(wanted))
        steps[0] += f", or copy {copied} there and: python -m stencil_dsl.toolchain build {wanted.name}"
    listed = "\n".join(f"    {n}. {step}" for n, step in enumerate(steps, start=1))
    return ToolchainError(
        f"kernel {request['symbol']!r} for {request['arch']} is not in the cache {cache.root} (request "
        f"{key[:12]}, tools {name or 'any'}), and it cannot be compiled here: {reason}\n"
        f"  to get it:\n{listed}"
    )
