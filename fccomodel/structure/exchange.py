"""Matrices whose rows are exchangeable: the model has the same value after any permutation of them.

Examples are the components of a mixture, the hidden units of a net that is written out, and factors.
Points with equal rows are then stationary within their subspace (usually saddle points), and a run
that starts with equal rows never leaves them.
"""

from __future__ import annotations

from collections.abc import Iterator

from fccomodel.core import ir
from fccomodel.library import atoms


def exchangeable(problem: ir.Problem) -> frozenset[str]:
    """Names of the matrices outside simple sets whose rows are exchangeable.

    The model iterates over all rows of each, without a condition, and treats all rows alike.
    """
    exchangeable_names: set[str] = set()
    arrays = {name: v for name, v in problem.variables.items() if v.net is None and v.shape}
    for dim in {v.shape[0] for v in arrays.values()}:
        names = {name for name, v in arrays.items() if v.shape[0] == dim}
        candidates = [problem.variables[name] for name in names]
        scalar_arguments = all(
            not isinstance(arg, ir.Expr) or not arg.shape
            for v in candidates
            for s in v.sets
            for arg in (*s.args, s.centre)
        )
        if scalar_arguments and _rows_alike(problem, names, dim):
            exchangeable_names |= {v.name for v in candidates if len(v.shape) > 1 and not v.sets}
    return frozenset(exchangeable_names)


def _rows_alike(problem: ir.Problem, names: set[str], dim: ir.Dim) -> bool:
    """Whether the model treats all rows of the named variables alike."""
    nodes = list(problem.expressions())
    all_items = [node for node in nodes if isinstance(node, ir.Item)]
    items = [n for n in all_items if isinstance(n.base, ir.Var) and n.base.name in names]
    rows = {node.indices[0].binder for node in items if isinstance(node.indices[0], ir.Element)}
    if not rows or any(not isinstance(node.indices[0], ir.Element) for node in items):
        return False
    families = any(constraint.binders for constraint in problem.constraints)
    if families or any(not _covers(binder, dim) for binder in rows):
        return False
    for node in nodes:
        let_of_elements = isinstance(node, ir.LetRef) and node.args
        reads_row = isinstance(node, ir.Column) and node.binder in rows
        if let_of_elements or reads_row:
            return False
        if isinstance(node, ir.Reduce) and rows.intersection(node.binders) and node.condition is not None:
            return False
        if any(not _ignores_row(node, child, names, rows) for child in _row_reading(node, names, rows)):
            return False
    return True


def _row_reading(node: ir.Expr, names: set[str], rows: set[ir.Binder]) -> Iterator[ir.Expr]:
    """The children of the node that are a whole variable or the number of a row."""
    for child in node.children:
        if isinstance(child, ir.Var) and child.name in names:
            yield child
        elif isinstance(child, ir.Element) and child.binder in rows:
            yield child


def _ignores_row(node: ir.Expr, child: ir.Expr, names: set[str], rows: set[ir.Binder]) -> bool:
    """Whether the node treats all rows alike although this child is one of its children."""
    if isinstance(node, ir.Item):
        first = node.indices[0]
        if not isinstance(node.base, ir.Var) or node.base.name not in names:
            return False
        return (
            isinstance(first, ir.Element) and first.binder in rows and (child is node.base or child is first)
        )
    return (
        isinstance(child, ir.Var)
        and isinstance(node, ir.Apply)
        and getattr(atoms.get(node.op), "symmetric", False)
    )


def _covers(binder: ir.Binder, dim: ir.Dim) -> bool:
    """Whether the binder iterates over all of a dim or set."""
    domain = binder.domain
    if binder.kind != "in":
        return False
    if isinstance(domain, ir.LabelSet):
        return domain.name == dim
    if not isinstance(domain, ir.ValueSet) or domain.items is not None or domain.step is not None:
        return False
    if not isinstance(domain.low, ir.Const) or domain.low.value != 1:
        return False
    match domain.high:
        case ir.Size(dim=size):
            return size == dim
        case ir.Const(value=value):
            return value == dim
    return False
