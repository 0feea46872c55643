"""Piecewise linear-quadratic functions of one number, exactly: prox, Moreau envelope, conjugate, sums,
compositions.

Such a function f is kept as the graph of its subdifferential, a polyline: non-decreasing where f is
convex, falling nowhere faster than at slope -rho where f is rho-weakly convex. Then every operation
of convex analysis is one on polylines: the conjugate swaps the axes, the Moreau envelope of
parameter lam shears (x, y) to (x + lam y, y), the prox reads the sheared graph back, sums add
ordinates.
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
