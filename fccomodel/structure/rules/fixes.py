"""What to write instead of an atom that does not have what is wanted of it: rewrites under which a
rule would pass."""

from __future__ import annotations

from fccomodel.library import atoms
from fccomodel.library.atoms import Atom
from fccomodel.structure.facts import Facts

#: what an atom's advice calls the sides of curvature
WANTED = {"below": "convex", "above": "concave"}


def advice(atom: Atom, args: tuple[Facts, ...], kind: str) -> str:
    """A rewrite for an atom that does not have what is wanted: ``smooth``, or convex (``below``) or
    concave (``above``)."""
    square = atoms.all()["square"]
    if isinstance(atom.exponent, str):
        p = args[1].interval.value
    else:
        p = None
    source = square if p is not None and p.is_point and p.lo == square.exponent else atom
    rewrite = source.instead.get(WANTED.get(kind, kind), "")
    return rewrite or ("" if kind not in WANTED or args[0].affine else source.instead.get("unsmooth", ""))
