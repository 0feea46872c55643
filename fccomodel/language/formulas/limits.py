"""Bounds of params and of data: ``>= 0``, ``> 0, <= 1``, ``in [0, 1]``, ``in psd``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, inf
from typing import NamedTuple

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import declarations, literals, shapes
from fccomodel.language.formulas.context import Context
from fccomodel.language.formulas.shapes import show

#: The set of symmetric matrices without negative eigenvalues.
DEFINITE = "psd"


class Bounds(NamedTuple):
    """Lower and upper bound, and whether each is strict."""

    low: float = -inf
    high: float = inf
    strict_low: bool = False
    strict_high: bool = False

    def holds(self, value: float) -> bool:
        """Whether a number keeps the bounds."""
        above = value > self.low if self.strict_low else value >= self.low
        below = value < self.high if self.strict_high else value <= self.high
        return above and below


def of(ctx: Context, name: str, bounds: Sequence[syntax.Bound], what: str) -> Bounds | None:
    """The bounds that comparisons with constants give; None after an error.

    what  what has the bounds, ``a param``
    """
    low, high, strict_low, strict_high = Bounds()
    for bound in bounds:
        value = literals.bound(ctx, declarations.HERE, bound.value, "a bound", scalar=True)
        if value is None:
            return None
        if not isinstance(value, ir.Const):
            ctx.report(errors.values.bound_not_constant(ctx.quote(bound.value), what))
            return None
        x = value.value
        match bound.op:
            case ">=" | ">":
                if x >= low:
                    low, strict_low = x, bound.op == ">"
            case "<=" | "<":
                if x <= high:
                    high, strict_high = x, bound.op == "<"
            case _:
                ctx.report(errors.values.bound_of_number(bound.op, name, x, bound.span, what))
                return None
    if low > high or (low == high and (strict_low or strict_high)):
        span = bounds[0].span | bounds[-1].span
        ctx.report(errors.values.no_value_left("number", name, low, high, span))
        return None
    return Bounds(low, high, strict_low, strict_high)


def of_data(ctx: Context, name: str, kind: ir.ColumnType, limit: syntax.Bound) -> ir.ColumnType | None:
    """The type of a column or of an array of numbers with a bound; None after an error."""
    if kind.domain is not None:
        ctx.report(errors.declarations.bound_of_members(name, limit.span))
        return None
    if limit.op == "in" and isinstance(limit.value, syntax.Name) and limit.value.id == DEFINITE:
        return _definite(ctx, kind, limit.span)
    bounds = of(ctx, name, _comparisons(limit), "data")
    if limit.op == "in" and not _is_interval(limit.value):
        ctx.report(errors.declarations.not_a_range_of_data(ctx.quote(limit.value)))
        return None
    if bounds is None:
        return None
    low, high, strict_low, strict_high = bounds
    if kind.kind == "int" and not _has_whole_number(bounds):
        ctx.report(errors.values.no_value_left("whole number", name, low, high, limit.span))
        return None
    return replace(kind, lower=low, upper=high, strict_lower=strict_low, strict_upper=strict_high)


def _has_whole_number(bounds: Bounds) -> bool:
    """Whether a whole number keeps the bounds."""
    if bounds.low == -inf or bounds.high == inf:
        return True
    first = ceil(bounds.low)
    return bounds.holds(first) or bounds.holds(first + 1)


def _is_interval(value: syntax.Expr) -> bool:
    """Whether a formula is ``[low, high]``."""
    return isinstance(value, syntax.Vector) and len(value.items) == len(("low", "high"))


def _comparisons(limit: syntax.Bound) -> Sequence[syntax.Bound]:
    """A bound as comparisons: ``in [0, 1]`` is ``>= 0, <= 1``."""
    if limit.op != "in":
        return (limit,)
    if not isinstance(limit.value, syntax.Vector) or not _is_interval(limit.value):
        return ()
    low, high = limit.value.items
    return (
        syntax.Bound(op=">=", value=low, span=limit.span),
        syntax.Bound(op="<=", value=high, span=limit.span),
    )


def _definite(ctx: Context, kind: ir.ColumnType, span: Span) -> ir.ColumnType | None:
    """The type of a square matrix that is positive semidefinite; None after an error."""
    if kind.kind != "real" or not shapes.is_square(ctx, kind.shape):
        ctx.report(errors.shapes.set_of_square_matrices(DEFINITE, show(kind.shape), span))
        return None
    return replace(kind, definite=True)
