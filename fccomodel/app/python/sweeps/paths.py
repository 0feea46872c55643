"""Paths of a regulariser's weight: from the least at which zero is optimal, geometrically down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fccomodel import pipeline
from fccomodel.app.python.sweeps import errors
from fccomodel.app.python.sweeps.record import Sweep
from fccomodel.app.python.sweeps.runs import Told, sweep
from fccomodel.core import options
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.data import rebinding
from fccomodel.data.bound import Bound
from fccomodel.library import regularisers
from fccomodel.normal_form import Prox, normalise

#: Largest number of weights tried until zero is optimal.
WEIGHTS_TRIED = 40
#: Each weight tried is the one before times this.
WEIGHT_FACTOR = 10.0
#: Relative accuracy of the smallest weight for which zero is optimal.
WEIGHT_ACCURACY = 1e-13
#: How far above that weight a path begins, relative: rounding stays below it.
PATH_MARGIN = 1e-9
#: Size of an entry that counts as zero.
ZERO_ENTRY = 1e-6
#: Size of a weight that counts as zero.
ZERO_WEIGHT = 1e-200


def path(
    compiled: pipeline.Compiled,
    binding: pipeline.Binding,
    bound: Bound,
    name: str | None,
    chosen: options.Origins,
    *,
    count: int,
    ratio: float,
    progress: Told | None = None,
) -> Sweep:
    """``count`` weights from the least at which zero is optimal down to ``ratio`` of it, each solve
    from the one before."""
    if count < 1 or not 0 < ratio < 1:
        refuse(errors.not_a_path(count, ratio))
    weight = Weight.of(bound, name)
    most = _least(compiled, binding, bound, weight, chosen)
    values = (most * np.geomspace(1.0, ratio, count)).tolist()
    return sweep(compiled, binding, bound, {weight.param: values}, chosen, progress=progress)


@dataclass(frozen=True, eq=False, kw_only=True)
class Weight:
    """A param that is a factor of regularisers of one variable, by which they measure its distance
    from zero.

    here    a value of it
    proxes  the variable's regularisers there, in order, and which
            coefficients have the factor
    """

    param: str
    variable: str
    here: float
    proxes: tuple[tuple[Prox, frozenset[str]], ...]

    @classmethod
    def of(cls, bound: Bound, name: str | None) -> Weight:
        """The one of that name, or the only one; F0805 where there is none, or several."""
        found = {param: made for param in bound.params if (made := cls._weighed(bound, param)) is not None}
        if name is None and len(found) == 1:
            return next(iter(found.values()))
        if name is None or name not in found:
            refuse(errors.no_weight(name, list(found)))
        return found[name]

    @classmethod
    def _weighed(cls, bound: Bound, param: str) -> Weight | None:
        """The regularisers whose coefficients grow with a param."""
        if np.ndim(bound.params[param]):
            return None
        here = float(bound.params[param]) or 1.0
        try:
            one, two = (_proxes(bound, param, at) for at in (here, 2 * here))
        except FccoError:
            return None
        pairs = list(zip(one, two, strict=False))
        grown = [
            frozenset(n for n, v in a.coefficients.items() if b.coefficients.get(n) != v) for a, b in pairs
        ]
        names = {a.variable for (a, _), some in zip(pairs, grown, strict=True) if some}
        if len(one) != len(two) or len(names) != 1:
            return None
        own = [(a, b, some) for (a, b), some in zip(pairs, grown, strict=True) if a.variable in names]
        doubled = all(
            np.isclose(b.coefficients[n], 2 * a.coefficients[n], rtol=1e-9)
            for a, b, some in own
            for n in some
        )
        if not doubled or any(a.centre is not None for a, *_ in own):
            return None
        return cls(
            param=param, variable=names.pop(), here=here, proxes=tuple((a, some) for a, _, some in own)
        )

    def zero(self, gradient: np.ndarray, at: float) -> bool:
        """Whether zero minimises gradient.w + r(w) with the weight ``at``: the prox of r takes
        -gradient to 0."""
        import torch

        moved = -torch.from_numpy(np.asarray(gradient, dtype=float))
        for prox, grown in self.proxes:
            regulariser = regularisers.get(prox.name)
            assert regulariser is not None
            values = [v * at / self.here if n in grown else v for n, v in prox.coefficients.items()]
            moved = regulariser.prox(moved, 1.0, *values)
        return not bool(moved.any())

    def least(self, gradient: np.ndarray) -> float:
        """The least weight with ``zero``, which holds from there on; F0805 where none is found."""
        low, high = 0.0, self.here
        for _ in range(WEIGHTS_TRIED):
            if self.zero(gradient, high):
                break
            low, high = high, WEIGHT_FACTOR * high
        else:
            refuse(errors.never_zero(self.param, self.variable))
        while high - low > WEIGHT_ACCURACY * high and high > ZERO_WEIGHT:
            middle = 0.5 * (low + high)
            if self.zero(gradient, middle):
                low, high = (low, middle)
            else:
                low, high = (middle, high)
        return high * (1 + PATH_MARGIN)


def _proxes(bound: Bound, param: str, value: float) -> tuple[Prox, ...]:
    """The regularisers that have a prox, for a value of a param; none where that decides sizes or sets."""
    other = rebinding.with_values(bound, {param: value})
    if other is None:
        return ()
    return normalise(bound.problem, other).prox


def _least(
    compiled: pipeline.Compiled,
    binding: pipeline.Binding,
    bound: Bound,
    weight: Weight,
    chosen: options.Origins,
) -> float:
    """The least weight at which zero is optimal: by the gradient of all else there, the other
    variables at their best."""
    at = weight.least(gradient_at_zero(bound, weight.variable, {}, {}))
    if len(bound.problem.variables) == 1 and not bound.problem.constraints:
        return at
    for _ in range(WEIGHTS_TRIED):
        given, again = pipeline.rebind(compiled, binding, bound, {weight.param: at})
        outcome = pipeline.solve(pipeline.plan(compiled, given, chosen, bound=again))
        multipliers = {label: row.multiplier for label, row in outcome.report.constraints.items()}
        point = outcome.solution.variables
        needed = weight.least(gradient_at_zero(again, weight.variable, point, multipliers))
        if np.abs(point[weight.variable]).max() <= ZERO_ENTRY:
            return needed
        at = max(WEIGHT_FACTOR * at, needed)
    refuse(errors.never_zero(weight.param, weight.variable))


def gradient_at_zero(
    bound: Bound, variable: str, point: Mapping[str, np.ndarray], multipliers: Mapping[str, float]
) -> np.ndarray:
    """The gradient of the minimised Lagrangian by a variable at zero, other variables at the point
    (zero where it has none). Of the regularisers, which are least there, it has the subgradient 0."""
    import torch

    from fccomodel.evaluation.interpret import Evaluator
    from fccomodel.evaluation.sets import elements
    from fccomodel.evaluation.values import functions

    shapes = {
        name: elements.shape(bound, v.shape) for name, v in bound.problem.variables.items() if v.net is None
    }
    values = {
        name: torch.as_tensor(np.array(point.get(name, np.zeros(shape)), dtype=float))
        for name, shape in shapes.items()
    }
    values[variable] = torch.zeros(shapes[variable], dtype=torch.float64, requires_grad=True)
    with torch.enable_grad():
        objective, constraints, labels, _ = functions(Evaluator(bound, values))
        if bound.problem.objective.sense == "minimize":
            total = objective
        else:
            total = -objective
        nu = torch.tensor([multipliers.get(label, 0.0) for label in labels], dtype=torch.float64)
        total = total + (nu * constraints)[nu != 0].sum()
        (found,) = torch.autograd.grad(total, values[variable], allow_unused=True)
    if found is None:
        gradient = np.zeros(shapes[variable])
    else:
        gradient = found.numpy()
    if not np.isfinite(gradient).all():
        refuse(errors.no_gradient_at_zero(variable))
    return gradient
