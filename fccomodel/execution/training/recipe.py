"""The user's choices for training: an optimizer, its schedule, a callback, validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data.bound import Bound
from fccomodel.evaluation.values import Level
from fccomodel.execution.training.errors import optimizer as errors

#: learning rate of Adam, where nobody gives an optimizer
LEARNING_RATE = 1e-3
#: rows of a batch, where nobody says
BATCH = 64
#: steps from one call of the callback to the next, where nobody says
EVERY = 100
#: what may be watched beside the objective and constraints: the largest violation
VIOLATION = "violation"


class Parameters(list[torch.nn.Parameter]):
    """All parameters of a run; ``named`` has them by name, as ``s.0.weight`` for the net ``s``."""

    def __init__(self, named: Mapping[str, torch.nn.Parameter]):
        super().__init__(named.values())
        self.named = dict(named)


def adam(parameters: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
    """The default optimizer of a training run."""
    return torch.optim.Adam(parameters, lr=LEARNING_RATE)


@dataclass(frozen=True, kw_only=True)
class StoppingQuantity:
    """The quantity of the validation rows that early stopping looks at, and whether more of it is
    better.

    name  ``objective``, ``violation``, the label of a constraint, or the name of a ``let``
    """

    name: str = "objective"
    maximize: bool = False

    @classmethod
    def of(cls, text: str | None, problem: ir.Problem) -> StoppingQuantity:
        """``objective``, ``maximize auc`` or ``minimize loss``: a quantity, with its sense where it is a
        ``let``. Raises F0826 for other texts."""
        sense, _, name = (text or "objective").strip().rpartition(" ")
        senses = ("maximize", "minimize")
        labels = {constraint.label for constraint in problem.constraints}
        own = problem.objective.label or "objective"
        if name in ("objective", own) and not sense:
            return cls(name="objective", maximize=problem.objective.sense == "maximize")
        if (name == VIOLATION or name in labels) and not sense:
            return cls(name=name)
        if name in problem.lets and sense in senses:
            return cls(name=name, maximize=sense == "maximize")
        refuse(errors.not_watched(text or "", [*labels], [*problem.lets]), source=problem.source)


@dataclass(frozen=True, eq=False, kw_only=True)
class Validation:
    """Rows that are not trained on, the quantity watched there, and after how many looks without a gain
    the run ends (None: never)."""

    bound: Bound
    watch: StoppingQuantity
    patience: int | None = None


@dataclass(eq=False, kw_only=True)
class State:
    """The state of a run, as a callback sees it.

    modules     the live nets by name; ``optimizer`` and ``criterion`` are the run's own
    step        steps so far, those of the runs before that this one goes on from among them
    seconds     since this run began
    values      running values: ``objective``, ``constraints``, ``multipliers``, ``violation``
    best        the values of the best point so far, on the rows solved on
    validation  the watched quantity at the last look, which may be some steps ago; None without
                validation
    look        a function: objective, constraints and violation on all rows (or the sample that looks
                take) at these weights, in evaluation mode
    """

    modules: Mapping[str, torch.nn.Module]
    optimizer: torch.optim.Optimizer
    criterion: torch.nn.Module
    step: int
    seconds: float
    values: Mapping[str, Any]
    best: Level | None
    validation: float | None
    look: Callable[[], Level]


@dataclass(frozen=True, eq=False, kw_only=True)
class Recipe:
    """The settings by which a run takes its steps.

    optimizer   makes an optimizer of ``Parameters``
    scheduler   makes a schedule of the optimizer: its ``step()`` follows every step; a schedule that
                takes a metric (``ReduceLROnPlateau``) has it at every look
    clip        the largest norm of the gradient of all parameters together
    ema         decay of an average of the weights, which looks and the answer then take: the decay of
                the first steps is smaller, (1 + t) / (10 + t)
    callback    called with a ``State`` every ``every`` steps; the run ends if it returns False
    look_every  steps between two looks; None leaves it to their price
    batch       rows of a step
    validation  what early stopping looks at
    """

    optimizer: Callable[[Parameters], torch.optim.Optimizer] = adam
    scheduler: Callable[[torch.optim.Optimizer], Any] | None = None
    clip: float | None = None
    ema: float | None = None
    callback: Callable[[State], Any] | None = None
    every: int = EVERY
    look_every: int | None = None
    batch: int = BATCH
    validation: Validation | None = None
    given: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        """Raises F0826 for values that these settings do not take."""
        functions = {"optimizer": self.optimizer, "scheduler": self.scheduler, "callback": self.callback}
        for name, function in functions.items():
            if function is not None and not callable(function):
                refuse(errors.not_a_function(name, function))
        if self.clip is not None and not (_number(self.clip) and self.clip > 0):
            refuse(errors.recipe_value("clip", self.clip, "a positive number"))
        if self.ema is not None and not (_number(self.ema) and 0 < self.ema < 1):
            refuse(errors.recipe_value("ema", self.ema, "a number between 0 and 1, such as 0.999"))
        counts = {"every": self.every, "batch": self.batch, "look_every": self.look_every}
        for name, value in counts.items():
            if value is not None and not _whole(value):
                refuse(errors.recipe_value(name, value, "a positive whole number"))
        if self.validation is not None and self.validation.patience is not None:
            if not _whole(self.validation.patience):
                refuse(errors.recipe_value("patience", self.validation.patience, "a positive whole number"))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
