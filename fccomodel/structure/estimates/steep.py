"""Where the least value of an argument matters: roots, logarithms, fractions."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.library import atoms
from fccomodel.library.atoms import Interval


def steep_at_0(expr: ir.Expr) -> list[ir.Expr]:
    """The arguments of its parts that are steep, or not defined, where these are 0: their least values
    matter."""
    applied = (
        (n, atom) for n in ir.walk(expr) if isinstance(n, ir.Apply) and (atom := atoms.of(n)) is not None
    )
    return [n.args[k] for n, atom in applied for k in atom.steep_at_0(*(_where(a) for a in n.args))]


def _where(node: ir.Expr) -> Interval:
    if isinstance(node, ir.Const):
        return Interval.point(node.value)
    return Interval()
