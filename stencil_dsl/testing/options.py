"""Command-line options of the harness, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

#: What is compiled for when neither --arch nor a device says otherwise.
DEFAULT_ARCH = "sm_90"
#: Fewer rounds cannot give a 95 % order-statistic interval with a margin for dropped rounds.
MIN_ROUNDS = 9


def add(parser: pytest.Parser) -> None:
    group = parser.getgroup("stencil", "stencil benchmark harness")
    group.addoption(
        "--gpu", action="store_true", help="time on a device and check values there; no device is a failure"
    )
    group.addoption("--gpu-device", type=int, default=0, metavar="N", help="number of the device (default 0)")
    group.addoption(
        "--arch",
        action="append",
        metavar="sm_XX",
        help="compile for this architecture; may be given several times",
    )
    group.addoption(
        "--toolkit",
        action="append",
        metavar="VERSION",
        help="compile with this toolkit; may be given several times",
    )
    group.addoption("--rounds", type=int, default=MIN_ROUNDS, metavar="R", help=f"timing rounds, at least {MIN_ROUNDS}")
    group.addoption("--results", metavar="DIR", help="folder for records (default: results/ under the root folder)")
    group.addoption("--golden", action="store_true", help="compare compile-time facts with the golden files")
    group.addoption("--update-golden", action="store_true", help="write the golden files of this tool set")
    group.addoption(
        "--fresh", action="store_true", help="measure what an earlier run of the same code and tools found again"
    )
    group.addoption(
        "--ncu",
        action="store_true",
        help="with --gpu: also read each variant's traffic and occupancy by Nsight Compute",
    )
    group.addoption("--dump", metavar="DIR", help="write source, Tile IR, SASS and remarks of every variant to DIR")


def check(config: pytest.Config) -> None:
    """Refuses combinations that cannot mean anything (exit code 4)."""
    if config.option.rounds < MIN_ROUNDS:
        raise pytest.UsageError(
            f"--rounds {config.option.rounds}: at least {MIN_ROUNDS} rounds are needed for an interval"
        )
    if config.option.golden and config.option.update_golden:
        raise pytest.UsageError("--golden compares and --update-golden writes: give one of them")
    if config.option.ncu:
        from stencil_dsl.testing import profiling

        if not config.option.gpu:
            raise pytest.UsageError("--ncu reads a device's counters: give --gpu too")
        if profiling.find() is None:
            raise pytest.UsageError(profiling.missing())
    for arch in config.option.arch or ():
        if not arch.startswith("sm_"):
            raise pytest.UsageError(f"--arch {arch}: architectures are written sm_90, sm_120, ...")


@dataclass(frozen=True)
class Settings:
    """The options as the other modules want them."""

    gpu: bool
    device_number: int
    device_class: str
    archs: tuple[str, ...]
    toolkits: tuple[str | None, ...]
    rounds: int
    results: Path
    ncu: bool
    dump: Path | None


_KEY: pytest.StashKey[Settings] = pytest.StashKey()


def settings(config: pytest.Config) -> Settings:
    """The session's settings. Reads the device's architecture (without touching CUDA) when --gpu has no
    --arch.
    """
    if _KEY in config.stash:
        return config.stash[_KEY]
    option = config.option
    device_class = config.hook.pytest_stencil_device(config=config) or "stencil_dsl.testing.cupy_device:CupyDevice"
    archs = tuple(dict.fromkeys(option.arch or ()))
    if not archs:
        archs = (DEFAULT_ARCH,)
        if option.gpu:
            from stencil_dsl.testing.device import describe

            info = describe(device_class, option.gpu_device)
            if info is not None:
                archs = (info.arch,)
    results = Path(option.results) if option.results else config.rootpath / "results"
    value = Settings(
        gpu=option.gpu,
        device_number=option.gpu_device,
        device_class=device_class,
        archs=archs,
        toolkits=tuple(dict.fromkeys(option.toolkit or ())) or (None,),
        rounds=option.rounds,
        results=results if results.is_absolute() else config.invocation_params.dir / results,
        ncu=option.ncu,
        dump=(config.invocation_params.dir / option.dump) if option.dump else None,
    )
    config.stash[_KEY] = value
    return value
