"""Least squares over many cones by a working set of them: at the answer most cones are at 0.

Only the cones of the working set have unknowns other than 0. The answer over the working set is the
answer over all cones if the residual falls along no ray of another cone: this is the condition of
optimality of a convex problem. Otherwise the cones with the steepest rays come in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fccomodel.core.work import Meter, multiplied
from fccomodel.numerics.min_norm import GAP
from fccomodel.report.kkt.groups import Array, Cone, Group, parts_of, renumbered
from fccomodel.report.kkt.least_squares import Squares

#: Unknowns in cones from which on a working set is quicker than all cones at once.
MANY_UNKNOWNS = 2_000
#: Cones that come into the working set in one round, at most.
COME_IN = 8
#: Calls of NumPy that the search for a cone's steepest ray takes for each kink in it.
CALLS_OF_RAY = 12

Solve = Callable[[Squares, Array, Meter], Array]


def helps(squares: Squares) -> bool:
    """Whether there are several cones with many unknowns. The matrix is known by its entries."""
    cones = [group for group in squares.groups if isinstance(group, Cone)]
    return len(cones) > COME_IN and sum(len(group.places()) for group in cones) >= MANY_UNKNOWNS


def solve(squares: Squares, start: Array, meter: Meter, solve_part: Solve) -> Array:
    """The z with the least residual, or the best that is found with the work left.

    solve_part   the same for the unknowns of the working set
    """
    always = [group for group in squares.groups if not isinstance(group, Cone)]
    cones = [_Member(squares, group) for group in squares.groups if isinstance(group, Cone)]
    calls = CALLS_OF_RAY * sum(1 for _ in parts_of([member.cone for member in cones]))
    round_s = multiplied(2 * np.asarray(squares.matrix).size + 20 * squares.size, calls)
    working = [member for member in cones if start[member.cone.at] > 0]
    z = start
    while True:
        z = _on(squares, [*always, *(member.cone for member in working)], z, meter, solve_part)
        meter.spend(round_s)
        if meter.over:
            return z
        coming = _steepest(squares, [member for member in cones if member not in working], z)
        if not coming:
            return z
        working += coming


class _Member:
    """A cone with its part of the squares.

    cone    the cone among all unknowns
    own     the cone among its own unknowns, whose ``places`` these are
    """

    def __init__(self, squares: Squares, cone: Cone):
        self.cone = cone
        self.places = cone.places()
        self.squares = squares.restricted(self.places).homogeneous()
        own = renumbered(cone, _numbers(self.places, squares.size))
        assert isinstance(own, Cone)
        self.own = own

    def steepness(self, slope: Array) -> float:
        """The rate at which the residual falls along the steepest ray, for steps that change it by length 1.

        It is 0 if no ray descends.
        """
        own_slope = slope[self.places]
        for ray in self.own.rays(own_slope):
            length = float(np.linalg.norm(self.squares.residual(ray)))
            if length > 0:
                return -float(own_slope @ ray) / length
        return 0.0


def _steepest(squares: Squares, members: Sequence[_Member], z: Array) -> list[_Member]:
    """The members along whose rays the residual falls fastest; none if it falls along no ray."""
    rest = squares.residual(z)
    slope, length = squares.pulled(rest), float(np.linalg.norm(rest))
    steepness = np.array([member.steepness(slope) for member in members])
    order = np.argsort(-steepness, kind="stable")[:COME_IN]
    return [members[k] for k in order if steepness[k] > GAP * length]


def _on(squares: Squares, groups: Sequence[Group], z: Array, meter: Meter, solve_part: Solve) -> Array:
    """The answer with the unknowns of these groups alone; all others are 0."""
    places = np.sort(np.concatenate([np.zeros(0, dtype=int), *(group.places() for group in groups)]))
    numbers = _numbers(places, squares.size)
    part = squares.restricted(places).over_groups([renumbered(group, numbers) for group in groups])
    full = np.zeros(squares.size)
    full[places] = solve_part(part, z[places], meter)
    return full


def _numbers(places: Array, size: int) -> Array:
    """For each of ``size`` unknowns its number among those at ``places``."""
    numbers = np.full(size, -1)
    numbers[places] = np.arange(len(places))
    return numbers
