"""Piecewise linear and piecewise linear-quadratic functions, told from their make-up."""

from __future__ import annotations

from functools import cache

from fccomodel.core import ir
from fccomodel.library import atoms
from fccomodel.library.atoms import Atom, ScalarAtom

#: pieces of atoms that declare no subdifferential: not convex, or of several arguments
KNOWN = {"max": 1, "min": 1, "clip": 1, "norm1": 1, "norminf": 1, "sign": 1, "step": 1, "scad": 2, "mcp": 2, "sumsq": 2}
KEEPS = ("add", "sub", "neg", "sum", "mean", "concat", "transpose")
BILINEAR = ("mul", "dot", "matmul", "outer")


@cache
def degree(atom: Atom) -> int | None:
    """1 for a piecewise linear atom, 2 for a piecewise linear-quadratic one, None for any other."""
    if atom.name in KNOWN:
        return KNOWN[atom.name]
    if not isinstance(atom, ScalarAtom) or atom.graph is None:
        return None
    points, first, last = atom.graph(*(3.0 for _ in atom.parameters)) if callable(atom.graph) else atom.graph
    steps = all(a[0] == b[0] or a[1] == b[1] for a, b in zip(points, points[1:], strict=False))
    flat = first in (0.0, float("inf")) and last in (0.0, float("inf"))
    return 1 if steps and flat else 2


def pieces(node: ir.Expr, parts: tuple[int | None, ...], scalar: bool) -> int | None:
    """The degree of an expression's polynomial pieces over polyhedra, from its children's; 0 for a constant.

    ``scalar``: it depends on one number alone, so that its pieces are intervals whatever their degree.
    """
    if any(d is None for d in parts):
        return None
    known = [d for d in parts if d is not None]
    top = max(known, default=0)
    if top == 0:
        return 0
    match node:
        case ir.Item() | ir.LetRef():
            return top
        case ir.Reduce(kind="E" | "mean" | "sum"):
            return top
        case ir.Reduce(kind="max" | "min" | "cvar" | "topk"):
            return top if top == 1 or scalar else None
        case ir.Reduce(kind="variance"):
            return 2 if top == 1 else None
        case ir.Apply(op=op, args=args):
            atom = atoms.get(op)
            if atom is None:
                return None
            if atom.name in KEEPS:
                return top
            if atom.name in BILINEAR:
                return sum(known) if sum(known) <= 2 else None
            if atom.name == "div":
                return top if known[1] == 0 else None
            if atom.name == "pow":
                p = args[1].value if isinstance(args[1], ir.Const) else None
                return top if p == 1 else 2 if p == 2 and top == 1 else None
            own = degree(atom)
            if own is None or any(known[i] for i, name in enumerate(atom.names(len(args))) if name in atom.parameters):
                return None
            return own if top == 1 else 2 if own == 1 and scalar else None
    return None
