"""GPUs as data: what the ranking model knows about a target."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Target:
    """Rates of one GPU.

    Attributes:
        arch: what kernels are compiled for.
        sms: streaming multiprocessors.
        clock: sustained SM clock in Hz.
        hbm: device memory bandwidth, bytes/s (a copy's, reads and writes together).
        l2: bandwidth between L2 and the SMs, bytes/s.
        l1: bytes a clock and SM that loads return.
        fp64, fp32: additions, multiplications or fused pairs a clock and SM.
        issue: warp instructions a clock and SM.
        lsu: instructions a clock and SM of the load/store unit: shuffles, and loads and stores for each 128 bytes.
        registers, threads, blocks: of an SM, the last two at a time.
        l2_bytes: capacity of the L2.
        measured: whether bandwidths were measured rather than taken from a data sheet.
    """

    name: str
    arch: str
    sms: int
    clock: float
    hbm: float
    l2: float
    l1: float = 128.0
    fp64: float = 64.0
    fp32: float = 128.0
    issue: float = 4.0
    lsu: float = 1.0
    registers: int = 65536
    threads: int = 2048
    blocks: int = 32
    l2_bytes: int = 50_000_000
    measured: bool = False

    def with_ceilings(self, **ceilings: float) -> Target:
        """The same GPU with rates that were measured on it."""
        return replace(self, **ceilings, measured=True)  # type: ignore[arg-type]


H200 = Target("NVIDIA H200", "sm_90", 132, 1.755e9, 4.28e12, 7.5e12, l1=115.0, l2_bytes=60_000_000)
"""Clock and copy bandwidth as measured; `l2` and `l1` are those with which the model ranks best."""

TARGETS: dict[str, Target] = {
    "sm_80": Target("A100", "sm_80", 108, 1.3e9, 1.7e12, 4.5e12, fp64=32, fp32=64, l2_bytes=40_000_000),
    "sm_86": Target("GA102", "sm_86", 84, 1.7e9, 0.85e12, 2.5e12, fp64=2, l2_bytes=6_000_000, blocks=16),
    "sm_89": Target("AD102", "sm_89", 128, 2.2e9, 0.9e12, 4.0e12, fp64=2, l2_bytes=72_000_000, blocks=24),
    "sm_90": H200,
    "sm_100": Target("B200", "sm_100", 148, 1.8e9, 7.0e12, 10e12, l2_bytes=126_000_000),
    "sm_120": Target("GB202", "sm_120", 170, 2.2e9, 1.6e12, 6.0e12, fp64=2, l2_bytes=96_000_000),
}
"""Data-sheet rates, apart from the H200's, which were measured; kernels run anywhere, only the ranking uses these."""


def target_for(arch: str) -> Target:
    """The GPU assumed for an architecture; unknown ones rank like the H200."""
    return TARGETS.get(arch, replace(H200, arch=arch, name=f"assumed like {H200.name}"))
