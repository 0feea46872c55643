"""The state that a training run leaves, from which another run continues to the same numbers."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from fccomodel.core.diagnostics import refuse
from fccomodel.execution.training.batches import RowBatches
from fccomodel.execution.training.criterion import Criterion
from fccomodel.execution.training.errors import optimizer as errors
from fccomodel.execution.training.looks import LookPoint
from fccomodel.execution.training.moved import Moved


@dataclass(frozen=True, eq=False, kw_only=True)
class Carried:
    """All that a run ended with, for another that goes on from it.

    optimizer  name of the optimizer's class
    states     of the live weights, the optimizer, the schedule, the average, the criterion, the batches
    best       the best point
    randomness of torch
    steps      of this run and those before it
    """

    optimizer: str
    states: Mapping[str, Any]
    best: LookPoint | None
    randomness: torch.Tensor
    steps: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Running:
    """The parts of a run that have a state."""

    moved: Moved
    criterion: Criterion
    batches: RowBatches

    def states(self) -> dict[str, Any]:
        """The states of all parts, as they are."""
        moved = self.moved
        states: dict[str, Any] = {
            "live": moved.live.state_dict(),
            "optimizer": moved.optimizer.state_dict(),
            "criterion": self.criterion.state_dict(),
            "streams": self.batches.state_dict(),
        }
        if moved.scheduler is not None:
            states["scheduler"] = moved.scheduler.state_dict()
        if moved.average is not None:
            states["average"] = moved.average.state_dict()
        return states

    def carried(self, best: LookPoint, randomness: torch.Tensor, steps: int) -> Carried:
        """The end of the run."""
        return Carried(
            optimizer=type(self.moved.optimizer).__qualname__,
            states=copy.deepcopy(self.states()),
            best=best,
            randomness=randomness,
            steps=steps,
        )

    def fits(self, carried: Carried) -> bool:
        """Whether another run was of the same model and algorithm on the same rows."""
        states = carried.states
        return _alike(self.moved.live, states["live"]) and _alike(self.criterion, states["criterion"])

    def go_on(self, carried: Carried) -> Iterator[str]:
        """Takes over the states of a run that fits; yields notes on what begins anew."""
        states, moved = carried.states, self.moved
        moved.live.load_state_dict(states["live"])
        self.criterion.load_state_dict(states["criterion"])
        self.batches.load_state_dict(states["streams"])
        torch.set_rng_state(carried.randomness)
        if type(moved.optimizer).__qualname__ == carried.optimizer:
            self._optimizer_goes_on(states["optimizer"], scheduled="scheduler" in states)
        else:
            yield f"the start was found by {carried.optimizer}: the state of this optimizer begins anew"
        if moved.scheduler is not None and "scheduler" in states:
            moved.scheduler.load_state_dict(states["scheduler"])
        if moved.average is not None and "average" in states:
            moved.average.load_state_dict(states["average"])

    def _optimizer_goes_on(self, state: dict[str, Any], *, scheduled: bool) -> None:
        """Takes over the moments of an earlier run, and its rates if a schedule moved them and goes on."""
        state, optimizer = copy.deepcopy(state), self.moved.optimizer
        if not (scheduled and self.moved.scheduler is not None):
            groups = optimizer.state_dict()["param_groups"]
            if [len(g["params"]) for g in groups] == [len(g["params"]) for g in state["param_groups"]]:
                state["param_groups"] = groups
        try:
            optimizer.load_state_dict(state)
        except ValueError as error:
            refuse(errors.other_optimizer_state(error), source=self.criterion.bound.problem.source)


def _alike(module: torch.nn.Module, state: Mapping[str, Any]) -> bool:
    """Whether a state has the names and shapes of a module's own."""
    own = module.state_dict()
    shapes = [{k: v.shape for k, v in one.items() if isinstance(v, torch.Tensor)} for one in (own, state)]
    return shapes[0] == shapes[1]
