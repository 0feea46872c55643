"""A lowered plan: every value that the functions of its program compute."""

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
from fccomodel.program.lower.records import RankShares
from fccomodel.program.lower.state import State
from fccomodel.program.lower.vector import Component
from fccomodel.program.operations import Axis, Event, Pull, Val

#: The place of each variable in the flat vector w: start, stop, shape.
Layout = Mapping[str, tuple[int, int, Event]]
#: Kind and values of every constraint, by its label.
Constraints = Mapping[str, tuple[str, Val]]


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockSteps:
    """Steps on minibatches, with estimates of the expectations under nonlinear functions.

    state    the graph and its state
    root     the objective
    pulls    contributions to the variables' gradients
    before   minibatch values at the previous iterate, by the id of the estimate that needs them
    """

    state: State
    root: Val
    pulls: list[Pull]
    before: Mapping[int, Val]

    @property
    def roots(self) -> list[Val]:
        """The values that a step computes: for the gradient, and at the previous iterate."""
        roots: list[Val] = []
        for pull in self.pulls:
            roots += [pull.adjoint, pull.source, *pull.source.op.pulled(pull.source)]
        return [*roots, *self.before.values()]


@dataclass(frozen=True, eq=False, kw_only=True)
class VectorSteps:
    """Steps for an objective phi(F(w)), in three graphs.

    state        the graph of a step
    samples      minibatch values of the components of F, in the graph of ``state``
    full         the graph of a full pass
    values       exact values of the components of F, in the graph of ``full``
    phi          the graph of phi
    root         phi(u) for a vector u in place of F, in the graph of ``phi``
    components   the components of F
    part         phi(u) from samples of its outer functions, in the graph of ``state``; None if a step
                 takes all outer functions
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
class SmoothedFunction:
    """A smoothed function in a full pass.

    smoothed   the function
    ids        the ids of its blocks
    argument   its argument in every block
    over       the axes of a maximum; empty for other functions
    """

    smoothed: Smoothed
    ids: list[Val]
    argument: Val
    over: tuple[Axis, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Exact:
    """The problem itself on all rows.

    state         the graph and its state
    objective     the minimised objective
    constraints   the constraints
    blocks        the smoothed functions with centres that move
    """

    state: State
    objective: Val
    constraints: Constraints
    blocks: list[SmoothedFunction]


@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothedProblem:
    """The smoothed problem on all rows, for autograd.

    state       the graph and its state
    root        the smoothed objective
    blocks      the functions inside expectations that have centres, in the graph of the exact problem
    inside      the shapes of these centres
    affordable  whether hundreds of passes over all rows fit into the budget
    """

    state: State
    root: Val
    blocks: list[SmoothedFunction]
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
    steps   steps on minibatches
    shares  the distribution of a step over ranks; None for a single rank
    """

    problem: ir.Problem
    bound: Bound
    plan: Plan
    layout: Layout
    steps: BlockSteps | VectorSteps
    shares: RankShares | None = None

    @property
    def normal(self) -> NormalForm:
        """The plan's normal form."""
        return self.plan.normal

    @property
    def data(self) -> Mapping[str, np.ndarray]:
        """The arrays that the program needs in any pass, by key."""
        return self.steps.state.data

    @property
    @abstractmethod
    def centred(self) -> list[Smoothed]:
        """The smoothed functions with centres that move."""

    @property
    def inequalities(self) -> tuple[str, ...]:
        """The names of centres that are multipliers of inequalities and are moved by the steps."""
        return tuple(s.name for s in self.centred if self.steps.state.dual and s.ends)

    @property
    def estimated(self) -> tuple[str, ...]:
        """The names of centres of penalties, if their arguments are estimated in steps."""
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
    whole: SmoothedProblem | None
    constrained: Constrained | None

    @property
    def centred(self) -> list[Smoothed]:
        """The smoothed functions whose centres move: those of the exact problem."""
        return [block.smoothed for block in self.exact.blocks]
