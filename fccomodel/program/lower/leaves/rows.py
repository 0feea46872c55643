"""Linear maps and squared distances of rows, computed row by row and not pair by pair (see
``evaluation.distributed``)."""

from __future__ import annotations

import math

from fccomodel.core import ir
from fccomodel.evaluation import distributed
from fccomodel.program.lower.state import Env, Lower, State
from fccomodel.program.operations import Axis, Val
from fccomodel.program.operations.scores import beside, middle, squared_distances


class Rows:
    """Lowers linear maps and squared distances of rows."""

    def __init__(self, state: State, lower: Lower):
        self.state, self.lower = state, lower
        self.distributed = distributed.of(state.bound)

    def form(self, node: ir.Expr, env: Env) -> ir.Expr | None:
        """A linear map of a sum as the sum of the maps, or None if that is not less work."""

        def sampled(part: ir.Expr) -> float:
            """The number of combinations of sampled rows that an expression depends on."""
            axes: set[Axis] = set()
            for binder in self.state.free(part):
                if binder in env:
                    axes.update(env[binder].ids.axes)
            return math.prod(axis.size for axis in axes)

        return self.distributed.form(node, None if self.state.full else sampled)

    def distances(self, node: ir.Apply, env: Env) -> Val | None:
        """The squared distances between the vectors of two axes, in a full pass; None for other nodes."""
        if not self.state.full:
            return None
        sides = self.distributed.sides(node)
        if sides is None:
            return None
        vectors = [self.lower(side, env, False) for side in sides]
        u, v = sorted(vectors, key=lambda side: [axis.order for axis in side.axes])
        on_two_axes = len(u.axes) == len(v.axes) == 1 and u.axes != v.axes
        if not on_two_axes or u.event != v.event:
            return None
        if v.axes[0].kind == "chunk":  # the middle of a slice is not the middle of all rows
            return None
        g = self.state.graph
        centre = g.make(middle, [v])
        return g.make(squared_distances, [u, g.make(beside, [v, centre]), centre])
