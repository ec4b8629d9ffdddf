"""Toolkits put together from the tools of several releases, to learn which of the three made a difference."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
from pathlib import Path

from stencil_dsl.errors import ToolchainError
from stencil_dsl.toolchain.kit import Toolkit, open_toolkit
from stencil_dsl.toolchain.paths import cache_root

_TOOLS = ("tileiras", "nvvm", "ptxas")


def compose(
    tileiras: Toolkit | str,
    nvvm: Toolkit | str | None = None,
    ptxas: Toolkit | str | None = None,
) -> Toolkit:
    """A toolkit with tileiras of one, libnvvm and ptxas of others (None: like tileiras).

    It is a folder of links in the cache, used as CUDA_HOME. Composing works for every pair; that the
    tools do not understand each other shows when compiling, as a ToolError with tileiras' words.
    Raises ToolchainError where one of them is not installed or the folder cannot be written.
    """
    from stencil_dsl.toolchain.discover import find

    kits = [k if isinstance(k, Toolkit) else find(k) for k in (tileiras, nvvm or tileiras, ptxas or tileiras)]
    if kits[0].root == kits[1].root == kits[2].root:
        return kits[0]
    name = kits[0].name
    for tool, kit in zip(_TOOLS[1:], kits[1:], strict=True):
        if kit.root != kits[0].root:
            name += f"+{tool}-{kit.name}"
    links = {
        "bin/tileiras": kits[0].tileiras,
        "bin/ptxas": kits[2].ptxas,
        "nvvm/lib64/libnvvm.so": kits[1].nvvm,
        "lib/libnvvm.so.4": kits[1].nvvm,
    }
    root = _link_folder({place: file.resolve() for place, file in links.items()})
    return open_toolkit(root, name, nvdisasm=kits[0].nvdisasm, tileirdisasm=kits[0].tileirdisasm)


def parse_composition(name: str) -> dict[str, str]:
    """ "13.5+nvvm-13.4" -> {"tileiras": "13.5", "nvvm": "13.4"}. Raises ToolchainError on anything else."""
    base, *others = name.split("+")
    result = {"tileiras": base.removeprefix("tileiras-")}
    for other in others:
        tool, dash, version = other.partition("-")
        if tool not in _TOOLS[1:] or not dash or not version or tool in result:
            raise ToolchainError(
                f"{name!r} names no composition: after the tileiras release come +nvvm-RELEASE and "
                "+ptxas-RELEASE, for example 13.5+nvvm-13.4+ptxas-13.5"
            )
        result[tool] = version
    return result


def _link_folder(links: dict[str, Path]) -> Path:
    """A folder of links, made once and named by what it holds."""
    digest = hashlib.sha256("\n".join(f"{p} {f}" for p, f in sorted(links.items())).encode()).hexdigest()[:12]
    folder = cache_root() / "composed" / digest
    if all((folder / place).exists() for place in links):
        return folder
    draft = folder.with_name(f".{digest}-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        for place, file in links.items():
            (draft / place).parent.mkdir(parents=True, exist_ok=True)
            (draft / place).symlink_to(file)
        if folder.exists():  # a link in it leads nowhere
            shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # another process may have been faster
            os.rename(draft, folder)
    except OSError as error:
        raise ToolchainError(f"cannot write the link folder {folder}: {error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder
