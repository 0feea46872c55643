"""Piecewise linear-quadratic functions of one number, with exact operations of convex analysis.

A function f is stored as the graph of its subdifferential, which is a polyline. The polyline is
non-decreasing if f is convex; its slope is at least -rho if f is rho-weakly convex. Operations on f
are operations on the polyline: the conjugate exchanges the axes, the Moreau envelope of parameter lam
shears (x, y) to (x + lam y, y), the prox inverts x + lam y, and sums of functions add ordinates.
"""

from fccomodel.library.piecewise.expression import (
    along_line,
    downward_kink,
    of_atom,
    of_expression,
    of_max,
    pieces_along,
)
from fccomodel.library.piecewise.function import PiecewiseLQ
from fccomodel.library.piecewise.pieces import Pieces

__all__ = [
    "PiecewiseLQ",
    "Pieces",
    "along_line",
    "downward_kink",
    "of_atom",
    "of_expression",
    "of_max",
    "pieces_along",
]
