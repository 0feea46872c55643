"""Operations with kinks."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.library import atoms, reductions


def kinked(node: ir.Expr) -> bool:
    """Whether an operation lacks a gradient somewhere: an atom with a kink, a maximum, a tail
    mean."""
    if isinstance(node, ir.Reduce):
        return reductions.of(node).kinked
    atom = atoms.of(node)
    return atom is not None and atom.kinked
