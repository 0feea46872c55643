"""The schedule of an algorithm's theorem: its hyper-parameters, how many steps it asks for, and what fewer steps are worth."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from math import exp, log

from fccomodel.algorithms import Algorithm, Constants
from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.plan import errors

#: accuracies between which the one that some steps are worth is looked for
FINEST, COARSEST = 1e-9, 1e9


@dataclass(frozen=True, eq=False, kw_only=True)
class Schedule:
    """What the theorem of an algorithm sets for a problem's constants.

    hyper   values of its hyper-parameters; ``lam`` where f is smoothed
    steps   how many it asks for to reach ``constants.eps``; None where it does not say
    """

    record: Algorithm
    constants: Constants

    @cached_property
    def _values(self) -> dict[str, float]:
        assert self.record.theory is not None
        return dict(self.record.theory(self.constants))

    @property
    def hyper(self) -> dict[str, float]:
        return {name: value for name, value in self._values.items() if name != "iterations"}

    @property
    def steps(self) -> float | None:
        return self._values.get("iterations")

    def worth(self, steps: float) -> float:
        """The accuracy for which the theorem asks for so many steps, by bisection of log eps."""
        low, high = log(FINEST), log(COARSEST)
        for _ in range(60):
            middle = (low + high) / 2
            at = dataclasses.replace(self, constants=dataclasses.replace(self.constants, eps=exp(middle)))
            low, high = (low, middle) if (at.steps or 0.0) <= steps else (middle, high)
        return exp(high)

    def told(self, taken: int | None = None) -> list[str]:
        """``by the theorem 3.1e+09 steps to eps = 0.001; ...``: what it asks for, and what the steps taken are worth."""
        if self.steps is None:
            return []
        said = f"the theorem asks for {self.steps:.2g} steps to eps = {self.constants.eps:g}"
        if taken is None or taken >= self.steps:
            return [said]
        return [f"{said}; the {taken:,} taken are what it asks for eps = {self.worth(taken):.2g}"]


def of_theorem(record: Algorithm, known: Constants, problem: ir.Problem) -> Schedule:
    """The schedule of the algorithm's theorem; F0613 where there is none."""
    if record.theory is None:
        refuse(errors.no_schedule(record), source=problem.source)
    return Schedule(record=record, constants=known)
