"""The words of ``fccomodel atoms`` for an atom's prox and conjugate."""

from __future__ import annotations

from math import inf

from fccomodel.core import ir
from fccomodel.library import atoms
from fccomodel.library.atoms import Interval
from fccomodel.library.proximal._base import FactsOf, Proximal
from fccomodel.library.proximal._of import of
from fccomodel.library.proximal.piecewise import Piecewise

POSITIVE = Interval(0.0, inf, True, True)


def of_atom(atom: atoms.Atom, facts: FactsOf) -> tuple[str, str]:
    """Words for the prox and the conjugate of an atom in its first argument, with example
    parameters.

    If the function has no prox on the reals, it is tried on u > 0 and then with a minus sign.
    """
    free = [name for name in atom.names(2) if name not in atom.parameters]
    if len(free) != 1 and not atom.variadic:
        return "none: a function of several arguments that may all vary", ""
    if atom.variadic:
        count = len(free)
    else:
        count = 1
    values, example = _examples(atom)
    reason = "none"
    for shape in _shapes(atom, count):
        holes = tuple(ir.Hole(name=f"u{k}", shape=shape) for k in range(count))
        if atom.shape((shape,) * count + ((),) * len(values)) != ():
            return "none: its value is an array", ""
        node = ir.Apply(op=atom.name, args=(*holes, *(ir.Const(value=v) for v in values)))
        for expr, where, words in (
            (node, Interval(), ""),
            (node, POSITIVE, f"on {free[0]} > 0: "),
            (ir.Apply(op="neg", args=(node,)), Interval(), f"of -{atom.name}: "),
        ):
            if where == POSITIVE and (shape or count > 1):
                continue
            function = of(expr, holes, facts, where=where)
            if isinstance(function, Proximal) and not (function.weak and where == POSITIVE):
                if isinstance(function, Piecewise):
                    how = f"{function.graph.prox_text('lambda')}; {function.how}"
                else:
                    how = function.how
                return f"{words}{how}{example}", words + _conjugate(atom, function, words, example)
            if reason == "none":
                reason = f"none: {function}"
    return reason, ""


def _conjugate(atom: atoms.Atom, function: Proximal, words: str, example: str) -> str:
    """Words for the conjugate: the atom's own formula, else those of the rule; none if it is not
    convex."""
    if function.weak:
        return "that of its convex hull: it is not convex"
    formula = getattr(atom, "conjugate", "")
    if formula and not words.startswith("of -"):
        slopes = getattr(atom, "slopes", Interval())
        if getattr(atom, "graph", None) is not None:
            where = function.domain
        else:
            where = f"[{slopes.lo:g}, {slopes.hi:g}]"
        example = example if where == function.domain else ""
        return f"{formula} for s in {where}{example}".replace("[-inf, inf]", "all reals").replace(
            "inf]", "inf)"
        )
    return f"{function.dual} {function.domain}{example}"


def _examples(atom: atoms.Atom) -> tuple[list[float], str]:
    """Values of the parameters inside their domains, and the words that say which."""
    limits = atom.domains(*(Interval() for _ in atom.arguments))
    values: list[float] = []
    for name in atom.parameters:
        k = atom.arguments.index(name)
        limit = (limits[k] if k < len(limits) else None) or Interval()
        tried = (2.0 + len(values), limit.lo + 1.0, (limit.lo + limit.hi) / 2)
        values.append(next(v for v in tried if limit.lo < v < limit.hi))
    settings = ", ".join(f"{name} = {v:g}" for name, v in zip(atom.parameters, values, strict=True))
    return values, f" (for {settings})" if settings else ""


def _shapes(atom: atoms.Atom, count: int) -> list[ir.Shape]:
    """The shapes that the argument may have: a number, else a vector and a matrix."""
    accepted: list[ir.Shape] = []
    shapes: tuple[ir.Shape, ...]
    if isinstance(atom, atoms.ScalarAtom):
        shapes = ((),)
    else:
        shapes = (("n",), ("m", "n"))
    for shape in shapes:
        try:
            atom.shape((shape,) * count + ((),) * len(atom.parameters))
        except atoms.ShapeError:
            continue
        accepted.append(shape)
    return accepted
