"""The best point of a training run's looks: by a watched quantity on validation rows, else by its merit."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from fccomodel.evaluation.values import Level
from fccomodel.execution.training.criterion import Criterion
from fccomodel.execution.training.looks import BothLooks, LookPoint
from fccomodel.execution.training.recipe import Recipe

#: the weight of violations among looks is at least this part of the penalty's ...
PENALTY_SHARE = 0.1
#: ... and so many times the largest multiplier
TIMES_MULTIPLIER = 2.0
#: a gain of the watched quantity below this part of it is none
LEAST_GAIN = 1e-4


#: The attributes, beside the best point, from which a later run goes on ...
CARRIED = ("history", "since_gain", "merit")
#: ... and those of its looks.
CARRIED_OF_LOOKS = ("watched", "unseen")


class BestPoint:
    """The best of the points looked at, and how it came about.

    best        the best point so far, or None
    history     an entry for each look, as ``Solution.history`` has them
    since_gain  looks since the last gain
    merit       the merit at the last look
    """

    def __init__(self, looks: BothLooks, recipe: Recipe, criterion: Criterion):
        self.looks, self.recipe, self.criterion, self.validation = looks, recipe, criterion, recipe.validation
        self.best: LookPoint | None = None
        self.history: list[dict[str, Any]] = []
        self.since_gain = 0
        self.merit = math.inf
        self.began = time.perf_counter()

    def state(self) -> dict[str, Any]:
        """The best point and the counts of looks, from which a later run goes on."""
        best: dict[str, Any] | None = None
        if self.best is not None:
            point = self.best
            best = {"state": dict(point.state), "level": dict(vars(point.level)), "watched": point.watched}
        own = {name: getattr(self, name) for name in CARRIED}
        return {"best": best, **own, **{name: getattr(self.looks, name) for name in CARRIED_OF_LOOKS}}

    def take_over(self, state: dict[str, Any]) -> None:
        """Sets the looks to what ``state`` gave."""
        best = state["best"]
        if best is not None:
            self.best = LookPoint(state=best["state"], level=Level(**best["level"]), watched=best["watched"])
        for name in CARRIED:
            setattr(self, name, state[name])
        for name in CARRIED_OF_LOOKS:
            setattr(self.looks, name, state[name])

    @property
    def found(self) -> bool:
        """Whether some point has finite values."""
        return self.best is not None and math.isfinite(self.looks.solved_on.merit(self.best.level, 1.0))

    def compare(self, new: LookPoint, steps: int) -> None:
        """Keep the new point if it is better than the best one, and count looks without a gain."""
        weight = self._weight()
        self.merit = self.looks.solved_on.merit(new.level, weight)
        if self._better(new, weight):
            self.best, self.since_gain = new, 0
        elif math.isfinite(self.merit):
            self.since_gain += 1
        assert self.best is not None
        self.history.append(
            {
                "stage": len(self.history) + 1,
                "iteration": steps,
                "objective": new.level.objective,
                "violation": new.level.violation,
                "best": self.best.level.objective,
                "best_violation": self.best.level.violation,
                "merit": self.looks.solved_on.merit(self.best.level, weight),
                "oracles": float(steps * self.recipe.batch),
                "seconds": time.perf_counter() - self.began,
                **({} if new.watched is None else {"validation": new.watched}),
            }
        )

    def patience_over(self) -> str:
        """Why the run ends if the watched quantity has not gained for too many looks; else ""."""
        validation = self.validation
        if validation is None or validation.patience is None or self.since_gain < validation.patience:
            return ""
        return f"no gain of `{validation.watch.name}` on the validation rows in {self.since_gain} looks"

    @property
    def metric(self) -> float:
        """The number that a schedule is told of the last look; it falls if the point is better."""
        watched = self.looks.watched
        if watched is None:
            return self.merit
        if self.validation is not None and self.validation.watch.maximize:
            return -watched
        return watched

    def _better(self, new: LookPoint, weight: float) -> bool:
        """Whether a point is better than the best: by the watched quantity, else by its merit."""
        old = self.best
        if old is None:
            return True
        if self.validation is None or new.watched is None or old.watched is None:
            merit = self.looks.solved_on.merit
            return merit(new.level, weight) < merit(old.level, weight)
        if not math.isfinite(new.watched):
            return False
        gain = new.watched - old.watched
        if not self.validation.watch.maximize:
            gain = -gain
        return not math.isfinite(old.watched) or gain > LEAST_GAIN * abs(old.watched)

    def _weight(self) -> float:
        """The weight of violations: as the penalty's, or by the multipliers."""
        multipliers = self.criterion.multipliers().values()
        largest = max((float(np.max(np.nan_to_num(value))) for value in multipliers), default=0.0)
        rho = float(getattr(self.criterion.settings, "rho", 0.0))
        return max(PENALTY_SHARE * rho, TIMES_MULTIPLIER * largest)
