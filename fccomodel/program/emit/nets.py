"""Calls of nets, made together where they can be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fccomodel.program.graph import Graph
from fccomodel.program.operations.base import Pull, Val
from fccomodel.program.operations.scores import net, net_call

if TYPE_CHECKING:
    from fccomodel.program.emit.printer import FunctionPrinter


@dataclass(frozen=True, eq=False)
class Calls:
    """Calls of one net at one parameter vector, which are made as one batch.

    Calls with a gradient are a batch of their own.

    together  by each call's id, all of its batch
    taped     the ids of calls with a gradient
    """

    together: Mapping[int, list[Val]] = field(default_factory=dict)
    taped: frozenset[int] = frozenset()

    @classmethod
    def of(cls, graph: Graph, pulls: Iterable[Pull]) -> Calls:
        """The calls of a graph whose gradient consists of ``pulls``."""
        taped = frozenset(pull.source.id for pull in pulls if pull.source.op is net)
        groups: dict[tuple[int, str, bool], list[Val]] = {}
        for val in graph.vals:
            if val.op is net:
                key = (val.args[0].id, val.attrs["net"], val.id in taped)
                groups.setdefault(key, []).append(val)
        return cls(together={val.id: group for group in groups.values() for val in group}, taped=taped)

    def statement(self, printer: FunctionPrinter, val: Val, asked: set[int]) -> None:
        """Print one statement for all calls that are made together."""
        group = [v for v in self.together.get(val.id, [val]) if v.id in asked]
        for v in group:
            printer.texts[v.id] = printer.name(v)
        call = ".taped" if val.id in self.taped else ""
        inputs = ", ".join(net_call(printer, v.args[1:], v.axes) for v in group)
        left = ", ".join(printer.texts[v.id] for v in group)
        comments = "; ".join(dict.fromkeys(printer.comments[v.id] for v in group if v.id in printer.comments))
        line = f"{left} = net_{val.attrs['net']}{call}({printer.ref(val.args[0])}, {inputs})"
        printer.put(line, comments if len(comments) < 110 else "")

    def contributions(self, printer: FunctionPrinter, pulls: Iterable[Pull]) -> list[tuple[str, str]]:
        """The gradient of each net's variable: one vector-Jacobian product for all its calls."""
        by_variable: dict[str, list[Pull]] = {}
        for pull in pulls:
            by_variable.setdefault(pull.variable, []).append(pull)
        return [(variable, self.product(printer, group)) for variable, group in by_variable.items()]

    def product(self, printer: FunctionPrinter, pulls: list[Pull]) -> str:
        """The vector-Jacobian product of calls that were made together."""
        adjoints = {p.source.id: p.adjoint for p in pulls}
        source, texts = pulls[0].source, []
        for v in self.together[source.id]:
            if v.id not in printer.texts:
                continue
            if v.id not in adjoints:
                texts.append(f"torch.zeros_like({printer.texts[v.id]})")
            elif v.event:
                texts.append(
                    f"{printer.ref(adjoints[v.id], v.axes, len(v.event))}.expand_as({printer.texts[v.id]})"
                )
            else:
                texts.append(printer.expanded(adjoints[v.id], v.axes))
        return f"net_{source.attrs['net']}.vjp({', '.join(texts)})"
