"""A ball around a point that holds all that are no worse, by how sums of absolute values grow.

Where f is at least low + T(x), T(x) = E c |a.x + b|, and |a.v| <= L |v| in every row, the points no
worse than w have T(x) <= f(w) - low and, with v = x - w and G = E c a a' / L, whose least
eigenvalue is mu,

    mu |v| <= v'Gv / |v| <= E c |a.v| <= T(x) + T(w) <= 2 (f(w) - low).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.core.rewrite import apply, const, substitute
from fccomodel.core.work import Meter
from fccomodel.report.certificates.absolute_values import vee
from fccomodel.report.kkt.lagrangian import AT_A_POINT, Root, curvature, spectrum
from fccomodel.report.point.system import System
from fccomodel.report.quadratic_parts import Parts
from fccomodel.structure import Analyser
from fccomodel.structure.facts import Standing

#: Evaluations that the curvature takes, by variable.
PRICE = 3


@dataclass(eq=False, kw_only=True)
class _Grown(Parts):
    """In place of parts that are ``least + c |u - u_0|`` or more, ``c u^2 / (2 L)``, curved as G is;
    or as the ``rest`` their ``least``, with all other parts as they are."""

    rest: bool = False

    def quadratic(self, node: ir.Expr, sign: float) -> ir.Expr | None:
        if self.rest and not ir.variables_of(node):
            return node
        if isinstance(node, ir.LetRef) and node.let.binders:
            node = substitute(node.let.body, dict(zip(node.let.binders, node.args, strict=True)))
        return super().quadratic(node, sign)

    def _leaf(self, node: ir.Expr, sign: float) -> ir.Expr | None:
        if sign > 0:
            found = vee(node, self.see)
        else:
            found = None
        if found is None:
            return node if self.rest else None
        curved = apply("mul", const(found.slope / (2 * found.lipschitz)), apply("square", found.u))
        return found.least if self.rest else curved


def radius(system: System, see: Analyser, meter: Meter, most: int) -> float:
    """Of the ball; inf where none is known, there are more than ``most`` variables, or no work is left."""
    work = PRICE * system.forward_s * system.d
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
    mu = float(spectrum(curvature(system, [(Root(objective, system.sign), curved)]), AT_A_POINT)[0][0])
    if mu > 0:
        return 2 * max(system.level - low, 0.0) / mu
    return math.inf
