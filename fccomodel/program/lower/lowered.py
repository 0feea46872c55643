"""A plan on its way to a program: every value that its functions compute."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.normal_form import NormalForm
from fccomodel.normal_form.smoothing import Smoothed
from fccomodel.plan import Plan
from fccomodel.program.lower.records import Shares
from fccomodel.program.lower.state import State
from fccomodel.program.lower.vector import Component
from fccomodel.program.operations import Axis, Event, Pull, Val

#: where each variable lies in the flat vector w: start, stop, shape
Layout = Mapping[str, tuple[int, int, Event]]
#: kind and values of every constraint, by its label
Constraints = Mapping[str, tuple[str, Val]]


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockSteps:
    """The objective by minibatches, expectations under nonlinear functions estimated block by block.

    pulls    contributions to the variables' gradients
    before   minibatch values at the previous iterate, by the id of the estimate that asks for them
    """

    state: State
    root: Val
    pulls: list[Pull]
    before: Mapping[int, Val]

    @property
    def roots(self) -> list[Val]:
        """All that a step prints: adjoints and what they meet, and the values before."""
        met = [
            v for pull in self.pulls for v in (pull.adjoint, pull.source, *pull.source.op.pulled(pull.source))
        ]
        return [*met, *self.before.values()]


@dataclass(frozen=True, eq=False, kw_only=True)
class VectorSteps:
    """The objective as phi(F(w)), in three graphs.

    samples   F by minibatch, a value for each of its components
    values    the same exactly, in the graph of ``full``
    root      phi of a vector u that stands for F, in the graph of ``phi``
    part      the same by samples of its outer functions, in the graph of ``state``; None where
              steps have all of them
    """

    state: State
    samples: list[Val]
    full: State
    values: list[Val]
    phi: State
    root: Val
    components: list[Component]
    part: Val | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Block:
    """A smoothed function in a full pass: the ids of its cells, its argument there, and the axes of a
    maximum."""

    smoothed: Smoothed
    ids: list[Val]
    argument: Val
    over: tuple[Axis, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Exact:
    """The problem itself on all rows: its objective, minimised, its constraints, the smoothed
    functions whose centres move."""

    state: State
    objective: Val
    constraints: Constraints
    blocks: list[Block]


@dataclass(frozen=True, eq=False, kw_only=True)
class Whole:
    """The smoothed problem on all rows, for autograd.

    blocks      the functions inside expectations that have centres there, in the graph of the exact problem
    inside      the shapes of these centres
    affordable  whether hundreds of passes over all rows fit the budget
    """

    state: State
    root: Val
    blocks: list[Block]
    inside: Mapping[str, tuple[int, ...]]
    affordable: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Constrained:
    """The constraints on all rows, for autograd."""

    state: State
    constraints: Constraints


@dataclass(frozen=True, eq=False, kw_only=True)
class LoweredSteps(ABC):
    """The steps of a plan on bound data as graphs of values.

    layout  the place of each variable in the flat vector w
    steps   a minibatch of the normal form
    shares  what each rank has of a step, in a program of several
    """

    problem: ir.Problem
    bound: Bound
    plan: Plan
    layout: Layout
    steps: BlockSteps | VectorSteps
    shares: Shares | None = None

    @property
    def normal(self) -> NormalForm:
        """The plan's normal form."""
        return self.plan.normal

    @property
    def data(self) -> Mapping[str, np.ndarray]:
        """The arrays that the program needs, by key: those of all passes."""
        return self.steps.state.data

    @property
    @abstractmethod
    def centred(self) -> list[Smoothed]:
        """The smoothed functions whose centres move."""

    @property
    def inequalities(self) -> tuple[str, ...]:
        """The centres that are multipliers of inequalities, moved by the steps."""
        return tuple(s.name for s in self.centred if self.steps.state.dual and s.ends)

    @property
    def estimated(self) -> tuple[str, ...]:
        """The centres of penalties whose arguments are estimated in steps."""
        if self.steps.state.dual:
            return ()
        return tuple(s.name for s in self.centred if s.penalty is not None)


@dataclass(frozen=True, eq=False, kw_only=True)
class Lowered(LoweredSteps):
    """A plan on bound data as graphs of values, one for each kind of pass.

    exact        the problem itself
    whole        what a finish minimises, if the plan has one and such a pass can be had
    constrained  what a restoration goes by, if the plan may come to one
    """

    exact: Exact
    whole: Whole | None
    constrained: Constrained | None

    @property
    def centred(self) -> list[Smoothed]:
        """The smoothed functions whose centres move: those of the exact problem."""
        return [block.smoothed for block in self.exact.blocks]
