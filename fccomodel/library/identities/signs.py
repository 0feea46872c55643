"""Signs of sums, negatives and numbers."""

from __future__ import annotations

from dataclasses import replace

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.library.identities._base import Identity, Knowledge


def _apply(node: ir.Expr, known: Knowledge) -> ir.Expr | None:
    match node:
        case ir.Apply(op="neg", args=(ir.Const(value=value) as number,)):
            return replace(number, value=-value, span=node.span)
        case ir.Apply(op="neg", args=(ir.Apply(op="neg", args=(a,)),)):
            return a
        case ir.Apply(op="neg", args=(ir.Apply(op="sub", args=(a, b)),)):
            return make("sub", b, a, span=node.span)
        case (
            ir.Apply(op="add", args=(a, ir.Apply(op="neg", args=(b,))))
            | ir.Apply(op="add", args=(ir.Apply(op="neg", args=(b,)), a))
        ):
            return make("sub", a, b, span=node.span)
        case ir.Apply(op="sub", args=(a, ir.Apply(op="neg", args=(b,)))):
            return make("add", a, b, span=node.span)
    return None


signs = Identity(
    name="signs",
    formula="-(-a) = a;  -(a - b) = b - a;  a + (-b) = a - b;  a - (-b) = a + b",
    apply=_apply,
)
