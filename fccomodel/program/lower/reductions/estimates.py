"""The estimates of expectations under nonlinear functions."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.program.lower.records import Buffer
from fccomodel.program.lower.state import Env, Lower, State
from fccomodel.program.operations import Val
from fccomodel.program.operations.estimates import track


class Estimates:
    """What estimators make of minibatch values."""

    def __init__(self, state: State, lower: Lower):
        self.state, self.lower = state, lower

    def tracked(self, node: ir.Reduce, value: Val, env: Env, log: bool = False) -> Val:
        """u (``log``: its logarithm): one estimate per block, updated from the minibatch value; every
        use of a ``let`` shares its estimates. A block of random draws has none."""
        binders = tuple(b for b in self.state.free(node) if b in env)
        slots = [env[b] for b in binders]
        if any(s.pos is None for s in slots):
            return value
        key = (node, *(s.n for s in slots))
        buffers = self.state.buffers
        if key not in buffers:
            text, shape = self.state.bound.problem.text(node), tuple(s.n for s in slots) + value.event
            if log:
                about = f"log of {text}"
            else:
                about = text
            name = f"u{len(buffers) + 1}"
            buffers[key] = Buffer(name=name, shape=shape, text=about, node=node, binders=binders, log=log)
        positions = [s.pos for s in slots if s.pos is not None]
        return self.estimate(value, self.resampled(node, env), positions, buffers[key].name, log)

    def argument(self, node: ir.Expr, env: Env, inner: bool) -> Val:
        """The argument of an outer function: of estimates, or, where its blocks keep their y, a
        minibatch value extrapolated."""
        if inner or not self.state.dual or self.state.full:
            return self.lower(node, env, inner)
        value = self.lower(node, env, True)
        if value.varying:
            return self.estimate(value, self.resampled(node, env), [], "")
        return value

    def estimate(
        self, value: Val, through: Val | None, positions: list[Val], name: str, log: bool = False
    ) -> Val:
        """What the estimator makes of a minibatch value; its derivative is that of ``through``, or
        else of the value itself."""
        through = None if through is value else through
        return self.state.graph.make(track, [value, *positions], name=name, through=through, log=log)

    def resampled(self, node: ir.Expr, env: Env) -> Val | None:
        """The minibatch value by inner samples of its own, where the algorithm wants two independent
        batches."""
        if not self.state.independent:
            return None
        self.state.again = True
        try:
            return self.lower(node, env, True)
        finally:
            self.state.again = False
