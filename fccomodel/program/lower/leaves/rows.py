"""Linear maps and squared distances of rows: by what each row gives, not by their pairs (see
``evaluation.distributed``)."""

from __future__ import annotations

import math

from fccomodel.core import ir
from fccomodel.evaluation import distributed
from fccomodel.program.lower.state import Env, Lower, State
from fccomodel.program.operations import Val
from fccomodel.program.operations.scores import beside, middle, squared_distances


class Rows:
    """What rows are mapped to, each once."""

    def __init__(self, state: State, lower: Lower):
        self.state, self.lower = state, lower
        self.distributed = distributed.of(state.bound)

    def form(self, node: ir.Expr, env: Env) -> ir.Expr | None:
        """A linear map of a sum, term by term, where that is less work: in a full pass, or for the
        samples of a step."""

        def sampled(part: ir.Expr) -> float:
            """The number of combinations of drawn rows that an expression depends on."""
            axes = {
                axis for binder in self.state.free(part) if binder in env for axis in env[binder].ids.axes
            }
            return math.prod(axis.size for axis in axes)

        return self.distributed.form(node, None if self.state.full else sampled)

    def distances(self, node: ir.Apply, env: Env) -> Val | None:
        """The squared distances of vectors along an axis each, in a full pass; None of others."""
        if self.state.full:
            sides = self.distributed.sides(node)
        else:
            sides = None
        if sides is None:
            return None
        u, v = sorted(
            (self.lower(side, env, False) for side in sides), key=lambda side: [a.order for a in side.axes]
        )
        apart = len(u.axes) == len(v.axes) == 1 and u.axes != v.axes and u.event == v.event
        if not apart or v.axes[0].kind == "chunk":  # their middle is that of all rows, not of a slice
            return None
        g, centre = self.state.graph, self.state.graph.make(middle, [v])
        return g.make(squared_distances, [u, g.make(beside, [v, centre]), centre])
