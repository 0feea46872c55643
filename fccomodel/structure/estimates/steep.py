"""Arguments of roots, logarithms and fractions whose least value matters."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.library import atoms
from fccomodel.library.atoms import Interval


def steep_at_0(expr: ir.Expr) -> list[ir.Expr]:
    """The arguments at which some part of the expression is steep or undefined if they are 0."""
    arguments = []
    for node in ir.walk(expr):
        if isinstance(node, ir.Apply):
            atom = atoms.of(node)
        else:
            atom = None
        if atom is not None:
            ranges = [_range(argument) for argument in node.children]
            arguments += [node.children[k] for k in atom.steep_at_0(*ranges)]
    return arguments


def _range(node: ir.Expr) -> Interval:
    """A point for a number, the whole line for anything else."""
    if isinstance(node, ir.Const):
        return Interval.point(node.value)
    return Interval()
