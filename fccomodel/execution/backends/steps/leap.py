"""Several steps of a loop in one call of a backend, and the loop's other updates for these steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import itemgetter
from typing import Any

import torch

from fccomodel.execution.backends.steps.several import STEPS, Several, counts, holding, tensors

#: The new arrays, the arrays that were changed in place, and the numbers after the steps.
Results = tuple[list[torch.Tensor], list[torch.Tensor], Mapping[str, Any]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Arguments:
    """What the steps of one call take.

    before    the numbers of the state
    fixed     the arrays of the data
    moving    arrays that each step replaces: those of the state, and the average
    kept      arrays that steps change in place: estimates and centres
    rows      the settings of each step
    weights   the weight of each iterate in the average
    drawn     the samples of all steps
    pooled    whether one update of w uses several batches
    """

    before: dict[str, Any]
    fixed: list[torch.Tensor]
    moving: list[torch.Tensor]
    kept: list[torch.Tensor]
    rows: torch.Tensor
    weights: torch.Tensor
    drawn: list[torch.Tensor]
    pooled: bool

    @property
    def changing(self) -> list[torch.Tensor]:
        """All arrays but the fixed ones, in order."""
        return [*self.moving, *self.kept, self.rows, self.weights, *self.drawn]


#: Takes several steps.
Call = Callable[[Arguments], Results]


class Leap:
    """A replacement for ``one_step`` that takes ``least`` to ``most`` of the steps drawn ahead in one
    call.

    The loop itself takes one step if fewer steps are left before settings change or the budget ends, or if
    the backend still lacks arrays.
    """

    def __init__(self, several: Several, call: Call, least: int = STEPS, most: int = STEPS):
        self.several, self.call, self.one = several, call, several.module.one_step
        self.least, self.most = least, most
        self.settings = itemgetter(*several.settings)
        self.fixed: tuple[Any, list[torch.Tensor]] = (None, [])
        self.made: dict[Any, torch.Tensor] = {}

    def __call__(self, run: Any, solver: Any, data: Any, h: Any, now: Any, iterations: float | None) -> None:
        """Take the next steps of a run."""
        steps_left = (iterations or math.inf) - run.count
        count = int(min(self.most, len(run.ahead), steps_left))
        if count < self.least or not self.several.takes(run.state):
            self.one(run, solver, data, h, now, iterations)
            return
        if self.fixed[0] is not data:
            self.fixed = data, self.several.fixed(data)
        arguments = Arguments(
            before=counts(run.state),
            fixed=self.fixed[1],
            moving=self.several.moving(run.state, run.average),
            kept=self.several.kept(run.u, run.c),
            rows=self.rows(run, solver, h, now, iterations, count),
            weights=self.weights(run, solver, count),
            drawn=list(chain.from_iterable(run.ahead[:count])),
            pooled=self.several.pooled and now.together > 1,
        )
        (*state, run.average), estimates_and_centres, after = self.call(arguments)
        self.put_back(run, state, estimates_and_centres, after)
        if self.several.pooled:
            run.state.met = (run.state.met + count) % now.together
        run.done += count
        run.count += count
        del run.ahead[:count]

    @staticmethod
    def put_back(
        run: Any,
        state: Sequence[torch.Tensor],
        estimates_and_centres: Sequence[torch.Tensor],
        after: Mapping[str, Any],
    ) -> None:
        """Give a run the tensors after some steps, and the numbers ``after`` of its state."""
        by_name = dict(zip(tensors(run.state), state, strict=True))
        vars(run.state).update(vars(holding(run.state, by_name)))
        vars(run.state).update(after)
        estimates = tensors(run.u)
        centres = estimates_and_centres[len(estimates) :]
        vars(run.u).update(zip(estimates, estimates_and_centres, strict=False))
        vars(run.c).update(zip(tensors(run.c), centres, strict=True))

    def rows(
        self, run: Any, solver: Any, h: Any, now: Any, iterations: float | None, count: int
    ) -> torch.Tensor:
        """The settings of each step, one row per step; a schedule changes only the step size."""
        sizes = []
        together = now.together
        for k in range(run.count, run.count + count):
            solver.schedule.move(h, h.peak, k / iterations if iterations else 0.0)
            sizes.append(now.eta)
        met = run.state.met
        settings = self.settings(vars(now))
        place = self.several.settings.index("eta")

        def made() -> list[tuple[float, ...]]:
            """The rows: settings, and whether a step begins or ends a group of batches."""
            before_eta = settings[:place]
            after_eta = settings[place + 1 :]
            rows = []
            for k, eta in enumerate(sizes):
                at = (met + k) % together
                begins = float(at == 0)
                ends = float(at + 1 == together)
                rows.append((*before_eta, eta, *after_eta, begins, ends, float(together)))
            return rows

        return self.array((settings, tuple(sizes), met, together), made)

    def weights(self, run: Any, solver: Any, count: int) -> torch.Tensor:
        """The weights of the iterates in the average."""
        averages, length, kept = solver.schedule.averages, run.length, run.kept
        shares = [averages(done, length) for done in range(run.done, run.done + count)]
        run.kept += sum(shares)
        numbers = tuple(
            1.0 / (kept + k) if one else 0.0 for one, k in zip(shares, accumulate(shares), strict=True)
        )
        return self.array(numbers, lambda: numbers)

    def array(self, key: Any, numbers: Callable[[], Sequence[Any]]) -> torch.Tensor:
        """Numbers as an array on the device, remembered by their key."""
        if key not in self.made:
            if len(self.made) > 64:
                self.made.clear()
            self.made[key] = torch.tensor(numbers(), dtype=self.several.dtype, device=self.several.device)
        return self.made[key]
