"""A quantity that has a name is what it is defined as."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.library.identities._base import Identity, Known


def _apply(node: ir.Expr, known: Known) -> ir.Expr | None:
    """Uses of one ``let`` become one node, so that they share their draws as before."""
    return node.let.body if isinstance(node, ir.LetRef) and not node.let.binders else None


inlined_let = Identity(name="inlined_let", formula="r = e, where `let r = e`", apply=_apply)
