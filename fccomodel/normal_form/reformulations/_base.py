"""The record of a reformulation: an equivalent or boundedly different problem, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from fccomodel.core import ir

Point = dict[str, np.ndarray]
Recover = Callable[[Point], Point]
#: gives the value of an expression of constants, params and sizes; None for any other
Constant = Callable[[ir.Expr], float | None]


def same(point: Point) -> Point:
    """The recovery of a reformulation that adds no variable."""
    return point


def unknown(node: ir.Expr) -> float | None:
    """The value of a literal, or None: the ``Constant`` without data."""
    if isinstance(node, ir.Const):
        return node.value
    return None


@dataclass(frozen=True, kw_only=True)
class Additions:
    """The variables and terms that a reformulation adds for each place where it is applied.

    variables   variables per member of the family around the place
    blocks      tracked expectations per member of that family
    number      cost by which chains are compared: they are ordered by its sum
    """

    variables: int = 0
    blocks: int = 0
    number: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Reformulation:
    """``apply(problem, constant) -> (problem, recover, sentences)``; no sentence: nothing was to do.

    role      one of
              ``equivalent``: the same problem
              ``smoothing``: its value is at most lam C^2/2 away
              ``penalty``: constraints become penalties; each algorithm declares which
              ``epigraph``: the same problem with more constraints, for algorithms that take no kink
              ``surrogate``: another problem, for the baselines that solve one
    order     rank among reformulations of equal cost
    needs     the condition under which its role holds
    removes   features (see ``_features``) that the problem no longer has
    gives     features that it may have instead
    cost      what it adds
    cite      the source of its formula
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
    cost: Additions = field(default_factory=Additions)
    cite: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or self.name)

    @property
    def account(self) -> str:
        """One line that says what it needs, removes, gives and adds."""
        counts = ((self.cost.variables, "variable"), (self.cost.blocks, "block"))
        adds = [f"{n} {noun}{'s' * (n > 1)}" for n, noun in counts if n]
        parts = []
        if self.needs:
            parts.append(f"needs {self.needs}")
        parts.append(f"removes {', '.join(self.removes)}")
        if self.gives:
            parts.append(f"gives {', '.join(self.gives)}")
        if adds:
            parts.append(f"adds {' and '.join(adds)} per member")
        return "; ".join(parts)


@dataclass(frozen=True, kw_only=True)
class AppliedReformulation:
    """One reformulation of a chain, with sentences about what it did and the way back."""

    reformulation: Reformulation
    sentences: tuple[str, ...]
    recover: Recover


@dataclass(frozen=True, kw_only=True)
class Chain:
    """A sequence of reformulations and the problem that they give."""

    problem: ir.Problem
    steps: tuple[AppliedReformulation, ...] = ()

    @property
    def cost(self) -> float:
        """The sum of the costs of its reformulations."""
        return sum(step.reformulation.cost.number for step in self.steps)

    def then(self, after: Chain) -> Chain:
        """This chain, followed by another one."""
        return Chain(problem=after.problem, steps=(*self.steps, *after.steps))

    def recover(self, point: Mapping[str, np.ndarray]) -> Point:
        """The point of the original problem for a point of the reformulated one."""
        result = dict(point)
        for step in reversed(self.steps):
            result = step.recover(result)
        return result
