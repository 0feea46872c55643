"""``exp`` and ``expm1``."""

from math import expm1, inf

from fccomodel.library import cones
from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import NONNEGATIVE
from fccomodel.library.atoms.scalar import ScalarAtom
from fccomodel.library.atoms.shapes import safe_exp, steepest, through

exp_ = ScalarAtom(
    name="exp",
    meaning="e^u",
    tex=r"\exp\left(<0>\right)",
    arguments=("u",),
    formula="exp(u)",
    torch="{0}.exp()",
    derivative=("y",),
    logarithm="u",
    conjugate="-entr(s) - s",
    slopes=NONNEGATIVE,
    cone=cones.exponentials,
    steady=1.0,
    properties=Properties(
        curvature="convex",
        monotone="increasing",
        lipschitz=steepest(safe_exp),
        gradient_lipschitz=steepest(safe_exp),
        range=through(safe_exp),
    ),
    instead={"convex": "exp(u) is convex for convex u, so exp(-g) asks for a concave g."},
)
expm1_ = ScalarAtom(
    name="expm1",
    meaning="e^u - 1, exact near 0",
    tex=r"1 \exp\left(<0>\right) - 1",
    arguments=("u",),
    formula="exp(u) - 1",
    torch="{0}.expm1()",
    derivative=("exp(u)",),
    conjugate="-entr(s) - s + 1",
    slopes=NONNEGATIVE,
    cone=lambda k, u: cones.exponentials(k, u) - 1.0,
    steady=1.0,
    properties=Properties(
        curvature="convex",
        monotone="increasing",
        lipschitz=steepest(safe_exp),
        gradient_lipschitz=steepest(safe_exp),
        range=through(lambda x: expm1(x) if x < 700 else inf),
    ),
)
