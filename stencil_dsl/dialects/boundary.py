"""What lies beyond a face of the interior: attributes that the pass `boundary` records and the solver reads.

    #boundary.face<"periodic">                       the interior again
    #boundary.face<"dirichlet" 1.0 : f64 at "ghost"> a value in every ghost cell
    #boundary.face<"dirichlet" "inflow" at "face">   a run-time scalar, taken half-way between cell and ghost cell
    #boundary.face<"symmetric" at "cell">            mirrored about the centre of the last cell

With `g` the ghost cell at distance k (1, 2, ...) and `m` its mirror image, a face means

    kind             value of g
    open             no rule; no stencil may read across the face
    keep             what the user put there
    periodic         the cell one period away
    dirichlet        v at "ghost"; 2 v - m at "face" and "cell"
    neumann          m + d v, where v is the outward difference a cell and d the distance of g and m in cells
    outflow          the last cell of the interior
    symmetric        m
    antisymmetric    -m

The mirror stands on the cell's face (d = 2 k - 1) or in the centre of the last cell (d = 2 k).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, NoneAttr, StringAttr, UnitAttr, f64
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

PLACES: dict[str, tuple[str, ...]] = {
    "open": ("",),
    "keep": ("",),
    "periodic": ("",),
    "outflow": ("",),
    "dirichlet": ("ghost", "face", "cell"),
    "neumann": ("face", "cell"),
    "symmetric": ("face", "cell"),
    "antisymmetric": ("face", "cell"),
}
"""For each kind where it may be placed; the first is the default."""

VALUED = ("dirichlet", "neumann")
AXES = {1: ("z",), 2: ("x", "z"), 3: ("x", "y", "z")}
"""Names of the axes by rank; z is the contiguous one."""


@irdl_attr_definition
class FaceAttr(ParametrizedAttribute):
    """The rule of one face. A value is a number, a scalar's name, or `unit` for an array that the program holds."""

    name = "boundary.face"

    kind: StringAttr
    value: FloatAttr | StringAttr | UnitAttr | NoneAttr
    at: StringAttr

    def __init__(
        self, kind: str | StringAttr, value: Attribute | float | str | None = None, at: str | StringAttr | None = None
    ) -> None:
        kind = kind.data if isinstance(kind, StringAttr) else kind
        if isinstance(value, int | float):
            value = FloatAttr(float(value), f64)
        elif isinstance(value, str):
            value = StringAttr(value)
        place = at.data if isinstance(at, StringAttr) else at
        place = PLACES.get(kind, ("",))[0] if place is None else place
        super().__init__(StringAttr(kind), value or NoneAttr(), StringAttr(place))

    def verify(self) -> None:
        kind, at = self.kind.data, self.at.data
        if kind not in PLACES:
            raise VerifyException(f'unknown boundary "{kind}"; known are {", ".join(PLACES)}')
        if at not in PLACES[kind]:
            allowed = ", ".join(f'"{p}"' for p in PLACES[kind] if p)
            raise VerifyException(f'a {kind} boundary stands at {allowed or "no particular place"}, got "{at}"')
        if (kind in VALUED) == isinstance(self.value, NoneAttr):
            raise VerifyException(f"a {kind} boundary has {'a' if kind in VALUED else 'no'} value")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            kind = parser.parse_str_literal()
            value = parser.parse_optional_attribute()
            at = parser.parse_str_literal() if parser.parse_optional_keyword("at") else None
        face = FaceAttr(kind, value, at)
        return face.parameters

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.kind)
            if not isinstance(self.value, NoneAttr):
                printer.print_string(" ")
                printer.print_attribute(self.value)
            if self.at.data:
                printer.print_string(" at ")
                printer.print_attribute(self.at)


FieldFaces = ArrayAttr[ArrayAttr[FaceAttr]]
"""Per axis the rules of the face before and the face behind the interior."""

OPEN = FaceAttr("open")


def verify_faces(field: str, faces: Attribute, ndim: int | None = None) -> None:
    """Check the rules of one field together.

    Raises:
        VerifyException: for another form, or a periodic face whose opposite is not.
    """
    if not isinstance(faces, ArrayAttr) or (ndim is not None and len(faces) != ndim):
        raise VerifyException(f"boundaries of {field!r} need one pair of faces an axis, got {faces}")
    names = AXES.get(len(faces), ())
    for axis, pair in zip(names, faces, strict=True):
        if not isinstance(pair, ArrayAttr) or len(pair) != 2 or not all(isinstance(f, FaceAttr) for f in pair):
            raise VerifyException(f"boundaries of {field!r} along {axis} need two faces, got {pair}")
        kinds = [f.kind.data for f in pair if isinstance(f, FaceAttr)]
        if kinds.count("periodic") == 1:
            raise VerifyException(
                f"{field!r} is periodic on one face along {axis} and {kinds[kinds[0] == 'periodic']} on the other;"
                " a period needs both"
            )


def face_from_text(text: str) -> FaceAttr:
    """Read `kind [value] [at place]`, such as "dirichlet 0.5 at face" or "neumann slope".

    The value is a number, the name of a run-time scalar, or the word `array`.

    Raises:
        VerifyException: for what is none.
    """
    words = text.split()
    at = None
    if len(words) > 2 and words[-2] == "at":
        at, words = words[-1], words[:-2]
    if not 1 <= len(words) <= 2:
        raise VerifyException(f"a boundary reads `kind [value] [at place]`, got {text!r}")
    value: Attribute | None = None
    if len(words) == 2:
        try:
            value = FloatAttr(float(words[1]), f64)
        except ValueError:
            value = UnitAttr() if words[1] == "array" else StringAttr(words[1])
    return FaceAttr(words[0], value, at)


def face_to_text(face: FaceAttr) -> str:
    """Inverse of `face_from_text`."""
    value = face.value
    words = [face.kind.data]
    if isinstance(value, FloatAttr):
        words.append(repr(float(value.value.data)))
    elif isinstance(value, StringAttr):
        words.append(value.data)
    elif isinstance(value, UnitAttr):
        words.append("array")
    if face.at.data:
        words += ["at", face.at.data]
    return " ".join(words)


Boundary = Dialect("boundary", [], [FaceAttr])
