"""Several numbers that multiply one expression become one factor."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.library.identities._base import Identity, Knowledge
from fccomodel.library.linear import LinearTerm, opened, single


def _apply(node: ir.Expr, known: Knowledge) -> ir.Expr | None:
    if not isinstance(node, ir.Apply) or node.op not in ("mul", "div"):
        return None
    term, written, part = single(node), 0, LinearTerm(core=node)
    while part.core is not term.core:
        written += isinstance(part.core, ir.Apply) and part.core.op in ("mul", "div")
        (part,) = opened(part) or [term]
    if written > len(term.factors):
        return term.expr
    return None


products = Identity(name="products", formula="2 (a / 4) = 0.5 a;  1 a = a;  -1 a = -a", apply=_apply)
