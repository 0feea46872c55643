"""Lowers expectations under nonlinear functions to estimates of them."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.program.lower.records import EstimatorState
from fccomodel.program.lower.state import Env, Lower, State
from fccomodel.program.operations import Val
from fccomodel.program.operations.estimates import track


class Estimates:
    """Makes estimates from minibatch values."""

    def __init__(self, state: State, lower: Lower):
        self.state, self.lower = state, lower

    def tracked(self, node: ir.Reduce, value: Val, env: Env, log: bool = False) -> Val:
        """The estimate u of an expectation: one number per block, updated from the minibatch value.

        log   whether the logarithm of the expectation is estimated

        All uses of a ``let`` share its estimates. A block that belongs to a random draw has no estimate,
        and the minibatch value is returned.
        """
        binders = tuple(b for b in self.state.free(node) if b in env)
        slots = [env[b] for b in binders]
        if any(s.pos is None for s in slots):
            return value
        key = (node, *(s.n for s in slots))
        buffers = self.state.buffers
        if key not in buffers:
            text = self.state.bound.problem.text(node)
            if log:
                text = f"log of {text}"
            name = f"{self.state.running}{len(buffers) + 1}"
            shape = tuple(s.n for s in slots) + value.event
            buffers[key] = EstimatorState(
                name=name, shape=shape, text=text, node=node, binders=binders, log=log
            )
        positions = [s.pos for s in slots if s.pos is not None]
        return self.estimate(value, self.resampled(node, env), positions, buffers[key].name, log)

    def argument(self, node: ir.Expr, env: Env, inner: bool) -> Val:
        """The argument of an outer function, made of estimates.

        If blocks have dual variables y, it is a minibatch value that the algorithm extrapolates.
        """
        if inner or not self.state.dual or self.state.full:
            return self.lower(node, env, inner)
        value = self.lower(node, env, True)
        if value.varying:
            return self.estimate(value, self.resampled(node, env), [], "")
        return value

    def estimate(
        self, value: Val, through: Val | None, positions: list[Val], name: str, log: bool = False
    ) -> Val:
        """The estimate from a minibatch value.

        Its derivative is that of ``through``, or of the value itself if this is None.
        """
        if through is value:
            through = None
        return self.state.graph.make(track, [value, *positions], name=name, through=through, log=log)

    def resampled(self, node: ir.Expr, env: Env) -> Val | None:
        """The minibatch value from other inner samples, or None if the algorithm needs one batch only."""
        if not self.state.independent:
            return None
        self.state.again = True
        try:
            return self.lower(node, env, True)
        finally:
            self.state.again = False
