"""How models write a function of one variable: a sum of terms, each a number times an atom of the
variable, moved perhaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.library.linear import LinearTerm, joined, terms

#: the value of an expression without variables; None where it is not known
Constant = Callable[[ir.Expr], float | None]


def summands(expr: ir.Expr) -> list[ir.Expr]:
    """The terms of a sum, from left to right; in a difference the sign goes into the term."""
    result: list[ir.Expr] = []
    stack = [(expr, 1)]
    while stack:
        node, sign = stack.pop()
        match node:
            case ir.Apply(op="add", args=args):
                stack.extend((a, sign) for a in reversed(args))
            case ir.Apply(op="sub", args=(a, b)):
                stack.extend([(b, -sign), (a, sign)])
            case ir.Apply(op="neg", args=(a,)):
                stack.append((a, -sign))
            case _:
                result.append(node if sign > 0 else make("neg", node, span=node.span))
    return result


def factored(expr: ir.Expr, constant: Constant) -> tuple[float, ir.Expr] | None:
    """A term as a number times the rest, or None if it is a sum or a factor is not known."""
    parts = terms(expr)
    if len(parts) == 1:
        factor = multiplier(parts[0], constant)
    else:
        factor = None
    if factor is None:
        return None
    return (factor, parts[0].core)


def multiplier(term: LinearTerm, constant: Constant) -> float | None:
    """The number by which a term multiplies its core, or None if it is not known."""
    value = float(term.sign)
    for op, by in term.factors:
        number = constant(by)
        if number is None or op == "div" and number == 0:
            return None
        if op == "div":
            value = value / number
        else:
            value = value * number
    return value


@dataclass(frozen=True, eq=False, kw_only=True)
class Matched:
    """An atom of ``x - centre`` with a whole variable x (centre None: 0), and its further
    arguments."""

    centre: ir.Expr | None = None
    rest: tuple[ir.Expr, ...] = ()


def matched(core: ir.Expr, form: str, variable: str) -> Matched | None:
    """The core as this atom of the variable, possibly after a translation by a fixed expression, or
    None.

    The translation keeps the shape of the variable: in ``sumsq(a - t)`` with an array a and a number t,
    the argument has as many entries as a, and the prox of ``sumsq`` is not that of t.
    """
    if not isinstance(core, ir.Apply) or core.op != form:
        return None
    first, *rest = core.args
    if is_variable(first, variable):
        return Matched(rest=tuple(rest))
    parts = terms(first)
    moving = [t for t in parts if ir.variables_of(t.core)]
    fixed = [replace(t, sign=-t.sign) for t in parts if not ir.variables_of(t.core)]
    if (
        len(moving) != 1
        or not is_variable(moving[0].core, variable)
        or first.shape != moving[0].core.shape
        or moving[0].factors
        or moving[0].sign < 0
    ):
        return None
    if all(is_fixed(t.expr) for t in fixed):
        return Matched(centre=joined(fixed, first.span), rest=tuple(rest))
    return None


def is_variable(node: ir.Expr, variable: str) -> bool:
    """Whether the node is a whole variable."""
    return isinstance(node, ir.Var) and node.name == variable


def is_fixed(node: ir.Expr) -> bool:
    """Whether the node holds numbers, parameters, arrays and sizes only, so that the data decide
    it."""
    return all(isinstance(n, ir.Const | ir.Param | ir.Size | ir.Apply | ir.Item) for n in ir.walk(node))
