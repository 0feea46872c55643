"""Scores of rows (rows times a variable) and outputs of nets.

They are computed for the whole table if a step reads most of its rows anyway.
"""

from __future__ import annotations

import math

import numpy as np

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.data.net_costs import dear
from fccomodel.evaluation import interpret
from fccomodel.evaluation.memory import remember
from fccomodel.program.lower.leaves.leaves import Leaves
from fccomodel.program.lower.records import Slot
from fccomodel.program.lower.state import Env, Lower, State
from fccomodel.program.operations import Val
from fccomodel.program.operations.indexing import take_val, within
from fccomodel.program.operations.moving_nets import moving_net
from fccomodel.program.operations.scores import frozen_net, net, score, table_net, table_score
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
        if node.params is None:
            return self.frozen(node, env)
        weights, g, event = (
            self.lower(node.params, env, False),
            self.state.graph,
            self.state.shape(node.shape),
        )
        which = {"net": node.net, "variable": node.params.name}
        column = node.column
        if self.state.full and column is not None and env[column.binder].draw is None:
            keys = tuple(self.leaves.key(one) for one in node.inputs if isinstance(one, ir.Column))
            whole = g.make(
                table_net,
                [weights],
                **which,
                keys=keys,
                event=(len(self.state.data[keys[0]]), *event),
                thrifty=dear(self.state.bound),
            )
            return g.make(take_val, [whole, env[column.binder].ids])
        if column is not None and (shared := env[column.binder].shared) is not None:
            batch, part = shared
            return g.make(within, [self.net(node, {**env, column.binder: batch})], **part)
        inputs = [self.lower(one, env, False) for one in node.inputs]
        if any(one.varying for one in inputs):
            full = self.state.full
            return g.make(moving_net, [weights, *inputs], **which, event=event, full=full)
        return g.make(net, [weights, *inputs], **which, event=event)

    def frozen(self, node: ir.NetCall, env: Env) -> Val:
        """Outputs of a net without variables: for columns of a table they are computed once, and become
        a column themselves."""
        g, column = self.state.graph, node.column
        if column is not None and isinstance(column.binder.domain, ir.RowSet):
            slot = env[column.binder]
            if slot.draw is None and not changing(self.state.bound, node):
                if slot.shared is not None:
                    batch, part = slot.shared
                    return g.make(within, [self.frozen(node, {**env, column.binder: batch})], **part)
                name = "_".join([node.net, column.binder.domain.table, *node.columns])
                key = self.state.ship(name, outputs(self.state.bound, node))
                return self.state.take(key, slot.ids, self.state.shape(node.shape))
        inputs = [self.lower(one, env, False) for one in node.inputs]
        event = self.state.shape(node.shape)
        if any(one.varying for one in inputs):
            return g.make(moving_net, inputs, net=node.net, variable="", event=event, full=self.state.full)
        return g.make(frozen_net, inputs, net=node.net, event=event)


def changing(bound: Bound, node: ir.NetCall) -> bool:
    """Whether steps may see a row of the inputs otherwise each time they draw it."""
    assert node.column is not None and isinstance(node.column.binder.domain, ir.RowSet)
    columns = bound.tables[node.column.binder.domain.table].columns
    return any(getattr(columns[name], "changing", False) for name in node.columns)


def outputs(bound: Bound, node: ir.NetCall) -> np.ndarray:
    """The outputs of a frozen net for every row of a table, (rows, *output), computed once."""
    assert node.column is not None
    binder = node.column.binder
    assert isinstance(binder.domain, ir.RowSet)
    table = binder.domain.table
    rows = np.arange(bound.tables[table].n)
    key = ("frozen outputs", node.net, table, node.columns)
    return remember(bound, key, lambda: interpret.evaluate(bound, node, {}, {binder: rows}).numpy())
