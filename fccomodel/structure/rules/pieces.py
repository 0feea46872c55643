"""Polynomial pieces: piecewise linear, piecewise linear-quadratic and polynomial functions."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.library import atoms, reductions


def pieces(node: ir.Expr, parts: tuple[int | None, ...], *, scalar: bool, whole: bool = False) -> int | None:
    """The degree (0, 1 or 2) of an expression's polynomial pieces over polyhedra, or None.

    parts    the degrees of its children
    scalar   whether it depends on one number alone, so that its pieces are intervals in any case
    whole    whether only one piece is allowed: a polynomial
    """
    degrees = [d for d in parts if d is not None]
    if len(degrees) < len(parts):
        return None
    top = max(degrees, default=0)
    if top == 0:
        return 0
    match node:
        case ir.Item() | ir.LetRef():
            return top
        case ir.Reduce():
            kind = reductions.of(node)
            if kind.kinked:
                if whole:
                    return None
                if top == 1 or scalar:
                    return top
                return None
            if kind.degree is None or kind.condition or kind.degree * top > 2:
                return None
            return kind.degree * top
        case ir.Apply(args=args):
            atom = atoms.of(node)
            numbers = [a.value if isinstance(a, ir.Const) else None for a in args]
            if atom is None:
                return None
            return atom.degree(degrees, numbers, scalar=scalar, whole=whole)
    return None
