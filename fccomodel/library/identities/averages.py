"""Means over the rows of tables: drawn where they give samples, listed where they distinguish
blocks."""

from __future__ import annotations

from dataclasses import replace

from fccomodel.core import ir
from fccomodel.core.rewrite import substitute
from fccomodel.library import reductions
from fccomodel.library.identities._base import Identity, Knowledge

FORMS = {True: ("mean", "in"), False: ("E", "~")}


def _apply(node: ir.Expr, known: Knowledge) -> ir.Expr | None:
    if not isinstance(node, ir.Reduce) or not reductions.of(node).average or node.options:
        return None
    if not all(isinstance(b.domain, ir.RowSet) for b in node.binders) or not movable(node):
        return None
    kind, way = FORMS[_tells_apart(node)]
    if node.kind == kind and all(b.kind == way for b in node.binders):
        return None
    binders = tuple(replace(b, kind=way) for b in node.binders)
    return renamed(node, binders, kind)


def renamed(node: ir.Reduce, binders: tuple[ir.Binder, ...], kind: str) -> ir.Reduce:
    """The reduction with other binders."""
    names = {old: ir.Element(binder=new) for old, new in zip(node.binders, binders, strict=True)}
    if node.condition is None:
        condition = None
    else:
        condition = substitute(node.condition, names)
    return replace(node, kind=kind, binders=binders, body=substitute(node.body, names), condition=condition)


def movable(node: ir.Reduce) -> bool:
    """Whether the elements are named by expressions alone, so that no inner set or distribution
    depends on them."""
    inside = [b.domain for n in ir.walk(node.body) if isinstance(n, ir.Reduce) for b in n.binders]
    args = [a for d in inside if isinstance(d, ir.Distribution | ir.VectorSet) for a in d.args]
    args += [d.where for d in inside if isinstance(d, ir.RowSet) and d.where is not None]
    return set(node.binders).isdisjoint(b for a in args for b in ir.free_binders(a))


def _tells_apart(node: ir.Reduce) -> bool:
    """Whether a reduction inside the body depends on the elements."""
    own = set(node.binders)
    return any(
        isinstance(n, ir.Reduce) and not own.isdisjoint(ir.free_binders(n)) for n in ir.walk(node.body)
    )


averages = Identity(
    name="averages",
    formula="E[z ~ D] a(z) = mean[z in D] a(z) over the rows of a table: mean where a reduction inside a "
    "depends on z, else E",
    apply=_apply,
)
