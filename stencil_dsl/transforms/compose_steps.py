"""Pass `compose-steps`: k time steps of a linear stencil with constant coefficients as one wider stencil.

Applying a linear stencil k times convolves its coefficients with themselves: three steps of the 7-point star are one
63-point diamond of radius 3. Coefficients are composed exactly, as rational numbers, and rounded once, so that
symmetric neighbours keep equal coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from xdsl.context import Context
from xdsl.dialects import arith, stencil
from xdsl.dialects.builtin import FloatAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from stencil_dsl.errors import StencilError
from stencil_dsl.transforms import analysis


class NotLinearError(StencilError):
    """Several steps of a stencil cannot be composed, since it is not linear with constant coefficients."""


Offset = tuple[int, ...]
Form = dict[Offset | None, Fraction]
"""Coefficient of each access; None stands for the constant term."""


def _add(a: Form, b: Form, sign: int = 1) -> Form:
    out = dict(a)
    for key, c in b.items():
        out[key] = out.get(key, Fraction(0)) + sign * c
    return out


def _scale(a: Form, by: Fraction) -> Form:
    return {key: c * by for key, c in a.items()}


def _constant(form: Form) -> Fraction | None:
    """The value of a form without accesses."""
    return form.get(None, Fraction(0)) if set(form) <= {None} else None


def _multiply(a: Form, b: Form) -> Form:
    if (c := _constant(a)) is not None:
        return _scale(b, c)
    if (c := _constant(b)) is not None:
        return _scale(a, c)
    raise NotLinearError("a product of two values that depend on the field is not linear")


def _divide(a: Form, b: Form) -> Form:
    c = _constant(b)
    if not c:
        raise NotLinearError("a division by a value that depends on the field is not linear")
    return _scale(a, 1 / c)


_RULES: dict[type[Operation], Callable[..., Form]] = {
    arith.AddfOp: _add,
    arith.SubfOp: lambda a, b: _add(a, b, -1),
    arith.MulfOp: _multiply,
    arith.DivfOp: _divide,
    arith.NegfOp: lambda a: _scale(a, Fraction(-1)),
}


def linear_form(apply: stencil.ApplyOp) -> Form:
    """Coefficients of a stencil of one field and one output.

    Raises:
        NotLinearError: saying why the stencil is not linear with constant coefficients.
    """
    block = apply.region.block
    if len(apply.res) != 1 or len(block.args) != 1 or not isinstance(block.args[0].type, stencil.TempType):
        raise NotLinearError(
            "several steps in one sweep need one field, one output and no run-time scalars, got"
            f" {len(block.args)} operands and {len(apply.res)} outputs"
        )
    values: dict[SSAValue, Form] = {}
    for op in block.ops:
        if isinstance(op, stencil.ReturnOp):
            return values[op.arg[0]]
        if isinstance(op, stencil.AccessOp):
            values[op.res] = {tuple(op.offset): Fraction(1)}
        elif isinstance(op, arith.ConstantOp) and isinstance(op.value, FloatAttr):
            values[op.result] = {None: Fraction(op.value.value.data)}
        elif type(op) in _RULES:
            values[op.results[0]] = _RULES[type(op)](*(values[o] for o in op.operands))
        else:
            raise NotLinearError(f"{op.name} is not linear; only sums and constant multiples of accesses are")
    raise StencilError("the stencil returns nothing")


def compose(form: Form, steps: int) -> Form:
    """The form of `steps` applications in a row."""
    result = form
    for _ in range(steps - 1):
        wider: Form = {}
        for inner, c in result.items():
            if inner is None:
                # A constant passes through a step scaled by the sum of its coefficients.
                total = sum((d for o, d in form.items() if o is not None), Fraction(0))
                wider = _add(wider, {None: c * total})
                continue
            for outer, d in form.items():
                if outer is not None:
                    wider = _add(wider, {tuple(a + b for a, b in zip(inner, outer, strict=True)): c * d})
        result = _add(wider, {None: form[None]} if None in form else {})
    return {key: c for key, c in result.items() if c}


@dataclass(frozen=True)
class ComposeStepsPass(ModulePass):
    """Replace the stencil by `steps` applications of itself.

    Raises:
        NotLinearError: where it is not linear with constant coefficients.
    """

    name = "compose-steps"

    steps: int = 2

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.steps < 1:
            raise StencilError(f"steps is at least 1, got {self.steps}")
        apply = analysis.the_apply(op)
        if self.steps > 1:
            _rewrite(apply, compose(linear_form(apply), self.steps))


def _rewrite(apply: stencil.ApplyOp, form: Form) -> None:
    """Make the body a sum over offsets in lexicographic order."""
    old = apply.region.block
    element = analysis.element_type(apply)
    block = Block(arg_types=[a.type for a in old.args])
    block.args[0].name_hint = old.args[0].name_hint
    total: SSAValue | None = None
    offsets = sorted(key for key in form if key is not None)
    for key in [*offsets, *([None] if None in form else [])]:
        constant = arith.ConstantOp(FloatAttr(float(form[key]), element))
        block.add_op(constant)
        term: SSAValue = constant.result
        if key is not None:
            access = stencil.AccessOp(block.args[0], key)
            product = arith.MulfOp(constant.result, access.res)
            block.add_ops([access, product])
            term = product.result
        if total is not None:
            added = arith.AddfOp(total, term)
            block.add_op(added)
            term = added.result
        total = term
    if total is None:
        raise StencilError("the stencil reads nothing; there is nothing to compose")
    block.add_op(stencil.ReturnOp.build(operands=[[total]]))
    region = apply.region
    region.detach_block(old)
    region.add_block(block)
    old.drop_all_references()
    analysis.forget_facts(apply)
