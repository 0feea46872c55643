"""Lowers numbers, params, variables, columns and elements of sets."""

from __future__ import annotations

import numpy as np

from fccomodel.core import ir
from fccomodel.data.drawn import drawn
from fccomodel.evaluation.sets import elements
from fccomodel.program.lower.leaves.slots import set_key
from fccomodel.program.lower.state import Env, State
from fccomodel.program.operations import Val
from fccomodel.program.operations.indexing import within
from fccomodel.program.operations.sources import array_data, fetch, param, variable


class Leaves:
    """Lowers the leaves of expressions."""

    def __init__(self, state: State):
        self.state = state

    def constant(self, node: ir.Const) -> Val:
        """A number, or an array with this number in every entry."""
        if not node.shape:
            return self.state.graph.const(node.value)
        return self.array("constant", np.full(self.state.shape(node.shape), node.value))

    def parameter(self, name: str) -> Val:
        """A param, or a bound array."""
        bound = self.state.bound
        array = np.asarray(bound.params[name] if name in bound.params else bound.arrays[name])
        if array.ndim:
            return self.array(name, array)
        g, value = self.state.graph, float(array)
        if name in bound.params:
            return g.make(param, name=name, value=value)
        return g.const(value)

    def array(self, name: str, array: np.ndarray) -> Val:
        """An array that becomes data of the program."""
        return self.state.graph.make(array_data, key=self.state.ship(name, array), event=array.shape)

    def variable(self, node: ir.Var) -> Val:
        """A decision variable. The parameters of a net are one vector."""
        shape: tuple[int, ...] | None = None
        for name, net in self.state.bound.nets.items():
            if node.shape == (f"params({name})",):
                shape = (sum(parameter.numel() for parameter in net.parameters()),)
        if shape is None:
            shape = self.state.shape(node.shape)
        return self.state.graph.make(variable, name=node.name, event=shape)

    def column(self, node: ir.Column, env: Env) -> Val:
        """The entries of rows in a column, or a draw."""
        slot = env[node.binder]
        if slot.draw is not None or node.name is None:
            return slot.ids
        if slot.shared is not None:
            whole, part = slot.shared
            return self.state.graph.make(within, [self.column(node, {**env, node.binder: whole})], **part)
        event = self.entries(node).shape[1:]
        if drawn(self.entries(node)) and not self.state.full:
            return self.state.graph.make(fetch, [slot.ids], key=self.key(node), event=event)
        return self.state.take(self.key(node), slot.ids, event)

    def element(self, node: ir.Element, env: Env) -> Val:
        """The number of an element of a value set, or the position of an element of another set."""
        slot, domain = env[node.binder], node.binder.domain
        if slot.draw is None and isinstance(domain, ir.ValueSet):
            key = self.state.ship(set_key(domain) + "_values", elements.values(self.state.bound, domain))
            return self.state.take(key, slot.ids, ())
        return slot.ids

    def entries(self, node: ir.Column) -> np.ndarray:
        """The column of a table that a node reads."""
        assert isinstance(node.binder.domain, ir.RowSet) and node.name is not None
        return self.state.bound.tables[node.binder.domain.table].columns[node.name]

    def key(self, node: ir.Column) -> str:
        """The key of a column among the program's arrays."""
        assert isinstance(node.binder.domain, ir.RowSet) and node.name is not None
        return self.state.ship(f"{node.binder.domain.table}_{node.name.strip('_')}", self.entries(node))
