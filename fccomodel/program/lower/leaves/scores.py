"""Scores of rows (rows times a variable) and outputs of nets.

They are computed for the whole table if a step reads most of its rows anyway.
"""

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
    """Lowers linear functions and nets of rows."""

    def __init__(self, state: State, leaves: Leaves, lower: Lower):
        self.state, self.leaves, self.lower = state, leaves, lower

    def product(self, node: ir.Apply, env: Env) -> Val | None:
        """A product of a row and an expression in variables alone; None for other products."""
        for row, factor in (node.args, node.args[::-1]):
            if not isinstance(row, ir.Column) or len(row.shape) != 1:
                continue
            is_row = row.binder in env and env[row.binder].draw is None
            if not is_row or not ir.variables_of(factor):
                continue
            if len(factor.shape) == 1:
                weights = self.lower(factor, env, False)
                if not weights.axes:
                    return self.score(row, weights, env)
            if node.op == "matmul" and len(factor.shape) == 2:
                matrix = self.lower(factor, env, False)
                if not matrix.axes:
                    image = self.image(row, matrix, row is node.args[1], env)
                    if image is not None:
                        return image
        return None

    def whole(self, slot: Slot, key: str) -> bool:
        """Whether a pass over the whole table costs about as much as the rows of a slot."""
        if self.state.full:
            return True
        rows = math.prod(axis.size for axis in slot.ids.axes)
        return 2 * rows >= len(self.state.data[key])

    def score(self, column: ir.Column, weights: Val, env: Env) -> Val:
        """``X[rows] @ w``, or ``(X @ w)[rows]``."""
        slot, g, key = env[column.binder], self.state.graph, self.leaves.key(column)
        if self.whole(slot, key):
            whole = g.make(table_score, [weights], key=key, event=(len(self.state.data[key]),))
            return g.make(take_val, [whole, slot.ids])
        return g.make(score, [self.leaves.column(column, env), weights])

    def image(self, column: ir.Column, matrix: Val, right: bool, env: Env) -> Val | None:
        """Rows of ``X @ Aᵀ`` if the matrix A stands left of the row (``right``), else of ``X @ A``.

        None if it does not pay to compute all rows.
        """
        slot, g, key = env[column.binder], self.state.graph, self.leaves.key(column)
        if not self.whole(slot, key):
            return None
        table = g.make(array_data, key=key, event=self.state.data[key].shape)
        factor = g.array("transpose", [matrix]) if right else matrix
        product = g.array("matmul", [table, factor])
        return g.make(take_val, [product, slot.ids])

    def net(self, node: ir.NetCall, env: Env) -> Val:
        """Outputs of a net for some rows; in a full pass for the whole table."""
        weights = self.lower(node.params, env, False)
        g = self.state.graph
        event = self.state.shape(node.shape)
        names = {"net": node.net, "variable": node.params.name}
        arg = node.arg
        if isinstance(arg, ir.Column):
            slot = env[arg.binder]
            if self.state.full and arg.name is not None and slot.draw is None:
                key = self.leaves.key(arg)
                outputs = g.make(
                    table_net,
                    [weights],
                    **names,
                    key=key,
                    event=(len(self.state.data[key]), *event),
                    thrifty=dear(self.state.bound),
                )
                return g.make(take_val, [outputs, slot.ids])
            if slot.shared is not None:
                batch, part = slot.shared
                return g.make(within, [self.net(node, {**env, arg.binder: batch})], **part)
        return g.make(net, [weights, self.lower(arg, env, False)], **names, event=event)
