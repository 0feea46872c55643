"""Conditions: comparisons of numbers, labels and rows, and their connection by ``and``, ``or``, ``not``."""

from __future__ import annotations

import operator
from collections.abc import Callable

from fccomodel.core import ir
from fccomodel.core.rewrite import conjunction
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import expressions, shapes
from fccomodel.language.formulas.context import Context, Scope
from fccomodel.language.formulas.shapes import described, labels_of, sort
from fccomodel.library import atoms


def condition(ctx: Context, scope: Scope, node: syntax.Expr, what: str = "this") -> ir.Expr | None:
    """The value of a formula where a condition is needed, or None after an error."""
    value = expressions.evaluate(ctx, scope, node)
    if value is None or not is_condition(ctx, value, what):
        return None
    return value


def is_condition(ctx: Context, value: ir.Expr, what: str = "this") -> bool:
    """Whether a value is a condition. Reports an error if it is not."""
    if sort(ctx, value) == "truth":
        return True
    ctx.report(errors.sorts.not_a_condition(what, described(ctx, value)))
    return False


def connect(ctx: Context, op: str, left: ir.Expr, right: ir.Expr, span: Span) -> ir.Expr | None:
    """``left and right``, ``left or right``."""
    what = f"each side of `{op}`"
    conditions = [is_condition(ctx, side, what) for side in (left, right)]
    if not all(conditions):
        return None
    return ir.Apply(op=op, args=(left, right), span=span)


#: The comparisons of numbers.
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "le": operator.le,
    "lt": operator.lt,
    "ge": operator.ge,
    "gt": operator.gt,
    "eq": operator.eq,
    "ne": operator.ne,
}


def settled(condition: ir.Expr | None) -> bool | None:
    """Whether a condition holds if the numbers of the text settle it, else None."""
    match condition:
        case ir.Apply(op=op, args=(ir.Const(value=left), ir.Const(value=right))) if op in COMPARISONS:
            return COMPARISONS[op](left, right)
        case ir.Apply(op="not", args=(inner,)):
            known = settled(inner)
            return None if known is None else not known
        case ir.Apply(op="and" | "or" as op, args=args):
            sides = [settled(side) for side in args]
            decisive = op == "or"
            if decisive in sides:
                return decisive
            return None if None in sides else not decisive
    return None


@expressions.evaluates(syntax.Compare)
def compare(ctx: Context, scope: Scope, node: syntax.Compare) -> ir.Expr | None:
    """A chain of comparisons: ``a <= b <= c`` is ``a <= b and b <= c``."""
    of_matrices = next((op for op in node.ops if op in ir.MATRIX_RELATIONS), None)
    if of_matrices is not None:
        ctx.report(errors.shapes.matrices_compared(of_matrices, node.span))
        return None
    operands = [expressions.evaluate(ctx, scope, o) for o in node.operands]
    links: list[ir.Expr | None] = []
    for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
        if left is None or right is None:
            links.append(None)
            continue
        if len(node.ops) > 1:
            span = left.span | right.span
        else:
            span = node.span
        links.append(compared(ctx, op, left, right, span))
    if any(link is None for link in links):
        return None
    return conjunction(links)


def compared(ctx: Context, op: str, left: ir.Expr, right: ir.Expr, span: Span) -> ir.Expr | None:
    """One comparison, or None after an error."""
    sorts = sort(ctx, left), sort(ctx, right)
    if sorts == ("number", "number"):
        comparable = _numbers_comparable(ctx, op, left, right, span)
    elif sorts == ("label", "label"):
        comparable = _labels_comparable(ctx, op, left, right, span)
    elif sorts == ("row", "row"):
        comparable = _rows_comparable(ctx, op, left, right, span)
    else:
        comparable = False
        _report_mixed(ctx, left, right, span)
    if comparable:
        return ir.Apply(op=atoms.operator(op).name, args=(left, right), span=span)
    return None


def _numbers_comparable(ctx: Context, op: str, left: ir.Expr, right: ir.Expr, span: Span) -> bool:
    """Whether two numbers can be compared. Reports arrays, and values that never equal the constant."""
    for side in (left, right):
        if side.shape:
            ctx.report(errors.shapes.compared(described(ctx, side)))
            return False
    if op not in ("==", "!="):
        return True
    for value, constant in ((left, right), (right, left)):
        domain = _value_domain(ctx, value)
        if not isinstance(constant, ir.Const) or domain is None:
            continue
        members = shapes.members(domain)
        if members is not None and shapes.place_among(members, constant.value) is None:
            quote = ctx.quote(value)
            ctx.report(errors.values.never_equal(quote, constant.value, op, domain.name, members, span))
            return False
    return True


def _value_domain(ctx: Context, node: ir.Expr) -> ir.Set | None:
    """The set that the values of a column, or of an element, belong to, or None if none is declared."""
    if isinstance(node, ir.Element):
        return node.binder.domain
    if not isinstance(node, ir.Column):
        return None
    kind = shapes.column_type(ctx, node)
    if kind is None:
        return None
    return kind.domain


def _labels_comparable(ctx: Context, op: str, left: ir.Expr, right: ir.Expr, span: Span) -> bool:
    """Whether two labels can be compared. Reports an order of labels, and labels of different sets."""
    if op not in ("==", "!="):
        ctx.report(errors.sorts.labels_ordered(op, span))
        return False
    left_set, right_set = labels_of(ctx, left), labels_of(ctx, right)
    if left_set is not None and right_set is not None:
        if shapes.same_set(left_set, right_set):
            return True
        names = left_set.name, right_set.name
        ctx.report(errors.sorts.labels_of_two_sets(ctx.quote(left), ctx.quote(right), names, span))
        return False
    if left_set is not None:
        label_set, literal = left_set, right
    elif right_set is not None:
        label_set, literal = right_set, left
    else:
        ctx.report(errors.sorts.labels_in_quotes(span))
        return False
    assert isinstance(literal, ir.Label)
    if label_set.labels is not None and literal.text not in label_set.labels:
        ctx.report(errors.values.no_such_label(literal.text, label_set.name, label_set.labels, literal.span))
        return False
    return True


def _rows_comparable(ctx: Context, op: str, left: ir.Expr, right: ir.Expr, span: Span) -> bool:
    """Whether two rows can be compared. Reports an order of rows, and rows of different tables."""
    assert isinstance(left, ir.Element) and isinstance(right, ir.Element)
    tables = [b.domain.table for b in (left.binder, right.binder) if isinstance(b.domain, ir.RowSet)]
    if op not in ("==", "!="):
        ctx.report(errors.sorts.rows_ordered(op, span))
        return False
    if tables[0] != tables[1]:
        names = tables[0], tables[1]
        ctx.report(errors.sorts.rows_of_two_tables(ctx.quote(left), ctx.quote(right), names, span))
        return False
    return True


def _report_mixed(ctx: Context, left: ir.Expr, right: ir.Expr, span: Span) -> None:
    """Report a comparison of different sorts: a label with a number, a row with a value, a condition."""
    for side in (left, right):
        if sort(ctx, side) == "truth":
            ctx.report(errors.sorts.condition_compared(described(ctx, side), span))
            return
    sides = described(ctx, left), described(ctx, right), span
    if sort(ctx, left) == "label":
        label, counterpart = left, right
    else:
        label, counterpart = right, left
    domain = None
    if sort(ctx, label) == "label":
        domain = labels_of(ctx, label)
    if domain is not None and isinstance(counterpart, ir.Const):
        ctx.report(errors.sorts.label_compared_with_number(*sides, ctx.quote(label), counterpart.value))
    elif isinstance(label, ir.Label) and domain is None:
        ctx.report(errors.sorts.number_compared_with_label(*sides, label.text))
    elif "row" in (sort(ctx, left), sort(ctx, right)):
        ctx.report(errors.sorts.row_compared_with_value(*sides))
    else:
        ctx.report(errors.sorts.incomparable(*sides))
