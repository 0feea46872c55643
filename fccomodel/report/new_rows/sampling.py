"""Standard errors at a point from draws of distributions, by further samples of the same size.

A solver works on one fixed sample of each distribution, and its point is best for that sample. The
report uses another sample. The spread over a few more samples estimates how far its values, and the
gradient of the Lagrangian, are from those of the distribution. All of this is an estimate: draws
prove nothing about the distribution.

For a plain expectation f, E[f_N(w) - min f_N] >= f(w) - min f over samples that w does not depend
on (W. Mak, D. Morton, R. Wood, Monte Carlo bounding techniques, Operations Research Letters 24,
1999): on average, the gap on a new sample is not too small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.evaluation.sets.draws import drawn
from fccomodel.report.point.recording import Recorder
from fccomodel.report.point.system import Array, System, norm

#: Further samples that standard errors are estimated from.
REPEATS = 4
#: Standard errors up to which a residual counts as 0.
ERRORS = 2.0


@dataclass(frozen=True, eq=False, kw_only=True)
class StandardErrors:
    """Standard errors at a point.

    names        the draws, as the model writes them
    count        the largest number of draws
    objective    standard error of the objective
    constraints  of each constraint's value
    slope        norm of the standard errors of the Lagrangian's gradient
    """

    names: str
    count: int
    objective: float
    constraints: Array
    slope: float

    @property
    def worst(self) -> float:
        """The largest standard error of a constraint."""
        return float(self.constraints.max(initial=0.0))


def fresh(problem: ir.Problem, seed: int) -> int:
    """The seed of a report. If the problem draws, it differs from 0, the seed of the solvers' fixed
    sample."""
    if drawn(problem):
        return abs(seed) + 1
    return seed


def noise(system: System, multipliers: Array) -> StandardErrors | None:
    """The standard errors at the system's point, or None if nothing is drawn. At kinks the subgradient
    of automatic differentiation is used."""
    sampled = system.evaluator.sampled
    if not sampled:
        return None
    values = [np.append(system.sign * system.objective, system.values)]
    slopes: list[Array] = []
    for k in range(1 + REPEATS):
        leaves = [system.point[name].clone().requires_grad_(True) for name in system.names]
        point = dict(zip(system.names, leaves, strict=True))
        f, c = system.evaluate(point, Recorder({}), system.seed + k)[:2]
        if k:
            values.append(np.append(float(f.detach()), c.detach().numpy()))
        slopes.append(_gradient(f + c @ torch.from_numpy(multipliers), leaves))
    errors = np.std(values, axis=0, ddof=1)
    slope = norm(np.std(slopes, axis=0, ddof=1))
    names = ", ".join(f"`{binder.name} ~ {binder.domain.name}`" for binder in sampled)
    return StandardErrors(
        names=names,
        count=max(sampled.values()),
        objective=float(errors[0]),
        constraints=errors[1:],
        slope=slope,
    )


def _gradient(total: torch.Tensor, leaves: list[torch.Tensor]) -> Array:
    if not total.requires_grad:
        return np.zeros(sum(leaf.numel() for leaf in leaves))
    gradients = torch.autograd.grad(total, leaves, allow_unused=True)
    parts = [torch.zeros_like(leaf) if g is None else g for g, leaf in zip(gradients, leaves, strict=True)]
    return torch.cat([part.reshape(-1) for part in parts]).numpy()
