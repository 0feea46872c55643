"""Rows of variables that could change places: a model that treats all alike has a saddle where they
are equal.

Of mixtures, of the hidden units of a net that is written out, of factors: a run that begins with
equal rows never leaves these.
"""

from __future__ import annotations

from collections.abc import Iterator

from fccomodel.core import ir
from fccomodel.library import atoms


def exchangeable(problem: ir.Problem) -> frozenset[str]:
    """The matrices outside simple sets whose rows are only ever iterated over, all of them alike,
    without a condition."""
    found: set[str] = set()
    for dim in {v.shape[0] for v in problem.variables.values() if v.shape and v.net is None}:
        names = {name for name, v in problem.variables.items() if v.net is None and v.shape[:1] == (dim,)}
        among = [problem.variables[name] for name in names]
        plain = all(
            not isinstance(arg, ir.Expr) or not arg.shape
            for v in among
            for s in v.sets
            for arg in (*s.args, s.centre)
        )
        if plain and _alike(problem, names, dim):
            found |= {v.name for v in among if len(v.shape) > 1 and not v.sets}
    return frozenset(found)


def _alike(problem: ir.Problem, names: set[str], dim: ir.Dim) -> bool:
    nodes = list(problem.expressions())
    items = [
        node
        for node in nodes
        if isinstance(node, ir.Item) and isinstance(node.base, ir.Var) and node.base.name in names
    ]
    rows = {node.indices[0].binder for node in items if isinstance(node.indices[0], ir.Element)}
    if not rows or any(not isinstance(node.indices[0], ir.Element) for node in items):
        return False
    if any(not _whole(binder, dim) for binder in rows) or any(c.binders for c in problem.constraints):
        return False
    for node in nodes:
        if isinstance(node, ir.LetRef) and node.args or isinstance(node, ir.Column) and node.binder in rows:
            return False
        if isinstance(node, ir.Reduce) and rows.intersection(node.binders) and node.condition is not None:
            return False
        if any(not _blind(node, child, names, rows) for child in _told(node, names, rows)):
            return False
    return True


def _told(node: ir.Expr, names: set[str], rows: set[ir.Binder]) -> Iterator[ir.Expr]:
    """Its children that are a variable as a whole, or a row's number."""
    for child in node.children:
        if (
            isinstance(child, ir.Var)
            and child.name in names
            or isinstance(child, ir.Element)
            and child.binder in rows
        ):
            yield child


def _blind(node: ir.Expr, child: ir.Expr, names: set[str], rows: set[ir.Binder]) -> bool:
    """A node that does not tell one row from another by this child."""
    if isinstance(node, ir.Item):
        first = node.indices[0]
        of = isinstance(node.base, ir.Var) and node.base.name in names
        return (
            of
            and isinstance(first, ir.Element)
            and first.binder in rows
            and (child is node.base or child is first)
        )
    return (
        isinstance(child, ir.Var)
        and isinstance(node, ir.Apply)
        and getattr(atoms.get(node.op), "symmetric", False)
    )


def _whole(binder: ir.Binder, dim: ir.Dim) -> bool:
    """It goes through all of a dim, or of a set."""
    domain = binder.domain
    if binder.kind != "in":
        return False
    if isinstance(domain, ir.LabelSet):
        return domain.name == dim
    if isinstance(domain, ir.ValueSet) and domain.items is None and domain.step is None:
        high = domain.high
    else:
        high = None
    return isinstance(high, ir.Size) and high.dim == dim or isinstance(high, ir.Const) and high.value == dim
