"""What to write instead: rewrites under which a rule would pass, by the atom that failed."""

from __future__ import annotations

from fccomodel.library.atoms import Atom
from fccomodel.structure.facts import Facts

#: (atom, property wanted) -> advice; ``below`` stands for convex, ``above`` for concave
ADVICE: dict[tuple[str, str], str] = {
    ("abs", "smooth"): "abs(u) has a kink at 0: use huber(u, delta), or sqrt(u^2 + delta^2).",
    ("pos", "smooth"): "pos(u) has a kink at 0: use smooth_hinge(u, delta), log1pexp(u) or sqhinge(u).",
    ("max", "smooth"): "max has kinks: use logsumexp(concat(..)), or let the solver smooth it.",
    ("min", "smooth"): "min has kinks: use -logsumexp(concat(-..)), or let the solver smooth it.",
    ("norm1", "smooth"): "norm1(u) has kinks; as a term of its own it is handled by its prox.",
    ("norm2", "smooth"): "norm2(u) has a kink at 0: use sumsq(u), or sqrt(sumsq(u) + delta^2).",
    (
        "sqrt",
        "below",
    ): "sqrt of a sum of squares of affine functions is a norm: write sqrt(square(a) + square(b)) or norm2(concat(a, b)).",
    ("log", "below"): "log is concave; log of a sum or average of exponentials is convex: logsumexp(..), logmeanexp[..].",
    ("square", "below"): "square(u) is convex for affine u, convex u >= 0, or concave u <= 0: use sqhinge(u) for [u]_+ squared.",
    ("inv", "below"): "1/u is convex for concave u > 0 (and concave for convex u < 0): state the sign of u in its declaration.",
    ("pow", "below"): "an odd power is convex for a base >= 0: state its sign where it is declared, or write pos(u)^p.",
    ("exp", "below"): "exp(u) is convex for convex u, so exp(-g) asks for a concave g.",
    ("sqhinge", "below"): "sqhinge(u) is convex for convex u: of a concave u, bound -u instead.",
    ("pos", "below"): "pos(u) is convex for convex u: of a concave u, bound -u instead.",
    ("min", "below"): "min is concave: bound each member by a constraint of its own, or maximise it.",
    ("max", "above"): "max is convex: minimise it, or bound it from above.",
    ("sigmoid", "below"): "the logistic loss log1pexp(-u) is a convex surrogate of sigmoid(-u).",
    ("tanh", "below"): "the logistic loss log1pexp(-u) is a convex surrogate of 1 - tanh(u).",
}


def advice(atom: Atom, args: tuple[Facts, ...], kind: str) -> str:
    """A rewrite for an atom that does not have what is wanted."""
    known = ADVICE.get((atom.name, kind), "")
    if atom.name == "pow" and args[1].interval.value.is_point and args[1].interval.value.lo == 2:
        return ADVICE.get(("square", kind), "")
    if not known and kind in ("below", "above") and atom.name == "abs" and not args[0].affine:
        return "make its argument smooth, which makes abs of it weakly convex; or bound it from both sides by two constraints."
    return known
