"""How models write a function of one variable: a sum of terms, each a number times an atom of the variable."""

from __future__ import annotations

from collections.abc import Callable

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make

#: an atom of the variable, or an atom of an atom of it
Form = str | tuple[str, str]
#: the value of an expression without variables; None where it is not known
Constant = Callable[[ir.Expr], float | None]


def summands(expr: ir.Expr) -> list[ir.Expr]:
    """The terms of a sum, left to right (differences keep their sign in the term)."""
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


def factored(term: ir.Expr, variable: str, constant: Constant) -> tuple[float, ir.Expr] | None:
    """The term as a number times the rest, of which ``dot(w, w)`` is ``sumsq(w)`` and ``u^2`` is ``square(u)``."""
    factor = 1.0
    while True:
        match term:
            case ir.Apply(op="mul", args=(left, right)):
                multiplier, rest = (left, right) if variable not in ir.variables_of(left) else (right, left)
            case ir.Apply(op="div", args=(rest, multiplier)):
                pass
            case ir.Apply(op="neg", args=(rest,)):
                factor, term = -factor, rest
                continue
            case ir.Apply(op="dot", args=(left, right)) if is_variable(left, variable) and is_variable(right, variable):
                return factor, ir.Apply(op="sumsq", args=(left,), span=term.span)
            case ir.Apply(op="pow", args=(base, exponent)) if constant(exponent) == 2:
                return factor, ir.Apply(op="square", args=(base,), shape=term.shape, span=term.span)
            case _:
                return factor, term
        number = constant(multiplier) if variable not in ir.variables_of(multiplier) else None
        if number is None or (term.op == "div" and number == 0):
            return None
        factor, term = (factor / number if term.op == "div" else factor * number), rest


def matched(core: ir.Expr, form: Form, variable: str) -> tuple[ir.Expr, ...] | None:
    """The further arguments, if the core is of this form."""
    outer, inner = form if isinstance(form, tuple) else (form, None)
    if not isinstance(core, ir.Apply) or core.op != outer or core.shape:
        return None
    first, *rest = core.args
    if inner is not None:
        alone = not rest and isinstance(first, ir.Apply) and first.op == inner
        return () if alone and isinstance(first, ir.Apply) and is_variable(first.args[0], variable) else None
    return tuple(rest) if is_variable(first, variable) else None


def is_variable(node: ir.Expr, variable: str) -> bool:
    """The node is the whole variable."""
    return isinstance(node, ir.Var) and node.name == variable
