"""Which operations have kinks."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.library import atoms, reductions


def kinked(node: ir.Expr) -> bool:
    """An operation that has no gradient at some point: an atom with a kink, a maximum, a tail mean."""
    if isinstance(node, ir.Reduce):
        return reductions.of(node).kinked
    atom = atoms.of(node)
    return atom is not None and atom.kinked
