"""Summands 0 and exponents 1 are dropped."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.library.identities._base import Identity, Knowledge


def _is(node: ir.Expr, value: float) -> bool:
    return isinstance(node, ir.Const) and node.value == value and not node.shape


def _apply(node: ir.Expr, known: Knowledge) -> ir.Expr | None:
    match node:
        case ir.Apply(op="add", args=(a, b)) if _is(b, 0) or _is(a, 0):
            return _as(node, a if _is(b, 0) else b)
        case ir.Apply(op="sub", args=(a, b)) if _is(b, 0):
            return _as(node, a)
        case ir.Apply(op="sub", args=(a, b)) if _is(a, 0):
            return _as(node, make("neg", b, span=node.span))
        case ir.Apply(op="pow", args=(a, b)) if _is(b, 1):
            return _as(node, a)
    return None


def _as(node: ir.Expr, new: ir.Expr) -> ir.Expr | None:
    """The replacement, if it has the node's shape."""
    if new.shape == node.shape:
        return new
    return None


units = Identity(name="units", formula="a + 0 = a^1 = a;  0 - a = -a", apply=_apply)
