"""Nested reductions of one kind are joined: a maximum of maxima, a mean of means."""

from __future__ import annotations

from dataclasses import replace

from fccomodel.core import ir
from fccomodel.core.rewrite import conjunction
from fccomodel.library import atoms, reductions
from fccomodel.library.identities._base import Identity, Knowledge
from fccomodel.library.linear import LinearTerm, single

#: Arguments of a joined maximum or minimum, at most: shared ones double at each level.
MAX_ARGUMENTS = 64


def _reductions(node: ir.Expr, known: Knowledge) -> ir.Expr | None:
    if not isinstance(node, ir.Reduce) or node.options or node.shape or not _associative(reductions.of(node)):
        return None
    around = single(node.body)
    inner = around.core
    if not isinstance(inner, ir.Reduce) or inner.options or not _alike(node, inner):
        return None
    if not independent(node, inner) and not (reductions.of(node).total and _alone(node, inner)):
        return None
    if (around.factors or around.sign < 0) and not reductions.of(node).linear:
        return None
    body = replace(around, core=inner.body, place=inner.body.span).expr
    condition = conjunction([node.condition, inner.condition])
    return replace(
        node, kind=inner.kind, binders=(*node.binders, *inner.binders), body=body, condition=condition
    )


def _alike(node: ir.Reduce, inner: ir.Reduce) -> bool:
    """Whether both reductions have one kind, or are means over rows, drawn or listed."""
    rows = all(isinstance(b.domain, ir.RowSet) for b in (*node.binders, *inner.binders))
    return node.kind == inner.kind or rows and reductions.of(node).average and reductions.of(inner).average


def _associative(kind: reductions.Reduction) -> bool:
    return kind.additive or kind.extreme


def independent(node: ir.Reduce, inner: ir.Reduce) -> bool:
    """Whether every outer element has the same inner elements."""
    related = inner.condition is not None and not set(node.binders).isdisjoint(
        ir.free_binders(inner.condition)
    )
    return not related and _alone(node, inner)


def _alone(node: ir.Reduce, inner: ir.Reduce) -> bool:
    """Whether every outer element has the same inner elements, apart from the condition."""
    outer = set(node.binders)
    domains = [b.domain for b in inner.binders]
    if any(isinstance(d, ir.VectorSet) for d in (*domains, *(b.domain for b in node.binders))):
        return False
    args = [a for d in domains if isinstance(d, ir.Distribution) for a in d.args]
    return outer.isdisjoint(b for a in args for b in ir.free_binders(a)) and not any(
        _depends(d, outer) for d in domains
    )


def _depends(domain: ir.Set, outer: set[ir.Binder]) -> bool:
    """Whether a set differs from element to element, such as the rows of a family's member."""
    where = domain.where if isinstance(domain, ir.RowSet) else None
    return where is not None and not outer.isdisjoint(ir.free_binders(where))


def _extremes(node: ir.Expr, known: Knowledge) -> ir.Expr | None:
    atom = atoms.of(node)
    if atom is None or not atom.extreme or not isinstance(node, ir.Apply):
        return None
    args = [b for a in node.args for b in _opened(a, node.op, known)]
    alike = all(a.shape == node.args[0].shape for a in args)
    if alike and len(node.args) < len(args) <= MAX_ARGUMENTS:
        return replace(node, args=tuple(args))
    return None


def _opened(arg: ir.Expr, op: str, known: Knowledge) -> tuple[ir.Expr, ...]:
    """The arguments of an extreme of the same kind with their multiplier, or the argument
    itself."""
    term = single(arg)
    inside = term.core
    positive = term.sign > 0 and all(known.where(f.by).lo >= 0 for f in term.factors)
    if not (positive and isinstance(inside, ir.Apply) and inside.op == op):
        return (arg,)
    return tuple(LinearTerm(core=a, factors=term.factors, place=a.span).expr for a in inside.args)


nested_reductions = Identity(
    name="nested_reductions",
    formula="R[i in I] R[j in J] a = R[i in I, j in J] a for R = sum, mean, E, max, min, where J is the "
    "same for every i;  "
    "sum[i in I] sum[j in J | c(i, j)] a = sum[i in I, j in J | c(i, j)] a",
    apply=_reductions,
    order=-1,
)
nested_extremes = Identity(
    name="nested_extremes", formula="max(2 max(a, b), c) = max(2 a, 2 b, c), and min alike", apply=_extremes
)
