"""Operators: signs, sums, products, powers and ``not``, with shapes checked and constants folded."""

from __future__ import annotations

import math

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import arrays, comparisons, domains, signs
from fccomodel.language.formulas.context import Context, FormulaArray, Scope
from fccomodel.language.formulas.expressions import as_number, complete, evaluates
from fccomodel.language.formulas.shapes import broadcast, described, same_dim
from fccomodel.library import atoms

#: What an operation does to its operands, in messages.
VERBS = {
    "add": "added",
    "sub": "subtracted",
    "mul": "multiplied",
    "div": "divided",
    "pow": "raised to a power",
    "matmul": "multiplied",
}


@evaluates(syntax.Unary)
def unary(ctx: Context, scope: Scope, node: syntax.Unary) -> ir.Expr | None:
    """``-u``, ``+u``, ``not c``."""
    if node.op == "not":
        condition = comparisons.condition(ctx, scope, node.arg)
        if condition is None:
            return None
        return ir.Apply(op="not", args=(condition,), span=node.span)
    value = arrays.operand(ctx, scope, node.arg)
    if isinstance(value, FormulaArray):
        return arrays.entrywise(ctx, [value], lambda parts: signed(ctx, node, parts[0]), node.op, node.span)
    if value is None:
        return None
    return signed(ctx, node, value)


def signed(ctx: Context, node: syntax.Unary, number: ir.Expr) -> ir.Expr | None:
    """``-u`` or ``+u`` of a value, or None after an error."""
    value = as_number(ctx, number, f"what `{node.op}` stands before")
    if value is None:
        return None
    if node.op == "+":
        return value
    if isinstance(value, ir.Const):
        return ir.Const(value=-value.value, span=node.span)
    return ir.Apply(op="neg", args=(value,), shape=value.shape, span=node.span)


@evaluates(syntax.Binary)
def chain(ctx: Context, scope: Scope, node: syntax.Binary) -> ir.Expr | None:
    """``a op b op c ...``, taken from the left without recursion."""
    spine: list[syntax.Binary] = []
    first: syntax.Expr = node
    while isinstance(first, syntax.Binary):
        spine.append(first)
        first = first.left
    left = arrays.operand(ctx, scope, first)
    for link in reversed(spine):
        right = arrays.operand(ctx, scope, link.right)
        if left is None or right is None:
            left = None
        elif link.op in ("and", "or"):
            left = comparisons.connect(ctx, link.op, left, right, link.span)
        else:
            left = arithmetic(ctx, link.op, left, right, link.span)
    return left


@evaluates(syntax.Choice)
def choice(ctx: Context, scope: Scope, node: syntax.Choice) -> ir.Expr | None:
    """``if c then a else b``: ``[c] a + [not c] b``, where ``[c]`` is 1 or 0.

    A branch that is not defined everywhere, such as ``log(z.x)``, is a sum over one element under the
    condition, so that it is evaluated only where the condition holds. If the text alone settles the
    condition, the value is that of one branch.
    """
    condition = comparisons.condition(ctx, scope, node.condition, "what follows `if`")
    known = comparisons.settled(condition)
    if known is not None:
        return arrays.operand(ctx, scope, node.yes if known else node.no)
    yes, no = (arrays.operand(ctx, scope, branch) for branch in (node.yes, node.no))
    if condition is None or yes is None or no is None or not domains.condition_is_fixed(ctx, condition):
        return None
    if isinstance(yes, FormulaArray) or isinstance(no, FormulaArray):
        return arrays.entrywise(
            ctx, [yes, no], lambda parts: chosen(ctx, node, condition, *parts), "else", node.span
        )
    return chosen(ctx, node, condition, yes, no)


def chosen(
    ctx: Context, node: syntax.Choice, condition: ir.Expr, first: ir.Expr, second: ir.Expr
) -> ir.Expr | None:
    """The choice between two values, or None after an error."""
    yes, no = (as_number(ctx, branch, "what `if` chooses") for branch in (first, second))
    if yes is None or no is None:
        return None
    opposite = ir.Apply(op="not", args=(condition,), span=condition.span)
    return arithmetic(ctx, "+", _under(condition, yes), _under(opposite, no), node.span)


def _under(condition: ir.Expr, branch: ir.Expr) -> ir.Expr:
    """A number where a condition holds, and 0 elsewhere."""
    if isinstance(branch, ir.Const) and branch.value == 0 and not branch.shape:
        return branch
    if _defined_everywhere(branch):
        indicator = ir.Apply(op="indicator", args=(condition,), span=condition.span)
        return ir.Apply(op="mul", args=(indicator, branch), shape=branch.shape, span=branch.span)
    one = ir.Const(value=1.0, span=condition.span)
    alone = ir.Binder(
        name="once", kind="in", domain=ir.ValueSet(name="{1}", items=(one,)), span=condition.span
    )
    return ir.Reduce(
        kind="sum",
        binders=(alone,),
        body=branch,
        condition=condition,
        shape=branch.shape,
        span=branch.span,
    )


def _defined_everywhere(expr: ir.Expr) -> bool:
    """Whether no function in an expression limits the values of its arguments."""
    applied = (atoms.of(node) for node in ir.walk(expr) if isinstance(node, ir.Apply))
    return not any(atom is None or atom.limited for atom in applied)


def arithmetic(ctx: Context, op: str, left: ir.Expr, right: ir.Expr, span: Span) -> ir.Expr | None:
    """``left op right`` with shapes checked and constants folded, or None after an error."""
    name = atoms.operator(op).name
    if isinstance(left, FormulaArray) or isinstance(right, FormulaArray):
        return _of_arrays(ctx, op, left, right, span)
    what = f"what is {VERBS[name]}"
    sides = complete([as_number(ctx, left, what), as_number(ctx, right, what)])
    if sides is None:
        return None
    left, right = sides
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


def _of_arrays(ctx: Context, op: str, left: ir.Expr, right: ir.Expr, span: Span) -> ir.Expr | None:
    """``left op right`` if one side is an array by formula; None after an error."""
    if op == "@":
        return arrays.product(ctx, left, right, span)
    if op == "^" and right.shape:
        ctx.report(errors.shapes.exponent(described(ctx, right)))
        return None
    return arrays.entrywise(
        ctx, [left, right], lambda parts: arithmetic(ctx, op, parts[0], parts[1], span), op, span
    )


def matmul(ctx: Context, left: ir.Expr, right: ir.Expr, span: Span) -> ir.Expr | None:
    """``A @ B`` of vectors and matrices: the last axis of ``A`` meets the first axis of ``B``."""
    axes = 1 <= len(left.shape) <= 2 and 1 <= len(right.shape) <= 2
    if not axes or not same_dim(ctx, left.shape[-1], right.shape[0]):
        ends = described(ctx, left, 30), described(ctx, right, 30)
        ctx.report(errors.shapes.matrix_product(*ends, span, with_scalar=not left.shape or not right.shape))
        return None
    return ir.Apply(op="matmul", args=(left, right), shape=left.shape[:-1] + right.shape[1:], span=span)


def fold(ctx: Context, name: str, left: ir.Const, right: ir.Const, span: Span) -> ir.Const | None:
    """The value of an operation on two constants, or None after an error."""
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
