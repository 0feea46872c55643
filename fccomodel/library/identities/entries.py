"""Sums over all entries of arrays as functions of whole arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fccomodel.core import ir
from fccomodel.core.rewrite import Rewriter
from fccomodel.core.rewrite import apply as make
from fccomodel.library import atoms
from fccomodel.library.identities._base import Identity, Knowledge


def whole(body: ir.Expr, binders: Sequence[ir.Binder]) -> ir.Expr | None:
    """The array of a body's values over binders that run along all axes of an array, or None.

    ``w[i]^2 - c[i]`` over ``i in d`` is ``w^2 - c`` for w and c of shape [d].
    """
    shapes = {
        id(n.base): n.base.shape for n in ir.walk(body) if isinstance(n, ir.Item) and _in_order(n, binders)
    }
    shape = next(iter(shapes.values()), None)
    if shape is None or any(s != shape for s in shapes.values()):
        return None
    if not all(b.kind == "in" and runs_along(b.domain, dim) for b, dim in zip(binders, shape, strict=True)):
        return None

    def rule(node: ir.Expr) -> ir.Expr | None:
        """The array for its entries in order."""
        if isinstance(node, ir.Item) and _in_order(node, binders):
            return node.base
        if isinstance(node, ir.Apply) and any(a.shape for a in node.args) and not node.shape:
            return replace(node, shape=max((a.shape for a in node.args), key=len))
        return None

    mine = set(binders)
    for node in ir.walk(body):
        touched = not mine.isdisjoint(ir.free_binders(node))
        by_entry = isinstance(atoms.of(node), atoms.ScalarAtom) and not node.shape
        place = isinstance(node, ir.Element) or isinstance(node, ir.Item) and _in_order(node, binders)
        if touched and not by_entry and not place:
            return None
    result = Rewriter(rule)(body)
    if result.shape == shape and mine.isdisjoint(ir.free_binders(result)):
        return result
    return None


#: Numbers that are sums over the entries of vectors: the atom of an entry, or None for the entry itself.
SUMS = {"sum": None, "sumsq": "square", "norm1": "abs", "dot": "mul"}


def by_entries(node: ir.Expr, domain: ir.Set) -> ir.Reduce | None:
    """``sumsq(q - p)`` as ``sum[k in K] (q[k] - p[k])^2``, or None if the node is no such sum.

    ``domain`` are the places along the vectors. This is the inverse of the identities for
    ``sum``.
    """
    if (
        not isinstance(node, ir.Apply)
        or node.op not in SUMS
        or node.shape
        or any(len(a.shape) > 1 for a in node.args)
    ):
        return None
    k = ir.Binder(name="k", kind="in", domain=domain)
    parts, atom = [entry(a, k) for a in node.args], SUMS[node.op]
    if atom is None:
        body = parts[0]
    else:
        body = make(atom, *parts, span=node.span)
    return ir.Reduce(kind="sum", binders=(k,), body=body, span=node.span)


def entry(array: ir.Expr, k: ir.Binder) -> ir.Expr:
    """The entry of a vector at k; a number is its own entry."""
    if not array.shape:
        return array
    if isinstance(array, ir.Apply) and isinstance(atoms.of(array), atoms.ScalarAtom):
        return replace(array, args=tuple(entry(a, k) for a in array.args), shape=())
    if isinstance(array, ir.Apply) and array.op == "matmul" and len(array.args[0].shape) == 2:
        matrix, vector = array.args
        row = ir.Item(base=matrix, indices=(ir.Element(binder=k),), shape=matrix.shape[1:], span=matrix.span)
        return ir.Apply(op="dot", args=(row, vector), span=array.span)
    if isinstance(array, ir.Const):
        return replace(array, shape=())
    return ir.Item(base=array, indices=(ir.Element(binder=k),), span=array.span)


def _in_order(node: ir.Item, binders: Sequence[ir.Binder]) -> bool:
    """The entry that the binders select, one axis each."""
    return len(node.indices) == len(binders) == len(node.base.shape) and all(
        isinstance(i, ir.Element) and i.binder is b for i, b in zip(node.indices, binders, strict=True)
    )


def runs_along(domain: ir.Set, dim: ir.Dim) -> bool:
    """Whether a set lists the places of a dimension, each once: ``d``, ``1 .. d``, ``1 .. 3``, its
    labels."""
    if not isinstance(domain, ir.ValueSet):
        return domain.name == dim
    first = isinstance(domain.low, ir.Const) and domain.low.value == 1
    by_one = domain.step is None or isinstance(domain.step, ir.Const) and domain.step.value == 1
    last = domain.high
    ends = isinstance(last, ir.Size) and last.dim == dim or isinstance(last, ir.Const) and last.value == dim
    return first and by_one and ends or isinstance(dim, str) and domain.name == dim


def _sum(node: ir.Expr, known: Knowledge) -> ir.Expr | None:
    if not isinstance(node, ir.Reduce) or node.kind not in ("sum", "max") or node.options or node.shape:
        return None
    if node.condition is None:
        array = whole(node.body, node.binders)
    else:
        array = None
    if array is None:
        return None
    if node.kind == "sum":
        return ir.Apply(op="sum", args=(array,), span=node.span)
    if isinstance(array, ir.Apply) and array.op == "abs":
        inner = array.args[0]
    else:
        inner = None
    if inner is None or len(inner.shape) != 1:
        return None
    return ir.Apply(op="norminf", args=(inner,), span=node.span)


entries = Identity(
    name="entries",
    formula="sum[i in d] f(w[i]) = sum(f(w)) for an atom f of numbers;  max[i in d] abs(w[i]) = norminf(w)",
    apply=_sum,
    order=-1,
)
