"""`python -m stencil_dsl.toolchain`: install and look at toolkits, carry the kernel cache, build requests."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from stencil_dsl.errors import ToolchainError
from stencil_dsl.toolchain.kit import Toolkit


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (1: a ToolchainError, printed to stderr)."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except ToolchainError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m stencil_dsl.toolchain", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    add = commands.add_parser("install", help="download toolkits and unpack them side by side")
    add.add_argument("releases", nargs="+", metavar="RELEASE", help="for example 13.4, or exactly 13.4.92")
    add.add_argument("--force", action="store_true", help="replace what is installed")
    add.set_defaults(run=_install)

    add = commands.add_parser("list", help="toolkits on this machine")
    add.set_defaults(run=_list)

    add = commands.add_parser("show", help="files and versions of one toolkit")
    add.add_argument("toolkit", nargs="?", help="name, folder or composition; the default one if left out")
    add.set_defaults(run=_show)

    add = commands.add_parser("build", help="compile requests that another machine wrote down")
    add.add_argument("files", nargs="+", type=Path, metavar="FILE", help="from CACHE/wanted of that machine")
    add.add_argument("--toolkit", help="instead of the one that the request names")
    add.set_defaults(run=_build)

    cache = commands.add_parser("cache", help="look at the kernel cache, or carry it to another machine")
    cache.add_argument("--root", type=Path, help="another cache folder than the default")
    actions = cache.add_subparsers(required=True, metavar="ACTION")
    actions.add_parser("list", help="one line a kernel").set_defaults(run=_cache_list)
    actions.add_parser("clear", help="remove all kernels").set_defaults(run=_cache_clear)
    for name, run, where in (("export", _cache_export, "to"), ("import", _cache_import, "from")):
        add = actions.add_parser(name, help=f"{name} all kernels {where} a folder")
        add.add_argument("folder", type=Path)
        add.set_defaults(run=run)
    return parser


def _install(options: argparse.Namespace) -> None:
    from stencil_dsl.toolchain.installer import install

    for release in options.releases:
        install(release, force=options.force)


def _list(options: argparse.Namespace) -> None:
    from stencil_dsl.toolchain.discover import find, side_by_side, wheel_versions

    names: list[tuple[str | None, str]] = [(None, "default")]
    names += [(str(folder), "side by side") for folder in side_by_side()]
    for name, kind in names:
        try:
            kit = find(name)
        except ToolchainError as error:
            print(f"{kind}: {error}")
            continue
        versions = ", ".join(f"{tool} {version}" for tool, version in kit.versions.as_dict().items())
        print(f"{kit.name:<8} {kind:<13} {versions}, bytecode {kit.bytecode_version}  {kit.root}")
    if wheel_versions():
        print("wheels: " + ", ".join(f"{name} {version}" for name, version in wheel_versions().items()))


def _show(options: argparse.Namespace) -> None:
    from stencil_dsl.toolchain.discover import find

    print("\n".join(describe(find(options.toolkit))))


def describe(kit: Toolkit) -> list[str]:
    """Lines that say everything about a toolkit."""
    lines = [f"toolkit       {kit.name}", f"root          {kit.root}"]
    lines += [f"{tool:<13} {version}" for tool, version in kit.versions.as_dict().items()]
    lines += [f"bytecode      {kit.bytecode_version}", f"cache key     {kit.key}"]
    for label in ("tileiras", "nvvm", "ptxas", "nvdisasm", "tileirdisasm"):
        lines.append(f"  {label:<12} {getattr(kit, label) or 'not found'}")
    return lines


def _build(options: argparse.Namespace) -> None:
    from stencil_dsl.toolchain.builder import build_request

    for file in options.files:
        try:
            request = json.loads(file.read_text())
        except (OSError, ValueError) as error:
            raise ToolchainError(f"{file} is no request: {error}") from error
        named = {"toolkit": options.toolkit} if options.toolkit else {}
        entry = build_request(request, **named)
        print(f"{entry.resources.symbol}: {entry.resources.registers} registers, in {entry.path}")


def _cache(options: argparse.Namespace):
    from stencil_dsl.toolchain.cache import KernelCache

    return KernelCache(options.root)


def _cache_list(options: argparse.Namespace) -> None:
    cache = _cache(options)
    count = size = 0
    for entry in cache.entries():
        count += 1
        size += len(entry.cubin)
        versions = "/".join(entry.tool_versions.get(t, "?") for t in ("tileiras", "nvvm", "ptxas"))
        use = entry.resources
        print(
            f"{entry.request_key[:12]}  {use.symbol:<24} {entry.meta.get('arch', '?'):<7} {versions:<27} "
            f"{use.registers} registers, {use.instructions or '?'} instructions"
        )
    print(f"{count} kernels, {size / 1e6:.1f} MB of cubins, in {cache.root}")


def _cache_clear(options: argparse.Namespace) -> None:
    cache = _cache(options)
    print(f"{cache.clear()} kernels removed from {cache.root}")


def _cache_export(options: argparse.Namespace) -> None:
    _copy(options, to_folder=True)


def _cache_import(options: argparse.Namespace) -> None:
    if not options.folder.is_dir():
        raise ToolchainError(f"{options.folder} is no folder; export one with: cache export FOLDER")
    _copy(options, to_folder=False)


def _copy(options: argparse.Namespace, to_folder: bool) -> None:
    from stencil_dsl.toolchain.cache import KernelCache

    ours, theirs = _cache(options), KernelCache(options.folder)
    source, target = (ours, theirs) if to_folder else (theirs, ours)
    try:
        copied, present = source.copy_to(target)
    except OSError as error:
        raise ToolchainError(f"cannot write to {target.root}: {error}") from error
    print(f"{copied} kernels copied to {target.root}, {present} were there already")


if __name__ == "__main__":
    sys.exit(main())
