"""A named quantity is replaced by its definition."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.library.identities._base import Identity, Knowledge


def _apply(node: ir.Expr, known: Knowledge) -> ir.Expr | None:
    """All uses of one ``let`` become the same node, so that they still share their draws."""
    if isinstance(node, ir.LetRef) and not node.let.binders:
        return node.let.body
    return None


inlined_let = Identity(name="inlined_let", formula="r = e, where `let r = e`", apply=_apply)
