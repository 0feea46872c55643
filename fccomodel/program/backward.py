"""The reverse derivative of a graph of values, built from the same operations as the values."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fccomodel.program.graph import Graph
from fccomodel.program.operations.base import Pull, Val, in_order
from fccomodel.program.operations.entrywise import entrywise
from fccomodel.program.operations.estimates import track
from fccomodel.program.operations.given import given_scores
from fccomodel.program.operations.sources import variable


def previous(graph: Graph, val: Val) -> Val:
    """The minibatch value at the previous iterate; the estimates inside it are not changed."""
    values: dict[int, Val] = {}

    def remake(v: Val) -> Val:
        """The value at the iterate before."""
        if not v.varying or v.op is track:
            return v
        if v.id not in values:
            attrs = {**v.attrs, "previous": True} if v.op in (variable, given_scores) else v.attrs
            values[v.id] = graph.make(v.op, [remake(a) for a in v.args], **attrs)
        return values[v.id]

    return remake(val)


def backward(graph: Graph, roots: Mapping[Val, Val]) -> list[Pull]:
    """Contributions to the variables' gradients of ``sum_r <adjoint_r, r>`` for roots ``{r: adjoint_r}``."""
    sweep = AdjointSweep(graph)
    for val, adjoint in roots.items():
        sweep.give(val, adjoint)
    return sweep.run()


class AdjointSweep:
    """One pass from the roots back to the variables; an adjoint is passed on when it is complete."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.adjoints: dict[int, Val] = {}
        self.pulls: list[Pull] = []
        self.source: Val | None = None

    def run(self) -> list[Pull]:
        """Walk the graph backwards and return what reaches the variables."""
        for index in range(max(self.adjoints, default=-1), -1, -1):
            if index in self.adjoints and self.graph.number(self.adjoints[index]) != 0:
                self.source = self.graph.vals[index]
                self.source.op.derivative(self, self.source, self.adjoints[index])
        return self.pulls

    def pull(self, variable: str, source: Val, adjoint: Val) -> None:
        """Adds to the gradient of a variable."""
        self.pulls.append(Pull(variable=variable, source=source, adjoint=adjoint))

    def give(self, val: Val, adjoint: Val) -> None:
        """Adds to the adjoint of a value, summed over what the value was spread over."""
        if val.varying:
            part = self.summed(val, adjoint)
            before = self.adjoints.get(val.id)
            if before is None:
                self.adjoints[val.id] = part
            else:
                self.adjoints[val.id] = self.graph.apply("add", before, part)

    def summed(self, val: Val, adjoint: Val) -> Val:
        """An adjoint on the axes and event dims of its value."""
        if self.source is not None and self.source.op.spreads:
            source = self.source
        else:
            source = adjoint
        if missing := [a for a in in_order([*adjoint.axes, *source.axes]) if a not in val.axes]:
            without = self.graph.weighed(adjoint, missing)
            if without is None:
                adjoint = self.graph.total(adjoint, missing)
            else:
                adjoint = without
        if len(adjoint.event) > len(val.event):
            return self.graph.sum_event(adjoint)
        if source.op is entrywise and len(source.event) > len(val.event):
            return self.graph.apply("mul", self.graph.const(math.prod(source.event)), adjoint)
        return adjoint
