"""What a toolkit is: the three tools that turn Tile IR into a cubin, and those that read one."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from stencil_dsl.errors import ToolchainError
from stencil_dsl.toolchain.versions import (
    UNKNOWN,
    library_facts,
    package_version,
    parts,
    program_facts,
    release,
)

# Highest Tile IR bytecode that cuda-tile 1.7.0 writes without its development switch. tileiras 13.5
# reads 13.5 as well, but the frontend holds it back.
NEWEST_BYTECODE = "13.4"

# Places of libnvvm below a toolkit's root, in the order in which tileiras tries them.
NVVM_PLACES = ("nvvm/lib64/libnvvm.so", "lib/libnvvm.so.4", "nvvm/lib64/libnvvm.so.4", "lib64/libnvvm.so.4")


@dataclass(frozen=True)
class ToolVersions:
    """Exact versions of what takes part in a compile; "unknown" or "none" where there is nothing to read."""

    tileiras: str
    nvvm: str
    ptxas: str
    cuda_tile: str

    def as_dict(self) -> dict[str, str]:
        """Tool name to version, in the order of the compile."""
        return {
            "cuda-tile": self.cuda_tile,
            "tileiras": self.tileiras,
            "nvvm": self.nvvm,
            "ptxas": self.ptxas,
        }


@dataclass(frozen=True)
class Toolkit:
    """One set of tools, found by `find` or put together by `compose`.

    Attributes:
        name: what the user calls it: "13.5", or "13.5+nvvm-13.4" for a composed one.
        root: folder used as CUDA_HOME; tileiras takes libnvvm and ptxas from there.
        tileiras, ptxas, nvvm: the files that compile.
        nvdisasm, tileirdisasm: the files that read results back; they may belong to another release
            (newer ones read the output of older tools), None where none was found.
        versions: read from the tools.
        bytecode_version: newest Tile IR bytecode that both tileiras and the frontend know.
        key: names this exact set in the kernel cache: versions and a hash of the three files' content.
    """

    name: str
    root: Path
    tileiras: Path
    ptxas: Path
    nvvm: Path
    nvdisasm: Path | None
    tileirdisasm: Path | None
    versions: ToolVersions
    bytecode_version: str
    key: str

    @property
    def release(self) -> str:
        """ "13.5": the release of tileiras."""
        return release(self.versions.tileiras)

    @property
    def writes_remarks(self) -> bool:
        """Whether tileiras can explain its choices (`--remarks`), from 13.3 on."""
        return parts(self.versions.tileiras) >= (13, 3)

    @property
    def unchecked_access(self) -> bool:
        """Whether `check_bounds=False` exists in this bytecode (13.4 on)."""
        return parts(self.bytecode_version) >= (13, 4)

    def environment(self, temporary: Path) -> dict[str, str]:
        """Environment for tileiras: this root and no other, temporary files below `temporary`.

        tileiras prefers CUDA_ROOT, CUDA_HOME and CUDA_PATH to the folder that it lies in, so all three
        are set here, never inherited.
        """
        env = {k: v for k, v in os.environ.items() if k not in ("CUDA_ROOT", "CUDA_HOME", "CUDA_PATH")}
        env["CUDA_HOME"] = str(self.root)
        env["PATH"] = os.pathsep.join([str(self.root / "bin"), env.get("PATH", os.defpath)])
        env["TMPDIR"] = str(temporary)
        return env


def bytecode_for(tileiras_version: str, listed: tuple[str, ...]) -> str:
    """Newest bytecode version that a tileiras takes and the frontend writes.

    tileiras lists its versions from 13.3 on; 13.2 does not and takes its own release at most.
    """
    usable = [v for v in listed if parts(v) <= parts(NEWEST_BYTECODE)]
    if usable:
        return max(usable, key=parts)
    own = release(tileiras_version)
    return own if tileiras_version != UNKNOWN and parts(own) < parts(NEWEST_BYTECODE) else NEWEST_BYTECODE


def find_nvvm(root: Path) -> Path | None:
    """libnvvm below a toolkit's root, None where there is none."""
    return next((root / p for p in NVVM_PLACES if (root / p).is_file()), None)


def open_toolkit(
    root: Path,
    name: str | None = None,
    *,
    nvdisasm: Path | None = None,
    tileirdisasm: Path | None = None,
) -> Toolkit:
    """Read the toolkit in folder `root` (bin/tileiras, bin/ptxas, libnvvm).

    `nvdisasm` and `tileirdisasm` are used where the folder has none. Raises ToolchainError naming the
    missing file.
    """
    root = root.absolute()
    tileiras, ptxas, nvvm = root / "bin/tileiras", root / "bin/ptxas", find_nvvm(root)
    for tool in (tileiras, ptxas):
        if not os.access(tool, os.X_OK):
            raise ToolchainError(f"no toolkit in {root}: bin/{tool.name} is missing or not executable")
    if nvvm is None:
        raise ToolchainError(f"no toolkit in {root}: libnvvm is missing, looked at {', '.join(NVVM_PLACES)}")
    facts = (program_facts(tileiras), library_facts(nvvm), program_facts(ptxas))
    versions = ToolVersions(
        tileiras=facts[0].version,
        nvvm=facts[1].version,
        ptxas=facts[2].version,
        cuda_tile=package_version("cuda-tile") or "none",
    )
    content = hashlib.sha256("".join(f.sha256 for f in facts).encode()).hexdigest()[:12]
    key = f"tileiras{versions.tileiras}-nvvm{versions.nvvm}-ptxas{versions.ptxas}-cutile{versions.cuda_tile}-{content}"
    return Toolkit(
        name=name or release(versions.tileiras),
        root=root,
        tileiras=tileiras,
        ptxas=ptxas,
        nvvm=nvvm,
        nvdisasm=_own(root / "bin/nvdisasm") or nvdisasm,
        tileirdisasm=_own(root / "bin/tileirdisasm") or tileirdisasm,
        versions=versions,
        bytecode_version=bytecode_for(versions.tileiras, facts[0].bytecode),
        key=key,
    )


def _own(path: Path) -> Path | None:
    return path if os.access(path, os.X_OK) else None
