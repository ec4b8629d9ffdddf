"""What a user says about the faces of a field.

`{"x": Periodic(), "z-": Dirichlet(1.0), "z+": Neumann()}` names faces by axis and sign (`x` is both faces along x,
`*` all of them); one rule without a dictionary holds for every face. `stencil_dsl.dialects.boundary` says what
each rule makes of the ghost cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stencil_dsl.dialects.boundary import AXES
from stencil_dsl.errors import StencilError
from stencil_dsl.solve.boxes import Domain
from stencil_dsl.solve.faces import FaceValues
from stencil_dsl.transforms.boundary import sides

Value = float | str | np.ndarray
"""A number, the name of a run-time scalar, or an array over the face (the interior's extents less the axis)."""


@dataclass(frozen=True)
class Face:
    """Base of the rules."""

    def text(self) -> str:
        """The rule as the pass `boundary` reads it."""
        raise NotImplementedError

    @property
    def array(self) -> np.ndarray | None:
        """Values over the face, where the rule has an array."""
        value = getattr(self, "value", None)
        return value if isinstance(value, np.ndarray) else None


@dataclass(frozen=True)
class Periodic(Face):
    """The field goes on with its other end; both faces of an axis must be periodic."""

    def text(self) -> str:
        return "periodic"


@dataclass(frozen=True)
class Keep(Face):
    """Ghost cells hold what the user put there."""

    def text(self) -> str:
        return "keep"


@dataclass(frozen=True)
class Outflow(Face):
    """Every ghost cell takes the value of the last cell of the interior."""

    def text(self) -> str:
        return "outflow"


@dataclass(frozen=True, eq=False)
class Dirichlet(Face):
    """A given value: in all ghost cells, on the cell's face, or in the last cell's centre.

    On the face and in the centre a ghost cell is 2 value - its mirror image.
    """

    value: Value = 0.0
    at: str = "ghost"

    def text(self) -> str:
        return f"dirichlet {_value(self.value)} at {self.at}"


@dataclass(frozen=True, eq=False)
class Neumann(Face):
    """A given outward difference of the values of neighbouring cells: slope times spacing.

    Exact for linear fields whatever the width of the halo; second order in general.
    """

    value: Value = 0.0
    at: str = "face"

    def text(self) -> str:
        return f"neumann {_value(self.value)} at {self.at}"


@dataclass(frozen=True)
class Symmetric(Face):
    """The mirror image of the interior; the mirror stands on the cell's face or in the last cell's centre."""

    at: str = "face"

    def text(self) -> str:
        return f"symmetric at {self.at}"


@dataclass(frozen=True)
class Antisymmetric(Face):
    """The mirror image of the interior with the opposite sign, such as the normal velocity at a wall."""

    at: str = "face"

    def text(self) -> str:
        return f"antisymmetric at {self.at}"


FieldRules = Face | Mapping[str, Face]


def _value(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return "array"
    if isinstance(value, str):
        if not value.isidentifier() or value in ("array", "at"):
            raise StencilError(f"the name of a run-time scalar is an identifier, got {value!r}")
        return value
    return repr(float(value))


def _items(rules: FieldRules) -> list[tuple[str, Face]]:
    items = [("*", rules)] if isinstance(rules, Face) else list(rules.items())
    for face, rule in items:
        if not isinstance(rule, Face):
            raise StencilError(
                f"face {face!r} needs a rule such as Periodic() or Dirichlet(0.0), got {type(rule).__name__}"
            )
    return items


def pass_entries(boundaries: Mapping[str, FieldRules]) -> tuple[str, ...]:
    """The rules of all fields as entries of the pass `boundary`."""
    return tuple(f"{field} {face} {rule.text()}" for field, rules in boundaries.items() for face, rule in _items(rules))


def face_arrays(rules: FieldRules, ndim: int) -> dict[tuple[int, int], np.ndarray]:
    """Arrays of values by (axis, side)."""
    found: dict[tuple[int, int], np.ndarray] = {}
    for face, rule in _items(rules):
        for place in sides(face, ndim):
            found.pop(place, None)
            if rule.array is not None:
                found[place] = rule.array
    return found


def local_faces(rules: FieldRules, domain: Domain) -> dict[tuple[int, int], FaceValues]:
    """Values by (axis, side), with the part that lies over this rank's cells.

    Raises:
        StencilError: for an array that does not have the shape of the face.
    """
    found = {}
    for (axis, side), values in face_arrays(rules, len(domain.shape)).items():
        expected = domain.shape[:axis] + domain.shape[axis + 1 :]
        if values.shape != expected:
            name = f"{AXES[len(domain.shape)][axis]}{'-+'[side]}"
            raise StencilError(f"values over the face {name} have the shape {expected}, got {values.shape}")
        found[axis, side] = FaceValues(values, tuple(ends for a, ends in enumerate(domain.box) if a != axis))
    return found
