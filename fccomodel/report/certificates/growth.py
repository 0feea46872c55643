"""A ball around a point that holds all points that are no worse, from the growth of sums of absolute
values.

Let f be at least low + T(x) with T(x) = E c |a.x + b|, and |a.v| <= L |v| in every row. The points
no worse than w have T(x) <= f(w) - low. With v = x - w and G = E c a a' / L, whose least eigenvalue
is mu,

    mu |v| <= v'Gv / |v| <= E c |a.v| <= T(x) + T(w) <= 2 (f(w) - low).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.core.rewrite import apply, const, substitute
from fccomodel.core.work import Meter
from fccomodel.report.certificates.absolute_values import two_sided_growth
from fccomodel.report.kkt.lagrangian import AT_A_POINT, LagrangianTerm, curvature, spectrum
from fccomodel.report.point.system import System
from fccomodel.report.quadratic_parts import WeightedParts
from fccomodel.structure import Analyser
from fccomodel.structure.facts import Standing

#: Evaluations that the curvature takes, for each variable.
PASSES_PER_VARIABLE = 3


@dataclass(eq=False, kw_only=True)
class _Grown(WeightedParts):
    """The objective with other terms for its parts that are at least ``least + c |u - u_0|``.

    Each such part becomes ``c u^2 / (2 L)``, whose curvature is the curvature of G. The other parts become
    0.

    rest   ``least`` for each of these parts, and all other parts as they are
    """

    rest: bool = False

    def quadratic(self, node: ir.Expr, sign: float) -> ir.Expr | None:
        """The sum of these terms, or None if there are none."""
        if self.rest and not ir.variables_of(node):
            return node
        if isinstance(node, ir.LetRef) and node.let.binders:
            node = substitute(node.let.body, dict(zip(node.let.binders, node.args, strict=True)))
        return super().quadratic(node, sign)

    def _leaf(self, node: ir.Expr, sign: float) -> ir.Expr | None:
        if sign > 0:
            grown = two_sided_growth(node, self.see)
        else:
            grown = None
        if grown is None:
            if self.rest:
                return node
            return None
        if self.rest:
            return grown.least
        return apply("mul", const(grown.slope / (2 * grown.lipschitz)), apply("square", grown.u))


def radius(system: System, see: Analyser, meter: Meter, most: int) -> float:
    """The radius of the ball; inf if none is known, if there are more than ``most`` entries of
    variables, or if too little work is left."""
    work = PASSES_PER_VARIABLE * system.forward_s * system.d
    if system.d > most or work > meter.left:
        return math.inf
    objective = system.problem.objective.expr
    curved, rest = (_Grown(see=see, rest=rest).quadratic(objective, system.sign) for rest in (False, True))
    if curved is None or rest is None:
        return math.inf
    ends = see(rest).interval
    low = ends.value.lo if system.sign > 0 else -ends.value.hi
    if low == -math.inf or ends.standing > Standing.BOUNDED:
        return math.inf
    meter.spend(work)
    matrix = curvature(system, [(LagrangianTerm(objective, system.sign), curved)])
    eigenvalues = spectrum(matrix, AT_A_POINT)[0]
    mu = float(eigenvalues[0])
    if mu > 0:
        return 2 * max(system.level - low, 0.0) / mu
    return math.inf
