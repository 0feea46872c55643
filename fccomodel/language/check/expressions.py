"""Formulas: syntax to typed expressions. An expression with an error becomes None, which silences what
is built on it."""

from __future__ import annotations

import math

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.check import (
    calls,
    comparisons,
    indexing,
    names,
    reductions,
    signs,
)
from fccomodel.language.check.context import LARGEST, Context, Scope
from fccomodel.language.check.shapes import broadcast, described, same_dim, sort
from fccomodel.library import atoms

VERBS = {
    "add": "added",
    "sub": "subtracted",
    "mul": "multiplied",
    "div": "divided",
    "pow": "raised to a power",
    "matmul": "multiplied",
}


def evaluate(ctx: Context, scope: Scope, node: syntax.Expr) -> ir.Expr | None:
    """The typed expression, or None after an error."""
    ctx.nodes += 1
    if ctx.nodes > LARGEST:
        if not ctx.overgrown:
            ctx.overgrown = True
            if ctx.calls:
                outermost = ctx.calls[0][1]
            else:
                outermost = node.span
            ctx.calls.clear()
            ctx.report(errors.problem.model_too_large(LARGEST, outermost))
        return None
    match node:
        case syntax.Number():
            return ir.Const(value=node.value, span=node.span)
        case syntax.String():
            return ir.Label(text=node.value, span=node.span)
        case syntax.Name():
            return names.resolve(ctx, scope, node)
        case syntax.Unary():
            return unary(ctx, scope, node)
        case syntax.Binary():
            return chain(ctx, scope, node)
        case syntax.Compare():
            return comparisons.compare(ctx, scope, node)
        case syntax.Field():
            return indexing.field(ctx, scope, node)
        case syntax.Index():
            return indexing.index(ctx, scope, node)
        case syntax.Call():
            return calls.call(ctx, scope, node)
        case syntax.Reduce():
            return reductions.reduce(ctx, scope, node)
    ctx.report(errors.sorts.set_as_number(ctx.quote(node)))
    return None


def number(
    ctx: Context, scope: Scope, node: syntax.Expr, what: str, *, scalar: bool = True, advice: str = ""
) -> ir.Expr | None:
    """A number (by default a scalar) where one is needed; ``what`` names the place in the message."""
    value = evaluate(ctx, scope, node)
    if value is None or not is_number(ctx, value, what):
        return None
    if scalar and value.shape:
        ctx.report(errors.shapes.not_a_scalar(what, described(ctx, value), advice))
        return None
    return value


def is_number(ctx: Context, value: ir.Expr, what: str) -> bool:
    """True, or an error about a label, a row, a condition or a net's parameters in the place of a number."""
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


# ---------------------------------------------------------------------------------------- operators
def unary(ctx: Context, scope: Scope, node: syntax.Unary) -> ir.Expr | None:
    if node.op == "not":
        condition = comparisons.condition(ctx, scope, node.arg)
        if condition is None:
            return None
        return ir.Apply(op="not", args=(condition,), span=node.span)
    value = evaluate(ctx, scope, node.arg)
    if value is None or not is_number(ctx, value, f"what `{node.op}` stands before"):
        return None
    if node.op == "+":
        return value
    if isinstance(value, ir.Const):
        return ir.Const(value=-value.value, span=node.span)
    return ir.Apply(op="neg", args=(value,), shape=value.shape, span=node.span)


def chain(ctx: Context, scope: Scope, node: syntax.Binary) -> ir.Expr | None:
    """``a op b op c ...``, taken from the left without recursion."""
    spine: list[syntax.Binary] = []
    first: syntax.Expr = node
    while isinstance(first, syntax.Binary):
        spine.append(first)
        first = first.left
    left = evaluate(ctx, scope, first)
    for link in reversed(spine):
        right = evaluate(ctx, scope, link.right)
        if left is None or right is None:
            left = None
        elif link.op in ("and", "or"):
            left = comparisons.connect(ctx, link.op, left, right, link.span)
        else:
            left = arithmetic(ctx, link.op, left, right, link.span)
    return left


def arithmetic(ctx: Context, op: str, left: ir.Expr, right: ir.Expr, span: Span) -> ir.Expr | None:
    """``left op right`` with shapes checked and constants folded."""
    name = atoms.operator(op).name
    what = f"what is {VERBS[name]}"
    if not (is_number(ctx, left, what) & is_number(ctx, right, what)):
        return None
    if name == "matmul":
        return matmul(ctx, left, right, span)
    if isinstance(left, ir.Const) and isinstance(right, ir.Const):
        return fold(ctx, name, left, right, span)
    shape = broadcast(ctx, left.shape, right.shape)
    if shape is None:
        ends = described(ctx, left, 30), described(ctx, right, 30)
        ctx.report(errors.shapes.operands(op, *ends, span, (len(left.shape), len(right.shape))))
        return None
    if name == "pow" and right.shape:
        ctx.report(errors.shapes.exponent(described(ctx, right)))
        return None
    if not signs.operation_is_defined(ctx, name, left, right, span):
        return None
    return ir.Apply(op=name, args=(left, right), shape=shape, span=span)


def matmul(ctx: Context, left: ir.Expr, right: ir.Expr, span: Span) -> ir.Expr | None:
    """``A @ B`` of vectors and matrices: the last axis of the left with the first of the right."""
    if not (1 <= len(left.shape) <= 2 and 1 <= len(right.shape) <= 2) or not same_dim(
        ctx, left.shape[-1], right.shape[0]
    ):
        ends = described(ctx, left, 30), described(ctx, right, 30)
        ctx.report(errors.shapes.matrix_product(*ends, span, with_scalar=not left.shape or not right.shape))
        return None
    return ir.Apply(op="matmul", args=(left, right), shape=left.shape[:-1] + right.shape[1:], span=span)


def fold(ctx: Context, name: str, left: ir.Const, right: ir.Const, span: Span) -> ir.Const | None:
    """The value of an operation on two constants."""
    x, y = left.value, right.value
    try:
        value = {
            "add": lambda: x + y,
            "sub": lambda: x - y,
            "mul": lambda: x * y,
            "div": lambda: x / y,
            "pow": lambda: x**y,
        }[name]()
        bad = isinstance(value, complex) or math.isnan(value)
    except (ZeroDivisionError, OverflowError):
        bad = True
    if bad:
        ctx.report(errors.values.constant_without_value(ctx.quote(span), by_zero=name == "div" and y == 0))
        return None
    return ir.Const(value=float(value), span=span)
