"""Rows times a variable, and outputs of nets: for the whole table where that touches fewer rows."""

from __future__ import annotations

import math

from fccomodel.core import ir
from fccomodel.data.net_costs import dear
from fccomodel.program.lower.leaves.leaves import Leaves
from fccomodel.program.lower.records import Slot
from fccomodel.program.lower.state import Env, Lower, State
from fccomodel.program.operations import Val
from fccomodel.program.operations.indexing import take_val, within
from fccomodel.program.operations.scores import net, score, table_net, table_score
from fccomodel.program.operations.sources import array_data


class Scores:
    """Linear functions and nets of rows."""

    def __init__(self, state: State, leaves: Leaves, lower: Lower):
        self.state, self.leaves, self.lower = state, leaves, lower

    def product(self, node: ir.Apply, env: Env) -> Val | None:
        """A product of a row and what depends on variables alone, None for another."""
        for a, b in (node.args, node.args[::-1]):
            rows = (
                isinstance(a, ir.Column)
                and len(a.shape) == 1
                and a.binder in env
                and env[a.binder].draw is None
            )
            if not isinstance(a, ir.Column) or not rows or not ir.variables_of(b):
                continue
            if len(b.shape) == 1 and not (weights := self.lower(b, env, False)).axes:
                return self.score(a, weights, env)
            if node.op == "matmul" and len(b.shape) == 2 and not (matrix := self.lower(b, env, False)).axes:
                if (image := self.image(a, matrix, a is node.args[1], env)) is not None:
                    return image
        return None

    def whole(self, slot: Slot, key: str) -> bool:
        """The whole table costs no more than the rows of a slot."""
        return self.state.full or 2 * math.prod(a.size for a in slot.ids.axes) >= len(self.state.data[key])

    def score(self, column: ir.Column, weights: Val, env: Env) -> Val:
        """``X[rows] @ w``, or ``(X @ w)[rows]``."""
        slot, g, key = env[column.binder], self.state.graph, self.leaves.key(column)
        if self.whole(slot, key):
            whole = g.make(table_score, [weights], key=key, event=(len(self.state.data[key]),))
            return g.make(take_val, [whole, slot.ids])
        return g.make(score, [self.leaves.column(column, env), weights])

    def image(self, column: ir.Column, matrix: Val, right: bool, env: Env) -> Val | None:
        """Rows of ``X @ Aᵀ`` (of ``X @ A`` where the matrix stands left), of the whole table or not at
        all."""
        slot, g, key = env[column.binder], self.state.graph, self.leaves.key(column)
        if not self.whole(slot, key):
            return None
        table = g.make(array_data, key=key, event=self.state.data[key].shape)
        whole = g.array("matmul", [table, g.array("transpose", [matrix]) if right else matrix])
        return g.make(take_val, [whole, slot.ids])

    def net(self, node: ir.NetCall, env: Env) -> Val:
        """Outputs of a net for some rows; in a full pass for the whole table."""
        weights, g, event = (
            self.lower(node.params, env, False),
            self.state.graph,
            self.state.shape(node.shape),
        )
        which = {"net": node.net, "variable": node.params.name}
        arg = node.arg
        if (
            self.state.full
            and isinstance(arg, ir.Column)
            and arg.name is not None
            and env[arg.binder].draw is None
        ):
            key = self.leaves.key(arg)
            whole = g.make(
                table_net,
                [weights],
                **which,
                key=key,
                event=(len(self.state.data[key]), *event),
                thrifty=dear(self.state.bound),
            )
            return g.make(take_val, [whole, env[arg.binder].ids])
        if isinstance(arg, ir.Column) and (shared := env[arg.binder].shared) is not None:
            batch, part = shared
            return g.make(within, [self.net(node, {**env, arg.binder: batch})], **part)
        return g.make(net, [weights, self.lower(arg, env, False)], **which, event=event)
