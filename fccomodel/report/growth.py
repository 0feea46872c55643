"""A ball around a point that holds all that are no worse, by how sums of absolute values grow.

Where f is at least its least value but for T(x) = E c |a.x + b|, and |a.v| <= L |v| in every row, the points no worse than w have
T(x) <= f(w) - low and, with v = x - w and G = E c a a' / L, whose least eigenvalue is mu,

    mu |v| <= v'Gv / |v| <= E c |a.v| <= T(x) + T(w) <= 2 (f(w) - low).
"""

from __future__ import annotations

import math

import numpy as np

from fccomodel.core import ir
from fccomodel.core.rewrite import apply, const
from fccomodel.core.work import Meter
from fccomodel.library import atoms
from fccomodel.report.lagrangian import Root, curvature
from fccomodel.report.nearby import PRICE, ROUNDING
from fccomodel.report.parts import Parts, slope_of, terms_of
from fccomodel.report.system import System
from fccomodel.structure import Analyser


class _Absolute(Parts):
    """In place of parts that grow as absolute values do, ``c u^2 / (2 L)``: curved as G is."""

    def _leaf(self, node: ir.Expr, sign: float) -> ir.Expr | None:
        atom = atoms.of(node)
        if isinstance(atom, atoms.ScalarAtom) and atom.homogeneous == 1 and sign > 0 and not node.shape:
            ends = [self.see(part).interval.value for part in node.children[1:]]
            numbers = [end.lo for end in ends]
            slope = slope_of(node.children[0], self.see)
            if 0 < slope < math.inf and all(end.lo == end.hi for end in ends):
                steepness = min(float(atom.value(u, *numbers)) for u in (1.0, -1.0))
                if steepness > 0:
                    return apply("mul", const(steepness / (2 * slope)), apply("square", node.children[0]))
        self.higher = True
        return None


def radius(system: System, see: Analyser, meter: Meter, most: int) -> float:
    """Of the ball; inf where none is known, there are more than ``most`` variables, or no work is left."""
    work = PRICE * system.forward_s * system.d
    if system.d > most or work > meter.left:
        return math.inf
    objective, low, found = system.problem.objective.expr, 0.0, list[tuple[Root, ir.Expr]]()
    for term, sign in terms_of(objective, system.sign):
        parts = _Absolute(see=see)
        curved = parts.quadratic(term, sign)
        if curved is not None and not parts.higher:
            found.append((Root(term, sign), curved))
        else:
            low += see(term).interval.value.lo if sign > 0 else -see(term).interval.value.hi
    if not found or low == -math.inf:
        return math.inf
    meter.spend(work)
    values = np.linalg.eigvalsh(curvature(system, found))
    mu = float(values[0] - ROUNDING * max(values[-1], 0.0))
    return 2 * (system.sign * system.objective - low) / mu if mu > 0 else math.inf
