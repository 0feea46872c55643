"""A reformulation: an equivalent (or boundedly different) problem, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from fccomodel.core import ir

Point = dict[str, np.ndarray]
Recover = Callable[[Point], Point]
#: the value of an expression of constants, params and sizes; None where anything else enters
Constant = Callable[[ir.Expr], float | None]


def same(point: Point) -> Point:
    """The recovery of a reformulation that adds no variable."""
    return point


def unknown(node: ir.Expr) -> float | None:
    """Without data, the value of literals alone."""
    return node.value if isinstance(node, ir.Const) else None


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a reformulation adds, per place where it is applied.

    variables, blocks   of the problem, per member of the family it stands in (``blocks``: tracked
                        expectations)
    number              by which chains are ordered: the sum over a chain, the least first
    """

    variables: int = 0
    blocks: int = 0
    number: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Reformulation:
    """``apply(problem, constant) -> (problem, recover, sentences)``; no sentence means that it had
    nothing to do.

    role      ``equivalent``: the same problem;  ``smoothing``: at most lam C^2/2 away;
              ``penalty``: takes the constraints, each
              algorithm declares which;  ``epigraph``: the same problem with more constraints, for algorithms that take no kink;
              ``surrogate``: another problem, for the baselines that solve one
    order     in which reformulations of one cost are tried
    needs     what must hold for it to be what its role says
    removes   features (see ``_features``) that the problem has no longer       gives   those that
              it may have instead
    cost      what it adds                                                      cite    the source
              of its formula
    """

    name: str
    title: str = ""
    order: int
    formula: str
    apply: Callable[[ir.Problem, Constant], tuple[ir.Problem, Recover, list[str]]]
    removes: tuple[str, ...]
    gives: tuple[str, ...] = ()
    needs: str = ""
    role: str = "equivalent"
    cost: Cost = field(default_factory=Cost)
    cite: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or self.name)

    @property
    def account(self) -> str:
        """What it needs, removes, gives and adds, in one line."""
        adds = [
            f"{n} {what}{'s' * (n > 1)}"
            for n, what in ((self.cost.variables, "variable"), (self.cost.blocks, "block"))
            if n
        ]
        parts = [
            f"needs {self.needs}" if self.needs else "",
            f"removes {', '.join(self.removes)}",
            f"gives {', '.join(self.gives)}" if self.gives else "",
            f"adds {' and '.join(adds)} per member" if adds else "",
        ]
        return "; ".join(part for part in parts if part)


@dataclass(frozen=True, kw_only=True)
class Applied:
    """One reformulation of a chain, and what it did where, in words."""

    reformulation: Reformulation
    sentences: tuple[str, ...]
    recover: Recover


@dataclass(frozen=True, kw_only=True)
class Chain:
    """What a sequence of reformulations did."""

    problem: ir.Problem
    steps: tuple[Applied, ...] = ()

    @property
    def cost(self) -> float:
        return sum(step.reformulation.cost.number for step in self.steps)

    def then(self, after: Chain) -> Chain:
        """Both, one after the other."""
        return Chain(problem=after.problem, steps=(*self.steps, *after.steps))

    def recover(self, point: Mapping[str, np.ndarray]) -> Point:
        """A point of the reformulated problem, as a point of the original."""
        result = dict(point)
        for step in reversed(self.steps):
            result = step.recover(result)
        return result
