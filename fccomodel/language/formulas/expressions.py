"""Typed expressions of formulas: each kind of syntax is typed by the function that is registered for it.

An expression with an error becomes None, which silences the errors of what is built on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import shapes
from fccomodel.language.formulas.context import MAX_NODES, Context, FormulaArray, Scope
from fccomodel.language.formulas.shapes import described, sort

#: From the syntax of a formula to its typed expression, or None after an error.
Evaluator = Callable[[Context, Scope, Any], ir.Expr | None]
AnyEvaluator = TypeVar("AnyEvaluator", bound=Evaluator)

Value = TypeVar("Value")
#: Entries of an array by formula that are written out where a function needs the array itself, at most.
MAX_WRITTEN_OUT = 100
#: Axes of an array by formula that can be made whole, at most.
MAX_AXES = 2

_EVALUATORS: dict[type[syntax.Expr], Evaluator] = {}


def evaluates(kind: type[syntax.Expr]) -> Callable[[AnyEvaluator], AnyEvaluator]:
    """A decorator: the function types formulas of this kind."""

    def register(evaluator: AnyEvaluator) -> AnyEvaluator:
        """Register the evaluator of the kind."""
        _EVALUATORS[kind] = evaluator
        return evaluator

    return register


def evaluate(ctx: Context, scope: Scope, node: syntax.Expr) -> ir.Expr | None:
    """The typed expression, or None after an error; an array by formula is written out, or an error."""
    value = loose(ctx, scope, node)
    if isinstance(value, FormulaArray):
        return written_out(ctx, value)
    return value


def loose(ctx: Context, scope: Scope, node: syntax.Expr) -> ir.Expr | None:
    """The typed expression, which may be an array by formula, or None after an error.

    Each call counts towards ``MAX_NODES``.
    """
    ctx.nodes += 1
    if ctx.nodes > MAX_NODES:
        _too_large(ctx, node)
        return None
    return typed(ctx, scope, node)


def written_out(ctx: Context, array: FormulaArray) -> ir.Expr | None:
    """An array by formula as one expression, or None after an error.

    That is the expression of arrays that makes it, or else the entries of a short vector or matrix side by
    side.
    """
    if array.whole is not None:
        return array.whole()
    if len(array.axes) > MAX_AXES:
        ctx.report(errors.shapes.array_by_formula(described(ctx, array)))
        return None
    counts = [shapes.count(axis) or 0 for axis in array.axes]
    if counts[-1] < 2 or not 1 <= math.prod(counts) <= MAX_WRITTEN_OUT:
        return _summed(ctx, array, ())
    *outer, inner = [shapes.listed(axis, array.span) for axis in array.axes]
    if not outer:
        return _side_by_side([array.entry((index,)) for index in inner], array.span)
    rows = [_side_by_side([array.entry((i, j)) for j in inner], array.span) for i in outer[0]]
    return _stacked(rows, array.span)


def _summed(ctx: Context, array: FormulaArray, known: tuple[ir.Expr, ...]) -> ir.Expr | None:
    """An array as a sum over its entries, or rows, times unit vectors; ``known`` are the first indices."""
    span, axis, dim = array.span, array.axes[len(known)], array.shape[len(known)]
    binder = ir.Binder(name=f"at{len(known)}", kind="in", domain=axis, span=span)
    index = ir.Element(binder=binder, span=span)
    ones = ir.Const(value=1.0, shape=(dim,), span=span)
    identity = ir.Apply(op="diagonal", args=(ones,), shape=(dim, dim), span=span)
    unit = ir.Item(base=identity, indices=(index,), shape=(dim,), span=span)
    here = (*known, index)
    if len(here) < len(array.axes):
        row = _summed(ctx, array, here)
        if row is None:
            return None
        shape = (dim, *row.shape)
        body = ir.Apply(op="outer", args=(unit, row), shape=shape, span=span)
    else:
        entry = array.entry(here)
        if entry is None:
            return None
        shape = (dim,)
        body = ir.Apply(op="mul", args=(entry, unit), shape=shape, span=span)
    return ir.Reduce(kind="sum", binders=(binder,), body=body, shape=shape, span=span)


def _side_by_side(entries: list[ir.Expr | None], span: Span) -> ir.Expr | None:
    """A vector by its entries; None if one of them is."""
    known = complete(entries)
    if known is None:
        return None
    return ir.Apply(op="concat", args=tuple(known), shape=(len(known),), span=span)


def _stacked(rows: list[ir.Expr | None], span: Span) -> ir.Expr | None:
    """A matrix by its rows: the sum over k of the k-th unit vector times the k-th row."""
    known = complete(rows)
    if known is None:
        return None
    total: ir.Expr | None = None
    for k, row in enumerate(known):
        units: list[ir.Expr | None] = [ir.Const(value=float(k == j), span=span) for j in range(len(known))]
        unit = _side_by_side(units, span)
        assert unit is not None
        shape = (len(known), *row.shape)
        term: ir.Expr = ir.Apply(op="outer", args=(unit, row), shape=shape, span=span)
        total = term if total is None else ir.Apply(op="add", args=(total, term), shape=shape, span=span)
    return total


def typed(ctx: Context, scope: Scope, node: syntax.Expr) -> ir.Expr | None:
    """The typed expression of a formula that has been counted, or None after an error."""
    evaluator = _EVALUATORS.get(type(node))
    if evaluator is None:
        ctx.report(errors.sorts.set_as_number(ctx.quote(node)))
        return None
    return evaluator(ctx, scope, node)


def complete(values: Iterable[Value | None]) -> list[Value] | None:
    """The values, or None if one of them is None."""
    values = list(values)
    present = [value for value in values if value is not None]
    if len(present) < len(values):
        return None
    return present


def _too_large(ctx: Context, node: syntax.Expr) -> None:
    """The error of a model with more than ``MAX_NODES`` nodes, reported once."""
    if ctx.overgrown:
        return
    ctx.overgrown = True
    if ctx.calls:
        outermost = ctx.calls[0][1]
    else:
        outermost = node.span
    ctx.calls.clear()
    ctx.report(errors.problem.model_too_large(MAX_NODES, outermost))


@evaluates(syntax.Number)
def literal_number(ctx: Context, scope: Scope, node: syntax.Number) -> ir.Expr:
    """A number written out."""
    return ir.Const(value=node.value, span=node.span)


@evaluates(syntax.String)
def literal_label(ctx: Context, scope: Scope, node: syntax.String) -> ir.Expr:
    """A label in quotes."""
    return ir.Label(text=node.value, span=node.span)


def number(
    ctx: Context, scope: Scope, node: syntax.Expr, what: str, *, scalar: bool = True, advice: str = ""
) -> ir.Expr | None:
    """The value of a formula where a number is needed, or None after an error.

    what    the place, in the words of a message
    scalar  whether the number must be a scalar
    advice  what to write instead of an array
    """
    value = evaluate(ctx, scope, node)
    if value is not None:
        value = as_number(ctx, value, what)
    if value is None:
        return None
    if scalar and value.shape:
        ctx.report(errors.shapes.not_a_scalar(what, described(ctx, value), advice))
        return None
    return value


def as_number(ctx: Context, value: ir.Expr, what: str) -> ir.Expr | None:
    """A value as a number, a condition as 1 or 0; None after an error about anything else.

    A condition must not depend on a variable.
    """
    if sort(ctx, value) == "truth" and not ir.variables_of(value):
        return ir.Apply(op="indicator", args=(value,), span=value.span)
    if is_number(ctx, value, what):
        return value
    return None


def is_number(ctx: Context, value: ir.Expr, what: str) -> bool:
    """Whether a value is a number. Reports an error about a label, a row or a condition in its place."""
    kind = sort(ctx, value)
    if kind == "number":
        return True
    if kind == "truth":
        ctx.report(errors.sorts.condition_as_number(ctx.quote(value), what))
    elif kind == "row":
        assert isinstance(value, ir.Element) and isinstance(value.binder.domain, ir.RowSet)
        columns = ctx.tables[value.binder.domain.table].columns
        ctx.report(errors.sorts.row_as_number(described(ctx, value), what, value.binder.name, columns))
    elif kind == "label":
        ctx.report(errors.sorts.label_as_number(ctx.quote(value), what))
    return False
