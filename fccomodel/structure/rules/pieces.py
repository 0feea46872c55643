"""Polynomial pieces: piecewise linear and piecewise linear-quadratic functions, and polynomials, told
from their make-up."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.library import atoms, reductions


def pieces(node: ir.Expr, parts: tuple[int | None, ...], *, scalar: bool, whole: bool = False) -> int | None:
    """The degree of an expression's polynomial pieces over polyhedra, from its children's: 0 for a
    constant, at most 2.

    scalar   it depends on one number alone, so that its pieces are intervals whatever their degree
    whole    there may be one piece alone: a polynomial
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
