"""What a time step consists of, as the user says it, and the step program (IR) that it becomes.

A stencil makes a new field, named like the stencil's output; another stencil that has a field of that name reads it.
That alone orders the sweeps. `advance` says which field of the state continues as which field when the step is over:

    System([e_next, h_next], advance={"e": "e_next", "h": "h_next"})
    System([wave], advance={"u": "wave", "u_prev": "u"})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from stencil_dsl.errors import StencilError
from stencil_dsl.frontend.stencil import Stencil
from stencil_dsl.solve.parts import Integrate, Part, Piece, as_part, common_rank, makers, ordered, readers
from stencil_dsl.solve.step_builder import StepBuilder


class System:
    """Sweeps of one time step and how the state goes on.

    Args:
        parts: stencils, sweeps of several pieces, or integrators, in any order.
        advance: field of the state to the field, new or old, that it is in the next step. Left away, an integrator
            advances its own state, and a single stencil with one output advances its first field.

    Raises:
        StencilError: where names do not fit together.
    """

    def __init__(
        self, parts: Sequence[Stencil | Piece | Part] | Stencil | Integrate, advance: Mapping[str, str] | None = None
    ) -> None:
        given = parts if isinstance(parts, Sequence) else [parts]
        self.parts: list[Part] = [as_part(p) for p in given]
        if not self.parts:
            raise StencilError("a system needs at least one stencil")
        self.ndim = common_rank(self.parts)
        self.made = makers(self.parts)
        self.parts = ordered(self.parts, self.made)
        self.advance = dict(advance) if advance is not None else self._default_advance()
        reads = [name for p in self.parts for name in p.inputs()]
        self.state = tuple(n for n in dict.fromkeys([*reads, *self.advance]) if n not in self.made)
        self._check()

    @property
    def profiles(self) -> dict[str, tuple[int, ...]]:
        """Fields that are read with some indices only, everywhere with the same, with the axes of these."""
        found: dict[str, set[tuple[int, ...]]] = {}
        for part in self.parts:
            for each, names in readers(part):
                for f in each.fields:
                    axes = each.profiles.get(f, tuple(range(self.ndim)))
                    found.setdefault(names.get(f, f), set()).add(axes)
        only = {name: next(iter(axes)) for name, axes in found.items() if len(axes) == 1}
        return {name: axes for name, axes in only.items() if len(axes) < self.ndim}

    def profile_values(self, given: Mapping[str, Any]) -> dict[str, tuple[tuple[int, ...], Any]]:
        """Axes and values of every profile.

        Args:
            given: values, or (axes, values), by name; what the stencils read with some indices only must be among them.

        Raises:
            StencilError: for a profile without values, or axes that are unknown or other than those of the stencils.
        """
        known = self.profiles
        if missing := [name for name in known if name not in given]:
            raise StencilError(
                f"{missing[0]!r} is read with some indices only: give profiles={{{missing[0]!r}: values}}"
            )
        found = {}
        for name, value in given.items():
            axes, values = value if isinstance(value, tuple) and len(value) == 2 else (known.get(name), value)
            if axes is None:
                raise StencilError(f"say along which axes {name!r} varies: profiles={{{name!r}: (axes, values)}}")
            if name in known and tuple(axes) != known[name]:
                raise StencilError(f"{name!r} is read along the axes {known[name]}, its values are along {tuple(axes)}")
            found[name] = (tuple(axes), values)
        return found

    def _default_advance(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for p in self.parts:
            if isinstance(p, Integrate):
                found |= dict(zip(p.state, p.outputs(), strict=True))
                found |= dict(zip(p.older, p.state, strict=False))
        if found:
            return found
        only = self.parts[0]
        if len(self.parts) > 1 or isinstance(only, Integrate) or len(only.outputs()) != 1:
            raise StencilError(
                f"say which fields continue as which: advance={{field: new field}}; new fields are {list(self.made)}"
            )
        return {only.inputs()[0]: only.outputs()[0]}

    def _check(self) -> None:
        known = {*self.state, *self.made}
        for name, value in self.advance.items():
            if name in self.made:
                raise StencilError(f"{name!r} is computed in every step, so it cannot be a field of the state")
            if value not in known:
                raise StencilError(f"{name!r} advances to {value!r}; fields are {sorted(known)}")
        for p in self.parts:
            for result, source in getattr(p, "onto", {}).items():
                if result not in p.outputs() or source not in known:
                    raise StencilError(f"onto={{{result!r}: {source!r}}}: fields are {sorted(known)}")

    @property
    def scalars(self) -> tuple[str, ...]:
        """Run-time scalars of all stencils."""
        found: list[str] = []
        for p in self.parts:
            if isinstance(p, Integrate):
                found += [*(s for r in p.rates for s in r.scalars), p.dt]
            else:
                found += [s for piece in p.all() for s in piece.scalars()]
        return tuple(dict.fromkeys(found))

    def module(self, dtype: str) -> ModuleOp:
        """The step program: one `timestep.step` and the level-2 functions it sweeps."""
        return StepBuilder(self, dtype).build()
