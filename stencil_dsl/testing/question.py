"""What is measured: a `Question` is answered by several `Variant`s that compute the same thing
differently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import numpy as np

    from stencil_dsl.testing.bench import Bench

#: ``source(lo, shape, xp)``: the values at coordinates lo .. lo + shape (relative to the interior's origin,
#: so halo coordinates are negative), as an array of the module xp (numpy or cupy).
Source = Callable[[tuple[int, ...], tuple[int, ...], Any], Any]
#: ``reference(lo, shape)``: every output's expected values on that box, by NumPy on the host.
Reference = Callable[[tuple[int, ...], tuple[int, ...]], "Sequence[np.ndarray]"]


@dataclass(frozen=True)
class Target:
    """What a variant is compiled for; toolkit None means the default one."""

    arch: str
    toolkit: str | None = None


@dataclass
class Prepared:
    """A variant on a device, ready to be launched again and again.

    Attributes:
        enqueue: puts one launch on the stream (a device stream object) and returns at once.
        outputs: arrays (or views of them) in the question's coordinates.
        guards: for each output the whole allocation it is a view of; nothing outside the view may be written.
        capturable: the launches can be captured in a CUDA graph.
        checked: False for a variant that computes nothing, such as a copy.
        read: for layouts that are no strided view, ``read(k, lo, shape)`` gives values of output k.
        facts: what is known only on the device, added to the record's facts.
    """

    enqueue: Callable[[Any], None]
    outputs: Sequence[Any] = ()
    guards: Sequence[Any] = ()
    capturable: bool = True
    checked: bool = True
    read: Callable[[int, tuple[int, ...], tuple[int, ...]], Any] | None = None
    facts: dict[str, Any] = field(default_factory=dict)


class Variant:
    """One way to answer a question. Subclasses are in `stencil_dsl.testing.variants`.

    A variant is cheap to make: compiling and allocating happen in the methods below.
    """

    id: str
    #: Outcomes without a device may be taken from an earlier run of the same code and tools.
    remembered: ClassVar[bool] = False

    def compile_facts(self, target: Target) -> dict[str, Any]:
        """Facts known without a device (JSON-able): resources, schedule, tool set. Empty where nothing
        is compiled.
        """
        return {}

    def validate(self, target: Target) -> dict[str, Any] | None:
        """Checks values without a device: ``{"ok", "max_rel_err", "how"}``, or None where that is not
        possible.
        """
        return None

    def artefacts(self, target: Target) -> dict[str, str]:
        """File name to text, for --dump."""
        return {}

    def prepare(self, bench: Bench) -> Prepared:
        """Allocates and binds everything on bench.device."""
        raise NotImplementedError(f"{type(self).__name__} cannot run on a device")


@dataclass(frozen=True)
class Question:
    """A group of variants on the same inputs.

    Attributes:
        id: a name that works with ``-k``.
        shape: extents of every output.
        variants: the contestants.
        inputs: input name to its values.
        reference: expected outputs; None where values are not compared (then say why in the test).
        tolerance: accepted error relative to the largest expected magnitude.
        dtype: element type of the outputs.
        bytes: compulsory bytes of one launch; decides whether L2 is flushed between launches.
        baseline: id of the variant others are compared with.
        profiled: ids of the variants whose counters `--ncu` reads; None: all, seconds each.
        limit_s: one timing of a variant may take this long.
        prepare_limit_s: preparing a variant and checking its values may take this long.
    """

    id: str
    shape: tuple[int, ...]
    variants: tuple[Variant, ...]
    inputs: Mapping[str, Source] = field(default_factory=dict)
    reference: Reference | None = None
    tolerance: float = 1e-12
    dtype: str = "float64"
    bytes: int = 0
    baseline: str | None = None
    profiled: tuple[str, ...] | None = None
    limit_s: float = 60.0
    prepare_limit_s: float = 300.0

    def variant(self, name: str) -> Variant:
        """The variant called name; KeyError names those that exist."""
        for candidate in self.variants:
            if candidate.id == name:
                return candidate
        raise KeyError(f"question {self.id!r} has no variant {name!r}; it has {[v.id for v in self.variants]}")
