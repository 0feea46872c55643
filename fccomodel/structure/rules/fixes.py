"""Advice: rewrites of an atom under which a rule would pass."""

from __future__ import annotations

from fccomodel.library import atoms
from fccomodel.library.atoms import Atom
from fccomodel.structure.facts import Facts

#: the sides of curvature as an atom's advice calls them
CURVATURE_WORDS = {"below": "convex", "above": "concave"}


def advice(atom: Atom, args: tuple[Facts, ...], kind: str) -> str:
    """The rewrite that an atom advises if it is not ``smooth``, convex (``below``) or concave (``above``).

    It is "" if the atom advises none.
    """
    source = atom
    if isinstance(atom.exponent, str):
        square = atoms.all()["square"]
        p = args[1].interval.value
        if p.is_point and p.lo == square.exponent:
            source = square
    rewrite = source.instead.get(CURVATURE_WORDS.get(kind, kind), "")
    if not rewrite and kind in CURVATURE_WORDS and not args[0].affine:
        return source.instead.get("unsmooth", "")
    return rewrite
