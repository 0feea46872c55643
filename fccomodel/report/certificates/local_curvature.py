"""A bound of how far a convex function falls from a point, by its curvature in a ball around it.

Let M be convex with gradient s at w, and let its Hessian be at least H at all points within a radius
of w. Let mu be the least eigenvalue of H. If |s| <= mu radius / 2, M is at least M(w) on the sphere,
hence also beyond it, and so

    M(x) >= M(w) - s'H^-1 s / 2      for all x.

H is the Hessian of a function whose parts have at most the curvature at w that M's parts have
anywhere in the ball (``near`` of their atoms).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from fccomodel.core import ir
from fccomodel.core.rewrite import const, with_children
from fccomodel.core.work import Meter
from fccomodel.report.kkt.lagrangian import AT_A_POINT, LagrangianTerm, Term, Weights, hessian, spectrum
from fccomodel.report.kkt.optimality import Optimum
from fccomodel.report.point.system import System
from fccomodel.report.quadratic_parts import WeightedParts
from fccomodel.structure import Analyser

Array = np.ndarray
#: Largest changes of the atoms' arguments within the balls that are tried.
MOVES = (0.1, 1.0)
#: Evaluations that a Hessian takes besides its rows.
FIXED_PASSES = 6
#: Evaluations that each row of a Hessian takes at least.
PASSES_PER_ROW = 0.5


class _Model(NamedTuple):
    """A function with at most the Lagrangian's curvature.

    terms      the roots' parts
    weights    of kinks' terms, by record
    instead    the nodes whose terms kinks have in place of their own, by node id
    steepest   the largest Lipschitz constant of an atom's argument; 0 if none is used
    """

    terms: list[Term]
    weights: Weights
    instead: Mapping[int, ir.Expr]
    steepest: float


def fall(
    system: System,
    functions: list[LagrangianTerm],
    optimal: Optimum,
    rest: Array,
    see: Analyser,
    meter: Meter,
    most: int,
) -> tuple[float, float] | None:
    """A bound of how far the Lagrangian falls from w, and the curvature that proves it; ``rest`` is its
    gradient at w.

    None if nothing is proved, if there are more than ``most`` entries of variables, or if too little
    work is left.
    """
    if system.d > most:
        return None
    steepest = _model(system, functions, optimal, see, 0.0).steepest
    used = frozenset().union(*(ir.variables_of(root.expr) for root in functions))
    sizes = {name: system.point[name].numel() for name in system.names}
    varied = np.concatenate([np.full(size, name in used) for name, size in sizes.items()])
    for move in MOVES if steepest else ():
        radius = move / steepest
        model = _model(system, functions, optimal, see, radius)
        if (FIXED_PASSES + PASSES_PER_ROW * system.d) * system.forward_s > meter.left:
            return None
        meter.spend(FIXED_PASSES * system.forward_s)
        matrix = hessian(system, model.terms, model.weights, model.instead, meter)
        if matrix is None:
            return None
        values, vectors = spectrum(matrix[np.ix_(varied, varied)], AT_A_POINT)
        if values[0] > 0 and np.linalg.norm(rest) <= values[0] * radius / 2:
            along = vectors.T @ rest[varied]
            decrease = float((along**2 / (2 * values)).sum())
            return decrease, float(values[0])
    return None


def _model(
    system: System, functions: list[LagrangianTerm], optimal: Optimum, see: Analyser, radius: float
) -> _Model:
    """The function for balls of this radius around w."""
    parts = WeightedParts(see=see, radius=radius)
    terms = [
        (root, part) for root in functions if (part := parts.quadratic(root.expr, root.sign)) is not None
    ]
    weights, instead = [], dict[int, ir.Expr]()
    for k, factors in optimal.weights:
        kink = system.records[k].kink
        if not factors.any() or not all(
            any(part is child for child in kink.node.children) for part in kink.weighed
        ):
            continue
        curved = {id(part): parts.quadratic(part, kink.sign) or _nothing(part) for part in kink.weighed}
        if not all(isinstance(part, ir.Const) for part in curved.values()):
            weights.append((k, factors))
            instead[id(kink.node)] = with_children(
                kink.node, tuple(curved.get(id(c), c) for c in kink.node.children)
            )
    return _Model(terms, weights, instead, parts.steepest)


def _nothing(part: ir.Expr) -> ir.Expr:
    """0 in the shape of a part."""
    return dataclasses.replace(const(0.0), shape=part.shape)
