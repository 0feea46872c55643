"""Looks of a training run: the problem as written at live nets, in evaluation mode, without gradients."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from fccomodel.core.diagnostics import FccoError
from fccomodel.core.work import priced
from fccomodel.data import net_costs, subsets
from fccomodel.data.bound import Bound
from fccomodel.data.nets import IN_TRAIN_MODE
from fccomodel.evaluation import memory, values
from fccomodel.evaluation.net_outputs import Outputs
from fccomodel.evaluation.values import Level
from fccomodel.execution.training.recipe import VIOLATION, StoppingQuantity, Validation

#: rows of a table that a look has at least, where it takes a sample
LEAST_ROWS = 512
#: share of the rows from which on a look takes all of them: a sample would save little
NEARLY_ALL = 0.5
#: rows on which a look is priced first
PRICED_ROWS = 512
#: a look takes at most this many times the rows on which it was priced; else it is priced on so many
#: times more of them, since work on pairs grows faster than the number of rows
PRICED_TIMES = 2

Modules = Mapping[str, torch.nn.Module]


@dataclass(frozen=True, eq=False, kw_only=True)
class LookPoint:
    """Weights of all nets and variables at a look, and the values there; ``watched`` on validation rows."""

    state: Mapping[str, torch.Tensor]
    level: Level
    watched: float | None = None


def evaluated(modules: Modules) -> dict[str, torch.nn.Module]:
    """Copies of nets on the host, in evaluation mode."""
    copies = {name: copy.deepcopy(net).cpu().eval() for name, net in modules.items()}
    for net in copies.values():
        vars(net).pop(IN_TRAIN_MODE, None)
    return copies


def with_nets(bound: Bound, modules: Modules) -> Bound:
    """The problem with these nets in place of its own; the data's memory is shared."""
    part = net_costs.part_of(replace(bound, nets={**bound.nets, **modules}), bound)
    return memory.akin(part, bound)


def point(bound: Bound, modules: Modules, variables: Mapping[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """The values of all variables: a net's parameters as one vector, others as they are."""
    values, nets = {}, {**bound.nets, **modules}
    for name, variable in bound.problem.variables.items():
        if variable.net is not None:
            parts = [p.detach().reshape(-1) for p in nets[variable.net].parameters()]
            values[name] = torch.cat(parts).double().cpu().numpy()
        else:
            values[name] = variables[name].detach().double().cpu().numpy()
    return values


class Looks:
    """Values of a problem at live nets, over all its rows or a sample of them.

    bound  the problem on the rows that a look takes
    cost   counted seconds of a look
    share  of all rows in a look
    """

    def __init__(self, bound: Bound, seed: int, *, watch: StoppingQuantity | None = None):
        self.bound, self.seed, self.watch = bound, seed, watch
        self.cost, self.share = 0.0, 1.0
        self.outputs = Outputs()
        self.kinds = {constraint.label: constraint.kind for constraint in bound.problem.constraints}

    def afford(self, seconds: float, modules: Modules, variables: Mapping[str, torch.Tensor]) -> None:
        """Let a look take at most this many counted seconds: on fewer rows if all take more, but on no
        fewer than ``LEAST_ROWS`` of a table."""
        most = max((table.n for table in self.bound.tables.values()), default=0)
        few = min(1.0, PRICED_ROWS / max(most, 1))
        self.cost = self._priced(few, modules, variables)
        while few < 1.0 and PRICED_TIMES * few * self.cost < seconds < math.inf:
            few = min(1.0, PRICED_TIMES * few)
            self.cost = self._priced(few, modules, variables)
        share = seconds / max(self.cost, 1e-12)
        self.share = max(share, LEAST_ROWS / max(most, 1))
        if self.share >= NEARLY_ALL:
            self.share = 1.0
        self.bound = self._part(self.share)
        self.cost *= self.share

    def _priced(self, share: float, modules: Modules, variables: Mapping[str, torch.Tensor]) -> float:
        """Counted seconds of a look at all rows, from one at a share of them."""
        return priced(partial(self.on, self._part(share), modules, variables))[1] / share

    def _part(self, share: float) -> Bound:
        """The problem on a random share of each stratum of its rows; on all if they cannot be thinned."""
        if share >= 1.0:
            return self.bound
        try:
            kinds = subsets.kinds(self.bound)
        except FccoError:
            return self.bound
        thin = subsets.part(self.bound, subsets.held(self.bound, share, self.seed, kinds))
        return net_costs.part_of(thin, self.bound)

    def at(self, modules: Modules, variables: Mapping[str, torch.Tensor]) -> Level:
        """Objective, constraints and the largest violation at these weights."""
        return self.on(self.bound, modules, variables)

    def on(self, bound: Bound, modules: Modules, variables: Mapping[str, torch.Tensor]) -> Level:
        """``at`` on other rows."""
        nets = evaluated(modules)
        with self.outputs.used():
            return values.level(with_nets(bound, nets), point(bound, nets, variables), seed=self.seed)

    def watched(self, modules: Modules, variables: Mapping[str, torch.Tensor]) -> float:
        """The watched quantity at these weights."""
        assert self.watch is not None
        name, nets = self.watch.name, evaluated(modules)
        bound, there = with_nets(self.bound, nets), point(self.bound, nets, variables)
        if name in bound.problem.lets and name not in self.kinds:
            lets = values.lets(bound.problem, [name])
            return float(np.max(_flat(values.values(bound, there, lets, seed=self.seed)[name])))
        level = values.level(bound, there, seed=self.seed)
        if name == "objective":
            return level.objective
        if name == VIOLATION:
            return level.violation
        return max(value for label, value in level.constraints.items() if label.partition("[")[0] == name)

    def merit(self, level: Level, weight: float) -> float:
        """The minimised objective, and ``weight`` times the sum of all violations; infinite if it is not
        a number."""
        sign = -1.0 if self.bound.problem.objective.sense == "maximize" else 1.0
        violations = 0.0
        for label, value in level.constraints.items():
            if self.kinds[label.partition("[")[0]] == "eq":
                violations += abs(value)
            else:
                violations += max(value, 0.0)
        merit = sign * level.objective + weight * violations
        return merit if math.isfinite(merit) else math.inf


class BothLooks:
    """Looks at the rows solved on, and at those of validation if there are any.

    solved_on   looks at the rows solved on
    validation  looks at the validation rows, or None
    watched     the watched quantity at the last look, or None
    unseen      why values at a point could not be computed, or ""
    """

    def __init__(self, bound: Bound, validation: Validation | None, seed: int):
        self.solved_on = Looks(bound, seed)
        self.validation: Looks | None = None
        if validation is not None:
            self.validation = Looks(validation.bound, seed, watch=validation.watch)
        self.watched: float | None = None
        self.unseen = ""

    @property
    def kinds(self) -> list[Looks]:
        """Both kinds of looks, or the only one."""
        return [looks for looks in (self.solved_on, self.validation) if looks is not None]

    def point(self, modules: Modules, variables: Any) -> LookPoint:
        """A look at nets and variables; a value that cannot be computed is not a number."""
        try:
            level = self.solved_on.at(modules, variables)
            if self.validation is not None:
                self.watched = self.validation.watched(modules, variables)
        except FccoError as error:
            self.unseen, level, self.watched = str(error), Level(objective=math.nan), None
        state: dict[str, torch.Tensor] = {}
        for name, net in modules.items():
            state |= {f"net_{name}.{key}": value for key, value in net.state_dict().items()}
        state |= {f"variable_{name}": value for name, value in variables.items()}
        state = {name: value.detach().cpu().clone() for name, value in state.items()}
        return LookPoint(state=state, level=level, watched=self.watched)


def _flat(value: object) -> np.ndarray:
    """The numbers of a let: one, nested lists, or by member."""
    if isinstance(value, Mapping):
        return np.concatenate([_flat(part) for part in value.values()])
    return np.asarray(value, dtype=np.float64).reshape(-1)
