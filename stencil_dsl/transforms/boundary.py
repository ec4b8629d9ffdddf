"""Pass `boundary`: what lies beyond the faces of every field, recorded on the IR."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import stencil
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, UnitAttr
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from stencil_dsl.dialects import timestep
from stencil_dsl.dialects.boundary import AXES, OPEN, FaceAttr, FieldFaces, face_from_text, face_to_text, verify_faces
from stencil_dsl.errors import StencilError
from stencil_dsl.transforms import analysis, steps

Faces = tuple[tuple[FaceAttr, FaceAttr], ...]
"""Per axis the faces before and behind the interior."""

EVERY_FIELD = "*"


@dataclass(frozen=True)
class BoundaryPass(ModulePass):
    """Store the attribute `boundary` on every `timestep.step` and `stencil.apply`.

    On a step it maps the names of fields (state and intermediate) to their faces, on an apply it has one entry per
    field operand (`unit` for fields without rules). Earlier rules of the same face are replaced. A new field without
    rules of its own has those of the field that it continues (the step's attribute `continues`).

    Attributes:
        faces: entries `field face kind [value] [at place]`. The face is an axis with a sign (`x-`, `z+`), an axis for
            both, or `*`; the field `*` stands for all fields. Later entries win.

    Raises:
        StencilError: for an entry that cannot be read, an unknown axis, or faces that contradict each other.
    """

    name = "boundary"

    faces: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for child in op.walk():
            if isinstance(child, timestep.StepOp):
                self._record_step(child)
            elif isinstance(child, stencil.ApplyOp):
                self._record_apply(child)

    def _record_step(self, step: timestep.StepOp) -> None:
        names = step.value_names()
        known = {name: read_faces(step, name) for name in names}
        rules = self._resolve(known, step.ndim)
        for name in names:
            if rules[name] is None:
                rules[name] = rules.get(steps.origin(step, name))
        for entry in self.faces:
            field = entry.split()[0]
            if field not in (*names, EVERY_FIELD):
                raise StencilError(f"boundary of an unknown field {field!r}; the step has {', '.join(names)}")
        step.attributes["boundary"] = DictionaryAttr({n: to_attribute(f) for n, f in rules.items() if f is not None})

    def _record_apply(self, apply: stencil.ApplyOp) -> None:
        names = [a.name_hint or "" for a in analysis.field_arguments(apply)]
        function = apply.parent_op()
        if function is not None and isinstance(attr := function.attributes.get("fields"), ArrayAttr):
            names = [n.data for n in attr]
        rules = self._resolve(dict(zip(names, apply_faces(apply), strict=True)), apply.get_rank())
        if any(f is not None for f in rules.values()):
            apply.attributes["boundary"] = ArrayAttr(
                UnitAttr() if f is None else to_attribute(f) for f in (rules[n] for n in names)
            )

    def _resolve(self, known: Mapping[str, Faces | None], ndim: int) -> dict[str, Faces | None]:
        rules = dict(known)
        for entry in self.faces:
            field, face, rule = parse_entry(entry)
            for name in rules if field == EVERY_FIELD else [n for n in rules if n == field]:
                rules[name] = _with_face(rules[name] or ((OPEN, OPEN),) * ndim, face, rule, ndim)
        for name, faces in rules.items():
            if faces is not None:
                _verify(name, faces)
        return rules


def parse_entry(entry: str) -> tuple[str, str, FaceAttr]:
    """Field, face and rule of one entry of the pass; StencilError for what is none."""
    words = entry.split(maxsplit=2)
    if len(words) < 3:
        raise StencilError(f"a boundary reads `field face kind [value] [at place]`, got {entry!r}")
    try:
        return words[0], words[1], face_from_text(words[2])
    except VerifyException as error:
        raise StencilError(f"boundary {entry!r}: {error}") from error


def sides(face: str, ndim: int) -> list[tuple[int, int]]:
    """The (axis, side) that a face's name stands for; side 0 lies before the interior, 1 behind.

    Raises:
        StencilError: for an axis that this rank does not have.
    """
    axes = AXES[ndim]
    if face == "*":
        return [(axis, side) for axis in range(ndim) for side in (0, 1)]
    name, sign = (face[:-1], face[-1]) if face[-1:] in ("-", "+") else (face, "")
    if name not in axes:
        names = ", ".join(f"{a}-, {a}+, {a}" for a in axes)
        raise StencilError(f"unknown face {face!r} of a {ndim}-D field; faces are {names}, *")
    axis = axes.index(name)
    return [(axis, side) for side in (0, 1) if sign in ("", "-+"[side])]


def _with_face(faces: Faces, face: str, rule: FaceAttr, ndim: int) -> Faces:
    pairs = [list(pair) for pair in faces]
    for axis, side in sides(face, ndim):
        pairs[axis][side] = rule
    return tuple((lo, hi) for lo, hi in pairs)


def _verify(name: str, faces: Faces) -> None:
    try:
        verify_faces(name, to_attribute(faces))
    except VerifyException as error:
        raise StencilError(str(error)) from error


def to_attribute(faces: Faces) -> FieldFaces:
    return ArrayAttr(ArrayAttr(pair) for pair in faces)


def from_attribute(attr: Attribute) -> Faces | None:
    """The faces in an attribute, None for `unit`."""
    if not isinstance(attr, ArrayAttr):
        return None
    return tuple((pair.data[0], pair.data[1]) for pair in attr)


def read_faces(step: Operation, field: str) -> Faces | None:
    """What a step says of one field, or None where it says nothing."""
    attr = step.attributes.get("boundary")
    if not isinstance(attr, DictionaryAttr) or field not in attr.data:
        return None
    return from_attribute(attr.data[field])


def apply_faces(apply: stencil.ApplyOp) -> tuple[Faces | None, ...]:
    """Per field operand what an apply says; StencilError where the attribute does not fit the operands."""
    count = len(analysis.field_arguments(apply))
    attr = apply.attributes.get("boundary")
    if attr is None:
        return (None,) * count
    if not isinstance(attr, ArrayAttr) or len(attr) != count:
        raise StencilError(f"the attribute boundary needs one entry for each of {count} fields, got {attr}")
    found = tuple(map(from_attribute, attr))
    for index, faces in enumerate(found):
        if faces is not None:
            _verify(f"field {index}", faces)
    return found


def entries(field: str, faces: Iterable[tuple[FaceAttr, FaceAttr]], ndim: int) -> tuple[str, ...]:
    """The faces of a field as entries of the pass."""
    result = []
    for axis, pair in zip(AXES[ndim], faces, strict=True):
        result += [f"{field} {axis}{sign} {face_to_text(face)}" for sign, face in zip("-+", pair, strict=True)]
    return tuple(result)
