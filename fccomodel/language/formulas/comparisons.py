"""Conditions: comparisons of numbers, labels and rows, and their connection by ``and``, ``or``, ``not``."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.core.rewrite import conjunction
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import expressions, shapes
from fccomodel.language.formulas.context import Context, Scope
from fccomodel.language.formulas.shapes import described, labels_of, sort
from fccomodel.library import atoms


def condition(ctx: Context, scope: Scope, node: syntax.Expr, what: str = "this") -> ir.Expr | None:
    """A condition where one is needed."""
    value = expressions.evaluate(ctx, scope, node)
    return value if value is not None and is_condition(ctx, value, what) else None


def is_condition(ctx: Context, value: ir.Expr, what: str = "this") -> bool:
    if sort(ctx, value) == "truth":
        return True
    ctx.report(errors.sorts.not_a_condition(what, described(ctx, value)))
    return False


def connect(ctx: Context, op: str, left: ir.Expr, right: ir.Expr, span: Span) -> ir.Expr | None:
    """``left and right``, ``left or right``."""
    if not (
        is_condition(ctx, left, f"each side of `{op}`") & is_condition(ctx, right, f"each side of `{op}`")
    ):
        return None
    return ir.Apply(op=op, args=(left, right), span=span)


@expressions.evaluates(syntax.Compare)
def compare(ctx: Context, scope: Scope, node: syntax.Compare) -> ir.Expr | None:
    """A chain of comparisons: ``a <= b <= c`` is ``a <= b and b <= c``."""
    operands = [expressions.evaluate(ctx, scope, o) for o in node.operands]
    links: list[ir.Expr | None] = []
    for k, op in enumerate(node.ops):
        left, right = operands[k], operands[k + 1]
        if left is None or right is None:
            links.append(None)
        else:
            links.append(
                _compare(ctx, op, left, right, left.span | right.span if len(node.ops) > 1 else node.span)
            )
    if any(link is None for link in links):
        return None
    return conjunction(links)


def _compare(ctx: Context, op: str, left: ir.Expr, right: ir.Expr, span: Span) -> ir.Expr | None:
    sorts = sort(ctx, left), sort(ctx, right)
    if sorts == ("number", "number"):
        comparable = _numbers(ctx, op, left, right, span)
    elif sorts == ("label", "label"):
        comparable = _labels(ctx, op, left, right, span)
    elif sorts == ("row", "row"):
        comparable = _rows(ctx, op, left, right, span)
    else:
        comparable = False
        _mixed(ctx, left, right, span)
    if comparable:
        return ir.Apply(op=atoms.operator(op).name, args=(left, right), span=span)
    return None


def _numbers(ctx: Context, op: str, left: ir.Expr, right: ir.Expr, span: Span) -> bool:
    for side in (left, right):
        if side.shape:
            ctx.report(errors.shapes.compared(described(ctx, side)))
            return False
    for value, constant in ((left, right), (right, left)):
        if isinstance(constant, ir.Const) and op in ("==", "!="):
            domain = _value_domain(ctx, value)
            if domain is None:
                members = None
            else:
                members = shapes.members(domain)
            if members is not None and not any(
                abs(v - constant.value) <= 1e-9 * max(1.0, abs(v)) for v in members
            ):
                name = domain.name if domain else ""
                ctx.report(
                    errors.values.never_equal(ctx.quote(value), constant.value, op, name, members, span)
                )
                return False
    return True


def _value_domain(ctx: Context, node: ir.Expr) -> ir.Set | None:
    if isinstance(node, ir.Column):
        kind = shapes.column_type(ctx, node)
        return kind.domain if kind is not None else None
    return node.binder.domain if isinstance(node, ir.Element) else None


def _labels(ctx: Context, op: str, left: ir.Expr, right: ir.Expr, span: Span) -> bool:
    if op not in ("==", "!="):
        ctx.report(errors.sorts.labels_ordered(op, span))
        return False
    sets = labels_of(ctx, left), labels_of(ctx, right)
    if sets == (None, None):
        ctx.report(errors.sorts.labels_in_quotes(span))
        return False
    if sets[0] is not None and sets[1] is not None:
        if shapes.same_set(sets[0], sets[1]):
            return True
        ctx.report(
            errors.sorts.labels_of_two_sets(
                ctx.quote(left), ctx.quote(right), (sets[0].name, sets[1].name), span
            )
        )
        return False
    label_set, literal = (sets[0], right) if sets[0] is not None else (sets[1], left)
    assert label_set is not None and isinstance(literal, ir.Label)
    if label_set.labels is not None and literal.text not in label_set.labels:
        ctx.report(errors.values.no_such_label(literal.text, label_set.name, label_set.labels, literal.span))
        return False
    return True


def _rows(ctx: Context, op: str, left: ir.Expr, right: ir.Expr, span: Span) -> bool:
    assert isinstance(left, ir.Element) and isinstance(right, ir.Element)
    tables = [b.domain.table for b in (left.binder, right.binder) if isinstance(b.domain, ir.RowSet)]
    if op not in ("==", "!="):
        ctx.report(errors.sorts.rows_ordered(op, span))
        return False
    if tables[0] != tables[1]:
        ctx.report(
            errors.sorts.rows_of_two_tables(ctx.quote(left), ctx.quote(right), (tables[0], tables[1]), span)
        )
        return False
    return True


def _mixed(ctx: Context, left: ir.Expr, right: ir.Expr, span: Span) -> None:
    if conditions := [side for side in (left, right) if sort(ctx, side) == "truth"]:
        ctx.report(errors.sorts.condition_compared(described(ctx, conditions[0]), span))
        return
    sides = described(ctx, left), described(ctx, right), span
    if sort(ctx, left) == "label":
        label, counterpart = (left, right)
    else:
        label, counterpart = (right, left)
    if sort(ctx, label) == "label":
        domain = labels_of(ctx, label)
    else:
        domain = None
    if domain is not None and isinstance(counterpart, ir.Const):
        ctx.report(errors.sorts.label_compared_with_number(*sides, ctx.quote(label), counterpart.value))
    elif isinstance(label, ir.Label) and domain is None:
        ctx.report(errors.sorts.number_compared_with_label(*sides, label.text))
    elif "row" in (sort(ctx, left), sort(ctx, right)):
        ctx.report(errors.sorts.row_compared_with_value(*sides))
    else:
        ctx.report(errors.sorts.incomparable(*sides))
