"""The order in which passes run, as a value that can be printed, shortened and extended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError, VerifyException

from stencil_dsl.errors import StencilError
from stencil_dsl.transforms import registry

DEFAULT_PIPELINE = "lower-source,fold-constants,stencil-cse,stencil-dce,footprint,roofline"


def _pass(item: ModulePass | str) -> ModulePass:
    """A pass given as such or as a one-pass spec like 'fold-constants' or 'some-pass{width=4}'."""
    if isinstance(item, ModulePass):
        return item
    passes = PassManager.from_spec(item).passes
    if len(passes) != 1:
        raise StencilError(f"expected one pass, found {len(passes)} in {item!r}")
    return passes[0]


@dataclass(frozen=True)
class PassManager:
    """An immutable sequence of passes; every change gives a new one.

    >>> print(PassManager.default_pipeline().without("roofline"))
    lower-source,fold-constants,stencil-cse,stencil-dce,footprint
    """

    passes: tuple[ModulePass, ...] = ()

    @classmethod
    def default_pipeline(cls) -> PassManager:
        """From level 1 to an optimised level 2 with footprint and roofline counts."""
        return cls.from_spec(DEFAULT_PIPELINE)

    @classmethod
    def from_spec(cls, spec: str) -> PassManager:
        """Read what `str` prints: comma separated passes, options in braces; '' is the empty pipeline.

        Raises:
            StencilError: an unknown pass (the known ones are listed), unknown options, or bad syntax.
        """
        try:
            specs = list(parse_pipeline(spec)) if spec.strip() else []
        except ArgSpecParseError as error:
            raise StencilError(f"cannot read the pass pipeline {spec!r}: {error}") from error
        passes: list[ModulePass] = []
        for item in specs:
            kind = registry.load(item.name)
            try:
                passes.append(kind.from_spec(item))
            except ValueError as error:
                raise StencilError(f"pass {item.name!r}: {error}") from error
        return cls(tuple(passes))

    def __str__(self) -> str:
        return ",".join(str(p.spec()) for p in self.passes)

    def __iter__(self) -> Iterator[ModulePass]:
        return iter(self.passes)

    def __len__(self) -> int:
        return len(self.passes)

    def names(self) -> tuple[str, ...]:
        """Names of the passes in order."""
        return tuple(p.name for p in self.passes)

    def without(self, *names: str) -> PassManager:
        """This pipeline less every pass of these names; StencilError if a name does not occur."""
        for name in names:
            self._index(name)
        return PassManager(tuple(p for p in self.passes if p.name not in names))

    def insert_before(self, name: str, new: ModulePass | str) -> PassManager:
        """This pipeline with `new` (a pass or its spec) before the first pass called `name`."""
        at = self._index(name)
        return PassManager((*self.passes[:at], _pass(new), *self.passes[at:]))

    def insert_after(self, name: str, new: ModulePass | str) -> PassManager:
        """This pipeline with `new` (a pass or its spec) after the last pass called `name`."""
        self._index(name)
        at = max(i for i, p in enumerate(self.passes) if p.name == name) + 1
        return PassManager((*self.passes[:at], _pass(new), *self.passes[at:]))

    def append(self, *new: ModulePass | str) -> PassManager:
        """This pipeline with more passes at its end."""
        return PassManager((*self.passes, *map(_pass, new)))

    def _index(self, name: str) -> int:
        names = self.names()
        if name not in names:
            raise StencilError(f"no pass {name!r} in this pipeline; it has {', '.join(names) or 'none'}")
        return names.index(name)

    def run(
        self,
        module: ModuleOp,
        *,
        context: Context | None = None,
        after_each: Callable[[ModulePass, ModuleOp], None] | None = None,
    ) -> ModuleOp:
        """Run the passes on `module`, in place, and return it.

        The module is verified before the first pass and after every pass.

        Args:
            context: an xDSL context for passes that need one; ours do not.
            after_each: called with every pass and the module that it left, for looking on.

        Raises:
            StencilError: the module does not verify; the message names the pass that left it so.
        """

        def between(done: ModulePass | None, current: ModuleOp, following: ModulePass | None) -> None:
            try:
                current.verify()
            except VerifyException as error:
                place = f"after the pass {done.name}" if done else "before the first pass"
                raise StencilError(f"the module does not verify {place}: {error}") from error
            if done is not None and after_each is not None:
                after_each(done, current)

        PassPipeline(self.passes, between).apply(context or Context(), module)
        return module


def pipeline(passes: Iterable[ModulePass | str]) -> PassManager:
    """A pipeline of these passes, each given as such or as its spec."""
    return PassManager(tuple(map(_pass, passes)))


def default_pipeline() -> PassManager:
    """`PassManager.default_pipeline()`."""
    return PassManager.default_pipeline()
