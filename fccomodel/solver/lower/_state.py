"""What lowering a problem keeps: the graph, the arrays shipped with the program, estimators, draws, names."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NoReturn

import numpy as np

from fccomodel.core import ir, quoting
from fccomodel.core.diagnostics import Diagnostic, refuse
from fccomodel.data.bound import Bound
from fccomodel.evaluation import elements, logarithms
from fccomodel.solver.graph import Graph
from fccomodel.solver.lower._records import Buffer, Ranged, Slot
from fccomodel.solver.names import reserved
from fccomodel.solver.operations import Val
from fccomodel.solver.operations.sources import take

Env = Mapping[ir.Binder, Slot]
#: how a value enters the expectation around it: linearly (True), as the logarithm of what enters linearly, or in another way
Linear = bool | Literal["log"]


@dataclass(eq=False)
class State:
    """Lowers expressions of one problem into one graph.

    full       True for a pass over all rows (in chunks where pairs are many); False for a minibatch
    batch      (binder, number of elements, inner) -> sample size, or None for all elements
    sampled    by the id of an innermost expectation: over how many samples it is taken
    independent  gradients go through inner samples of their own       dual  outer functions keep a y for each block, not u
    coupled    the worst of a family is by weights of its members that move in each step
    again      while lowering: those samples, of values whose first ones serve the estimates
    sampling, inner_sampling   how elements are drawn (options of a plan)
    stable     expectations of exponentials by their logarithms (see ``logarithms``)
    """

    bound: Bound
    full: bool
    batch: Callable[[ir.Binder, int, bool], int | None] = lambda binder, n, inner: None
    stable: bool = True
    sampling: str = "epochs"
    inner_sampling: str = "shared"
    graph: Graph = field(default_factory=Graph)
    data: dict[str, np.ndarray] = field(default_factory=dict)
    buffers: dict[tuple, Buffer] = field(default_factory=dict)
    centres: dict[str, tuple[int, ...]] = field(default_factory=dict)
    independent: bool = False
    dual: bool = False
    again: bool = False
    coupled: bool = False
    draws: list[Val] = field(default_factory=list)
    sampled: dict[int, int] = field(default_factory=dict)
    memo: dict[tuple, Val] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=lambda: dict.fromkeys(reserved(), 1))
    spans: dict[int, ir.Expr] = field(default_factory=dict)
    alive: list = field(default_factory=list)
    slots: dict[tuple, Ranged] = field(default_factory=dict)
    nests: list[dict[str, int]] = field(default_factory=list)
    thin: dict[str, int] = field(default_factory=dict)
    heavy: bool = False
    freed: dict[int, tuple[ir.Expr, tuple[ir.Binder, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.logarithms = logarithms.of(self.bound)

    def expr(self, node: ir.Expr, env: Env, linear: Linear = True) -> Val:
        """The value of an expression where the binders stand for ``env``."""
        raise NotImplementedError

    def refuse(self, found: Diagnostic) -> NoReturn:
        """Raises the error that this part of a model cannot be in a solver."""
        refuse(found, source=self.bound.problem.source)

    def unique(self, stem: str) -> str:
        """A fresh Python name, free with ``r_`` before it too (a draw's uniform numbers)."""
        stem = "".join(c if c.isalnum() else "_" for c in stem).strip("_")
        stem = stem if stem.isidentifier() else f"v{stem}"
        while True:
            count = self.names[stem] = self.names.get(stem, 0) + 1
            name = stem if count == 1 else f"{stem}_{count}"
            if (count == 1 or name not in self.names) and f"r_{name}" not in self.names:
                self.names |= {f"r_{name}": 1, **({} if count == 1 else {name: 1})}
                return name

    def ship(self, key: str, array: np.ndarray) -> str:
        """Registers an array that the program needs, under its key, which no parameter that is a number has."""
        key = quoting.attribute(key)
        for count in itertools.count(1):
            name = key if count == 1 else f"{key}_{count}"
            if name in self.numbers:
                continue
            known = self.data.setdefault(name, array)
            if known is array or (known.shape == array.shape and known.dtype == array.dtype and np.array_equal(known, array)):
                return name
        raise AssertionError

    @functools.cached_property
    def numbers(self) -> dict[str, float]:
        """The parameters that are numbers, by the attribute of ``data`` that holds each."""
        return {quoting.attribute(n): float(value) for n, value in self.bound.params.items() if np.ndim(value) == 0}

    def size(self, dim: ir.Dim) -> int:
        """A size as a number."""
        return elements.size(self.bound, dim)

    def shape(self, shape: ir.Shape) -> tuple[int, ...]:
        return tuple(self.size(n) for n in shape)

    def free(self, node: ir.Expr) -> tuple[ir.Binder, ...]:
        """The binders that a node depends on (found for all nodes below it at once)."""
        if id(node) not in self.freed:
            for part in ir.walk(node):
                if id(part) not in self.freed:
                    self.freed[id(part)] = (part, self._free(part))
        return self.freed[id(node)][1]

    def _free(self, node: ir.Expr) -> tuple[ir.Binder, ...]:
        """``free`` where it is known for the nodes below."""
        if isinstance(node, ir.Column | ir.Element):
            return (node.binder,)
        own: dict[ir.Binder, None] = {}
        for child in node.children:
            own |= dict.fromkeys(self.freed[id(child)][1])
        bound: tuple[ir.Binder, ...] = ()
        if isinstance(node, ir.Reduce):
            bound = node.binders
            for binder in bound:
                for arg in getattr(binder.domain, "args", ()):
                    own |= dict.fromkeys(self.free(arg))
        elif isinstance(node, ir.Exists):
            bound = (node.binder,)
        elif isinstance(node, ir.LetRef):
            own |= {b: None for b in self.freed[id(node.let.body)][1] if b not in node.let.binders}
        return tuple(b for b in own if b not in bound)

    def take(self, key: str, ids: Val, event: tuple[int, ...]) -> Val:
        """Rows ``ids`` of a data array."""
        return self.graph.make(take, [ids], key=key, event=event)
