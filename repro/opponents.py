"""Who competes in the nine-row table: ids that are known without compiling or importing anything heavy.

Each configuration of a baseline is a variant of its own, timed in the same rounds; the table picks the best of a kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stencil_dsl.testing.question import Variant

#: How many of `configs` of each kind take part, where the first ones listed there are the best guesses.
_FIRST = {"stream": 3, "trans": 2}
#: What a user would otherwise write: at the large size only, because it compiles on the device.
LIBRARIES = ("cupy-elementwise", "jax")
LIBRARY_SIZE = 512
#: Written by hand for the comparison.
_WRITTEN = ("arr", "stream", "trans")
#: Kinds of which the table shows the best configuration.
KINDS = ("arr", "stream", "trans", "published", "triton", "cupy", "jax")


def chosen(kind: str, row: str) -> list[dict[str, Any]]:
    """Configurations of a kind that take part for a row, the first being the one that is compiled without a device."""
    from repro.baselines.base import configs

    if kind == "published":
        from repro.baselines import published

        return list(published.configs(row))
    found = configs(kind, row)
    if kind == "triton":  # a version with masked loads, one without
        masked = next(c for c in found if c["load"] == "masked")
        return [masked, next(c for c in found if c["load"] == "wide" and (c["y"], c["z"]) == (1, 128))]
    return found[: _FIRST.get(kind, len(found))]


def name(kind: str, config: dict[str, Any]) -> str:
    """As `repro.baselines.base.Baseline.id`, without making the baseline."""
    return "-".join([kind, *(f"{key}{value}" for key, value in config.items())])


def ids(row: str, size: int) -> list[str]:
    """Variant ids of all opponents of a row at a size, each kind's default configuration first."""
    kinds = (*_WRITTEN, "published", *(["triton"] if size == LIBRARY_SIZE else []))
    found = [name(kind, config) for kind in kinds for config in chosen(kind, row)]
    return found + list(LIBRARIES) * (size == LIBRARY_SIZE)


def defaults(row: str) -> set[str]:
    """Ids of the configurations that stand for their kind where nothing is timed."""
    return {name(kind, chosen(kind, row)[0]) for kind in (*_WRITTEN, "published")}


def made(row: str, size: int) -> list[Variant]:
    """The opponents as variants, in the order of `ids`."""
    from repro.baselines.base import generator
    from repro.baselines.harness import BaselineVariant, CupyVariant, JaxVariant
    from repro.baselines.published import PublishedVariant

    shape = (size,) * 3
    found: list[Variant] = []
    for kind in _WRITTEN:
        for config in chosen(kind, row):
            found.append(BaselineVariant(generator(kind)(row, shape, config), name(kind, config)))
    found += [PublishedVariant(row, shape, c, name("published", c)) for c in chosen("published", row)]
    if size == LIBRARY_SIZE:
        for config in chosen("triton", row):
            found.append(BaselineVariant(generator("triton")(row, shape, config), name("triton", config)))
        found += [CupyVariant(row, shape), JaxVariant(row, shape)]
    return found


def kind_of(variant: str) -> str:
    """The kind that a configuration belongs to: "arr-b8x8x8" is "arr"; of anything else its own name."""
    return next((kind for kind in KINDS if variant.startswith(f"{kind}-") or variant == kind), variant)


def absent(row: Mapping[str, Any]) -> bool:
    """True for a record of something that is not installed and that nobody asked for by name: no failure of a run."""
    return str(row.get("failure", "")).startswith("NotInstalled:")
