"""What lowering a problem keeps: the graph, the arrays shipped with the program, estimators, draws, names."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NoReturn, Protocol

import numpy as np

from fccomodel.core import ir, quoting
from fccomodel.core.diagnostics import Diagnostic, refuse
from fccomodel.data.bound import Bound
from fccomodel.data.drawn import drawn, same_rows
from fccomodel.evaluation import logarithms
from fccomodel.evaluation.sets import elements
from fccomodel.plan.sharing import Strata
from fccomodel.program.graph import Graph
from fccomodel.program.lower.records import Buffer, Slot
from fccomodel.program.lower.thinning import Thinning
from fccomodel.program.names import reserved
from fccomodel.program.operations import Val
from fccomodel.program.operations.sources import cell, take

Env = Mapping[ir.Binder, Slot]
#: how a value enters the expectation around it: linearly (True), as the logarithm of what enters
#: linearly, or in another way
Linear = bool | Literal["log"]


class Lower(Protocol):
    """Gives the value of an expression where the binders stand for ``env``."""

    def __call__(self, node: ir.Expr, env: Env, linear: Linear = True) -> Val: ...


@dataclass(eq=False, kw_only=True)
class State:
    """One problem on its way into one graph: what is asked of it, and what has come of it so far.

    full       True for a pass over all rows (in chunks where pairs are many); False for a minibatch
    batch      (binder, number of elements, inner) -> sample size, or None for all elements
    sampling, inner_sampling   how elements are drawn (options of a plan)
    strata     rows that several expectations share in a step
    stable     expectations of exponentials by their logarithms (see ``logarithms``)
    independent  gradients go through inner samples of their own
    dual         outer functions keep a
                 y for each block, not u
    coupled    the worst of a family is by weights of its members that move in each step
    separated  reductions over pairs of rows are taken by their separated forms (see ``separation``)
    enveloped  non-smooth functions are their envelopes in a full pass too

    data       arrays that the program needs, by key            buffers, centres  what a step keeps
               for every block
    draws      the samples of a step
    sampled    by the id of an innermost
               expectation: over how many
    spans      the expression that each value, by its id, is first the value of
    thinning   row sets that a quick evaluation takes in part
    again      while lowering: samples of their own, of values whose first ones serve the estimates
    """

    bound: Bound
    full: bool
    batch: Callable[[ir.Binder, int, bool], int | None] = lambda binder, n, inner: None
    sampling: str = "epochs"
    inner_sampling: str = "shared"
    strata: Sequence[Strata] = ()
    stable: bool = True
    independent: bool = False
    dual: bool = False
    coupled: bool = False
    separated: bool = True
    enveloped: bool = False
    graph: Graph = field(default_factory=Graph)
    data: dict[str, np.ndarray] = field(default_factory=dict)
    buffers: dict[tuple, Buffer] = field(default_factory=dict)
    centres: dict[str, tuple[int, ...]] = field(default_factory=dict)
    draws: list[Val] = field(default_factory=list)
    sampled: dict[int, int] = field(default_factory=dict)
    spans: dict[int, ir.Expr] = field(default_factory=dict)
    thinning: Thinning = field(default_factory=Thinning)
    again: bool = False
    names: dict[str, int] = field(default_factory=lambda: dict.fromkeys(reserved(), 1))
    freed: dict[int, tuple[ir.Expr, tuple[ir.Binder, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.logarithms = logarithms.of(self.bound)

    def refuse(self, error: Diagnostic) -> NoReturn:
        """Raises the error that this part of a model cannot be in a solver."""
        refuse(error, source=self.bound.problem.source)

    # -------------------------------------------------------------------------------- names, arrays
    def unique(self, stem: str) -> str:
        """A fresh Python name, free with ``r_`` before it too (a draw's uniform numbers)."""
        stem = "".join(c if c.isalnum() else "_" for c in stem).strip("_")
        if stem.isidentifier():
            stem = stem
        else:
            stem = f"v{stem}"
        while True:
            count = self.names[stem] = self.names.get(stem, 0) + 1
            if count == 1:
                name = stem
            else:
                name = f"{stem}_{count}"
            if (count == 1 or name not in self.names) and f"r_{name}" not in self.names:
                self.names |= {f"r_{name}": 1, **({} if count == 1 else {name: 1})}
                return name

    def ship(self, key: str, array: np.ndarray) -> str:
        """Registers an array that the program needs, under its key, which no parameter that is a
        number has."""
        key = quoting.attribute(key)
        for count in itertools.count(1):
            if count == 1:
                name = key
            else:
                name = f"{key}_{count}"
            if name in self.numbers:
                continue
            held = self.data.setdefault(name, array)
            if drawn(held) or drawn(array):
                if same_rows(held, array):
                    return name
                continue
            if held is array or (
                held.shape == array.shape and held.dtype == array.dtype and np.array_equal(held, array)
            ):
                return name
        raise AssertionError

    @functools.cached_property
    def numbers(self) -> dict[str, float]:
        """The parameters that are numbers, by the attribute of ``data`` that holds each."""
        return {
            quoting.attribute(n): float(value)
            for n, value in self.bound.params.items()
            if np.ndim(value) == 0
        }

    def take(self, key: str, ids: Val, event: tuple[int, ...]) -> Val:
        """Rows ``ids`` of a data array."""
        return self.graph.make(take, [ids], key=key, event=event)

    def cells(self, key: str, array: np.ndarray, parents: list[Val]) -> Val:
        """A number per cell of the parents' ids."""
        return self.graph.make(cell, parents, key=self.ship(key, np.asarray(array)))

    # ------------------------------------------------------------------------------- sizes, binders
    def shape(self, shape: ir.Shape) -> tuple[int, ...]:
        """A shape as numbers."""
        return tuple(elements.size(self.bound, n) for n in shape)

    def total(self, binder: ir.Binder) -> int:
        """How many ids there are: the rows of its table, or the members of its set."""
        return elements.extent(self.bound, binder.domain)

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
        free: dict[ir.Binder, None] = {}
        for child in node.children:
            free |= dict.fromkeys(self.freed[id(child)][1])
        bound: tuple[ir.Binder, ...] = ()
        if isinstance(node, ir.Reduce):
            bound = node.binders
            for binder in bound:
                for arg in getattr(binder.domain, "args", ()):
                    free |= dict.fromkeys(self.free(arg))
        elif isinstance(node, ir.Exists):
            bound = (node.binder,)
        elif isinstance(node, ir.LetRef):
            free |= {b: None for b in self.freed[id(node.let.body)][1] if b not in node.let.binders}
        return tuple(b for b in free if b not in bound)
