"""The state of lowering: the graph, the program's arrays, estimators, draws and names."""

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
from fccomodel.plan.sharing import SharedStrata
from fccomodel.program.graph import Graph
from fccomodel.program.lower.records import EstimatorState, Slot
from fccomodel.program.lower.thinning import Thinning
from fccomodel.program.names import reserved
from fccomodel.program.operations import Axis, Val
from fccomodel.program.operations.sources import cell, take

Env = Mapping[ir.Binder, Slot]
#: How a value enters the expectation around it: linearly (True), as the logarithm of a value that enters
#: linearly (``"log"``), or in another way (False).
Linear = bool | Literal["log"]


class Lower(Protocol):
    """Lowers an expression, with the slots of its binders in ``env``."""

    def __call__(self, node: ir.Expr, env: Env, linear: Linear = True) -> Val: ...


@dataclass(eq=False, kw_only=True)
class State:
    """The lowering of one problem into one graph.

    Settings:

    full            True for a pass over all rows, in slices if there are many pairs; False for a minibatch
    batch           function (binder, number of elements, inner) -> sample size, None for all elements
    sampling        kind of sampling of outer elements (an option of the plan)
    inner_sampling  kind of sampling of inner elements (an option of the plan)
    strata          rows that several expectations share in a step
    stable          whether expectations of exponentials are computed by their logarithms
    independent     whether gradients use inner samples of their own
    dual            whether outer functions have a dual variable y for each block, and no estimate u
    coupled         whether the worst of a family is computed by weights of its members, moved in each step
    separated       whether reductions over pairs of rows use their separated forms
    enveloped       whether a full pass has envelopes in place of non-smooth functions

    Results:

    graph     the values
    data      the arrays that the program needs, by key
    buffers   the estimates of blocks
    centres   the shapes of the centres of blocks
    draws     the samples of a step
    sampled   for some expectations (by the id of their value), the number of samples in a step
    spans     for each value, by its id, the expression that it is the value of
    thinning  sets of rows of which a quick evaluation takes a part

    While lowering:

    again     whether to draw new samples for an expectation that has samples already
    names     the names in use, with a count for each
    freed     the free binders of nodes that are known
    running   the letter of the names of estimates
    """

    bound: Bound
    full: bool
    batch: Callable[[ir.Binder, int, bool], int | None] = lambda binder, n, inner: None
    sampling: str = "epochs"
    inner_sampling: str = "shared"
    strata: Sequence[SharedStrata] = ()
    stable: bool = True
    independent: bool = False
    dual: bool = False
    coupled: bool = False
    separated: bool = True
    enveloped: bool = False
    graph: Graph = field(default_factory=Graph)
    data: dict[str, np.ndarray] = field(default_factory=dict)
    buffers: dict[tuple, EstimatorState] = field(default_factory=dict)
    centres: dict[str, tuple[int, ...]] = field(default_factory=dict)
    draws: list[Val] = field(default_factory=list)
    sampled: dict[int, int] = field(default_factory=dict)
    spans: dict[int, ir.Expr] = field(default_factory=dict)
    thinning: Thinning = field(default_factory=Thinning)
    again: bool = False
    names: dict[str, int] = field(default_factory=lambda: dict.fromkeys(reserved(), 1))
    freed: dict[int, tuple[ir.Expr, tuple[ir.Binder, ...]]] = field(default_factory=dict)
    running: str = "u"

    def __post_init__(self) -> None:
        self.logarithms = logarithms.of(self.bound)

    def refuse(self, error: Diagnostic) -> NoReturn:
        """Raises the error that this part of a model cannot be in a solver."""
        refuse(error, source=self.bound.problem.source)

    # -------------------------------------------------------------------------------- names, arrays
    def unique(self, stem: str) -> str:
        """A fresh Python name, free with ``r_`` before it too (a draw's uniform numbers)."""
        stem = _identifier(stem)
        while True:
            count = self.names.get(stem, 0) + 1
            self.names[stem] = count
            name = stem if count == 1 else f"{stem}_{count}"
            is_new = count == 1 or name not in self.names
            if is_new and f"r_{name}" not in self.names:
                self.names[f"r_{name}"] = 1
                if count > 1:
                    self.names[name] = 1
                return name

    def ship(self, key: str, array: np.ndarray) -> str:
        """Store an array that the program needs; returns its key.

        An equal array has a single key. No param that is a number has this key.
        """
        key = quoting.attribute(key if key.isidentifier() else _identifier(key))
        for count in itertools.count(1):
            name = key if count == 1 else f"{key}_{count}"
            if name in self.numbers:
                continue
            stored = self.data.setdefault(name, array)
            if stored is array or same_rows(stored, array):
                return name
            if drawn(stored) or drawn(array):
                continue
            if stored.shape == array.shape and stored.dtype == array.dtype and np.array_equal(stored, array):
                return name
        raise AssertionError

    @functools.cached_property
    def numbers(self) -> dict[str, float]:
        """The params that are numbers, by their names in the program."""
        numbers = {}
        for name, value in self.bound.params.items():
            if np.ndim(value) == 0:
                numbers[quoting.attribute(name)] = float(value)
        return numbers

    def take(self, key: str, ids: Val, event: tuple[int, ...]) -> Val:
        """Rows ``ids`` of a data array."""
        return self.graph.make(take, [ids], key=key, event=event)

    def cells(self, key: str, array: np.ndarray, parents: list[Val]) -> Val:
        """The entry of a table at the ids of some parents."""
        return self.graph.make(cell, parents, key=self.ship(key, np.asarray(array)))

    # ------------------------------------------------------------------------------- sizes, binders
    def shape(self, shape: ir.Shape) -> tuple[int, ...]:
        """A shape as numbers."""
        return tuple(elements.size(self.bound, n) for n in shape)

    def axis(self, binder: ir.Binder, size: int, kind: str, elements: str = "") -> Axis:
        """A new axis for elements of a binder, which are those of a set if ``elements`` names one."""
        return self.graph.axis(self.unique(binder.name), size, kind, elements)

    def total(self, binder: ir.Binder) -> int:
        """The number of ids of a binder: the rows of its table, or the members of its set."""
        return elements.extent(self.bound, binder.domain)

    def free(self, node: ir.Expr) -> tuple[ir.Binder, ...]:
        """The binders that a node depends on. They are computed for all nodes below it at once."""
        if id(node) not in self.freed:
            for part in ir.walk(node):
                if id(part) not in self.freed:
                    self.freed[id(part)] = (part, self._free(part))
        return self.freed[id(node)][1]

    def _free(self, node: ir.Expr) -> tuple[ir.Binder, ...]:
        """The binders that a node depends on, if those of the nodes below are known."""
        if isinstance(node, ir.Column | ir.Element):
            return (node.binder,)
        free: dict[ir.Binder, None] = {}  # a set in the order of insertion
        for child in node.children:
            free |= dict.fromkeys(self.freed[id(child)][1])
        own: tuple[ir.Binder, ...] = ()
        if isinstance(node, ir.Reduce):
            own = node.binders
            for binder in own:
                for arg in getattr(binder.domain, "args", ()):
                    free |= dict.fromkeys(self.free(arg))
        elif isinstance(node, ir.Exists):
            own = (node.binder,)
        elif isinstance(node, ir.LetRef):
            for binder in self.freed[id(node.let.body)][1]:
                if binder not in node.let.binders:
                    free[binder] = None
        return tuple(binder for binder in free if binder not in own)


def _identifier(text: str) -> str:
    """A Python name made of a text: an index may be called ``i + 1``."""
    name = "".join(c if c.isalnum() else "_" for c in text).strip("_")
    if name.isidentifier():
        return name
    return f"v{name}"
