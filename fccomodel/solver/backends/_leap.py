"""Several steps of the loop in one call, with what the loop keeps beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import torch

from fccomodel.solver.backends._several import STEPS, Several, holding, tensors

#: the moved arguments, and those changed in place
Results = tuple[list[torch.Tensor], list[torch.Tensor]]
#: ``call(fixed, moving, kept, rows, weights, drawn, pooled)``, the last: several batches move w together
Call = Callable[..., Results]


class Leap:
    """In the place of ``one_step``: so many steps of those drawn ahead as a call takes, ``least`` to ``most``; where fewer are
    left before settings change or the budget ends, or arrays are still to be made, one as the loop itself takes it."""

    def __init__(self, several: Several, call: Call, least: int = STEPS, most: int = STEPS):
        self.several, self.call, self.one = several, call, several.module.one_step
        self.least, self.most = least, most
        self.settings = itemgetter(*several.settings)
        self.fixed: tuple[Any, list[torch.Tensor]] = (None, [])
        self.made: dict[Any, torch.Tensor] = {}

    def __call__(self, run: Any, solver: Any, data: Any, h: Any, now: Any, iterations: float | None) -> None:
        """The next steps of a run."""
        count = int(min(self.most, len(run.ahead), (iterations or math.inf) - run.count))
        if count < self.least or not self.several.takes(run.state):
            self.one(run, solver, data, h, now, iterations)
            return
        if self.fixed[0] is not data:
            self.fixed = data, self.several.fixed(data)
        rows = tuple(self.row(run, solver, h, now, iterations, k) for k in range(count))
        weights = tuple(self.weight(run, solver, run.done + k) for k in range(count))
        drawn = [part for batch in run.ahead[:count] for part in batch]
        moving, kept = self.several.moving(run.state, run.average), self.several.kept(run.u, run.c)
        pooled = self.several.pooled and now.together > 1
        arrays = self.array(rows), self.array(weights)
        (*moved, run.average), kept = self.call(self.fixed[1], moving, kept, *arrays, drawn, pooled)
        vars(run.state).update(vars(holding(run.state, dict(zip(tensors(run.state), moved, strict=True)))))
        vars(run.u).update(zip(tensors(run.u), kept, strict=False))
        vars(run.c).update(zip(tensors(run.c), kept[len(tensors(run.u)) :], strict=True))
        run.state.met = (run.state.met + count) % now.together if self.several.pooled else run.state.met
        run.done, run.count = run.done + count, run.count + count
        del run.ahead[:count]

    def row(self, run: Any, solver: Any, h: Any, now: Any, iterations: float | None, k: int) -> tuple[float, ...]:
        """The numbers that a step goes by."""
        solver.schedule.move(h, h.peak, (run.count + k) / (iterations or math.inf))
        met, together = (run.state.met + k) % now.together, now.together
        return (*self.settings(vars(now)), float(met == 0), float(met + 1 == together), float(together))

    def weight(self, run: Any, solver: Any, done: int) -> float:
        """Of an iterate in the average."""
        if not solver.schedule.averages(done, run.length):
            return 0.0
        run.kept += 1
        return 1.0 / run.kept

    def array(self, numbers: Sequence[Any]) -> torch.Tensor:
        """On the device; the last ones are kept."""
        if numbers not in self.made:
            if len(self.made) > 64:
                self.made.clear()
            self.made[numbers] = torch.tensor(numbers, dtype=self.several.dtype, device=self.several.device)  # type: ignore[index]
        return self.made[numbers]  # type: ignore[index]
