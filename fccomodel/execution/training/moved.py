"""What the steps of a training run change: nets, variables, their optimizer, its schedule, the average.

One record has them all, so that a step, a look at an earlier point and a checkpoint each ask one place.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.optim.swa_utils import AveragedModel

from fccomodel.core.diagnostics import refuse
from fccomodel.data.bound import Bound
from fccomodel.data.nets import IN_TRAIN_MODE
from fccomodel.execution.training.criterion import Criterion
from fccomodel.execution.training.errors import optimizer as errors
from fccomodel.execution.training.looks import LookPoint, Modules
from fccomodel.execution.training.recipe import Parameters, Recipe
from fccomodel.plan import Plan


class Live(torch.nn.Module):
    """Nets and other variables as one module."""

    def __init__(self, modules: Modules, variables: torch.nn.ParameterDict):
        super().__init__()
        self.names = list(modules)
        self.nets = torch.nn.ModuleList(modules.values())
        self.variables = variables

    @property
    def modules_by_name(self) -> dict[str, torch.nn.Module]:
        """The nets by name."""
        return dict(zip(self.names, self.nets, strict=True))


class Moved:
    """The nets and variables of a run, and what moves them.

    modules    copies of the bound nets by name, in the modes in which they were bound
    variables  the other variables: parameters of the criterion
    live       both as one module
    average    the average of the live weights that looks take, or None
    """

    def __init__(
        self,
        bound: Bound,
        plan: Plan,
        recipe: Recipe,
        criterion: Criterion,
        device: torch.device,
        dtype: torch.dtype,
    ):
        self.modules = {name: copied(bound.nets[name], device, dtype) for name in _trained(bound, criterion)}
        self.variables = criterion.variables
        _set_to_start(self.modules, self.variables, bound, plan)
        self.live = Live(self.modules, self.variables)
        self.parameters = Parameters(self._named())
        self.clip = recipe.clip
        self.optimizer = _optimizer(recipe, self.parameters)
        self.scheduler = recipe.scheduler(self.optimizer) if recipe.scheduler is not None else None
        self.average = None
        if recipe.ema is not None:
            self.average = AveragedModel(self.live, avg_fn=_warmed(recipe.ema))

    def _named(self) -> dict[str, torch.nn.Parameter]:
        """All parameters by name."""
        nets = {f"{n}.{name}": p for n, net in self.modules.items() for name, p in net.named_parameters()}
        return {**nets, **{name: value for name, value in self.variables.items()}}

    # ------------------------------------------------------------------------------------------ steps
    def step(self, loss: torch.Tensor, after: Callable[[], None]) -> None:
        """Moves all parameters along the gradient of a loss; ``after`` the optimizer's step the criterion
        takes its own."""
        self.optimizer.zero_grad()
        loss.backward()
        if self.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.clip)
        self.optimizer.step()
        after()
        if self.average is not None:
            self.average.update_parameters(self.live)
        if self.scheduler is not None and not _takes_metric(self.scheduler):
            self.scheduler.step()

    def after_a_look(self, metric: float) -> None:
        """Tells a schedule the metric of a look, if it takes one."""
        if self.scheduler is not None and _takes_metric(self.scheduler):
            self.scheduler.step(metric)

    # ---------------------------------------------------------------------------------------- weights
    @property
    def averaged(self) -> bool:
        """Whether there is an average of some steps."""
        return self.average is not None and bool(int(self.average.n_averaged))

    def weights(self, *, averaged: bool = True) -> tuple[dict[str, torch.nn.Module], Any]:
        """The nets and variables: their average, if it is asked for and there is one."""
        live: torch.nn.Module = self.live
        if averaged and self.average is not None and self.averaged:
            live = self.average.module
        assert isinstance(live, Live)
        return live.modules_by_name, live.variables

    def at(self, point: LookPoint) -> tuple[dict[str, torch.nn.Module], dict[str, torch.Tensor]]:
        """Nets and variables with the weights of a point."""
        modules = {}
        for name, net in self.modules.items():
            modules[name], begin = copy.deepcopy(net), f"net_{name}."
            state = {k.removeprefix(begin): v for k, v in point.state.items() if k.startswith(begin)}
            modules[name].load_state_dict(state)
        return modules, {name: point.state[f"variable_{name}"] for name in self.variables}


def _set_to_start(modules: Modules, variables: Any, bound: Bound, plan: Plan) -> None:
    """Sets nets and variables to their values at the plan's start, if it has one."""
    start = plan.start.values if plan.start is not None else {}
    for name, variable in bound.problem.variables.items():
        if name not in start:
            continue
        value = torch.from_numpy(np.array(start[name], dtype=np.float64))
        with torch.no_grad():
            if variable.net is not None and variable.net in modules:
                _fill(modules[variable.net], value)
            elif name in variables:
                variables[name].copy_(value.reshape(variables[name].shape))


def _optimizer(recipe: Recipe, parameters: Parameters) -> torch.optim.Optimizer:
    """The optimizer of the parameters. Raises F0805 if it is none, or is of others."""
    optimizer = recipe.optimizer(parameters)
    if not isinstance(optimizer, torch.optim.Optimizer):
        refuse(errors.not_an_optimizer(optimizer))
    if isinstance(optimizer, torch.optim.LBFGS):
        refuse(errors.needs_closure(optimizer))
    known = set(map(id, parameters))
    if any(id(p) not in known for group in optimizer.param_groups for p in group["params"]):
        refuse(errors.other_parameters())
    return optimizer


def _trained(bound: Bound, criterion: Criterion) -> list[str]:
    """The nets that have weights; those whose scores the criterion takes come first."""
    with_weights = [one.net for one in bound.problem.variables.values() if one.net is not None]
    return list(dict.fromkeys([*(name for name in criterion.inputs if name in with_weights), *with_weights]))


def copied(net: torch.nn.Module, device: torch.device, dtype: torch.dtype) -> torch.nn.Module:
    """A copy of a bound net for steps, in the mode in which it was bound."""
    net = copy.deepcopy(net)
    random = bool(vars(net).pop(IN_TRAIN_MODE, ()))
    return net.to(device, dtype).train(random)


def _fill(module: torch.nn.Module, vector: torch.Tensor) -> None:
    """Sets the parameters of a net from one vector."""
    start = 0
    for parameter in module.parameters():
        part = vector[start : start + parameter.numel()]
        parameter.copy_(part.reshape(parameter.shape))
        start += parameter.numel()


def _warmed(decay: float) -> Callable[..., torch.Tensor]:
    """The step of an average whose decay grows to ``decay`` as (1 + t) / (10 + t)."""

    def averaged(old: torch.Tensor, new: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        """The average after one more step."""
        t = float(count)
        return torch.lerp(new, old, min(decay, (1.0 + t) / (10.0 + t)))

    return averaged


def _takes_metric(scheduler: Any) -> bool:
    """Whether a schedule is told a metric at each look."""
    return isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
