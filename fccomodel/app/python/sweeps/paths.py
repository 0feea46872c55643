"""Sweeps over a regulariser's weight, down from the smallest weight at which zero is optimal."""

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
    """A sweep over ``count`` weights in geometric progression.

    The first is the smallest weight at which zero is optimal, the last is ``ratio`` times the first.
    Each solve starts from the answer before.
    """
    if count < 1 or not 0 < ratio < 1:
        refuse(errors.not_a_path(count, ratio))
    weight = Weight.of(bound, name)
    first = _first_weight(compiled, binding, bound, weight, chosen)
    values = (first * np.geomspace(1.0, ratio, count)).tolist()
    return sweep(compiled, binding, bound, {weight.param: values}, chosen, progress=progress)


@dataclass(frozen=True, eq=False, kw_only=True)
class Weight:
    """A param that multiplies the regularisers of one variable.

    param      name of the param
    variable   name of the variable
    here       a value of the param
    proxes     the variable's regularisers at ``here``, in order, each with the names of the coefficients
               that are proportional to the param
    """

    param: str
    variable: str
    here: float
    proxes: tuple[tuple[Prox, frozenset[str]], ...]

    @classmethod
    def of(cls, bound: Bound, name: str | None) -> Weight:
        """The weight of this name, or the model's only weight; F0805 if there is none, or several."""
        weights: dict[str, Weight] = {}
        for param in bound.params:
            weight = cls._of_param(bound, param)
            if weight is not None:
                weights[param] = weight
        if name is None and len(weights) == 1:
            return next(iter(weights.values()))
        if name is None or name not in weights:
            refuse(errors.no_weight(name, list(weights)))
        return weights[name]

    @classmethod
    def _of_param(cls, bound: Bound, param: str) -> Weight | None:
        """A param as a weight, or None if it is none.

        The regularisers are built for the param's value and for twice this value. Coefficients that
        change must double, and must belong to a single variable.
        """
        if np.ndim(bound.params[param]):
            return None
        here = float(bound.params[param]) or 1.0
        try:
            before = _proxes(bound, param, here)
            after = _proxes(bound, param, 2 * here)
        except FccoError:
            return None
        if len(before) != len(after):
            return None
        changed = [_changed_coefficients(a, b) for a, b in zip(before, after, strict=True)]
        names = {prox.variable for prox, coefficients in zip(before, changed, strict=True) if coefficients}
        if len(names) != 1:
            return None
        (variable,) = names
        proxes = []
        for a, b, coefficients in zip(before, after, changed, strict=True):
            if a.variable != variable:
                continue
            doubled = all(
                np.isclose(b.coefficients[n], 2 * a.coefficients[n], rtol=1e-9) for n in coefficients
            )
            if not doubled or a.centre is not None:
                return None
            proxes.append((a, coefficients))
        return cls(param=param, variable=variable, here=here, proxes=tuple(proxes))

    def makes_zero_optimal(self, gradient: np.ndarray, at: float) -> bool:
        """Whether w = 0 minimises gradient.w + r(w), with the weight ``at`` in r.

        This holds if the prox of r maps -gradient to 0.
        """
        import torch

        point = -torch.from_numpy(np.asarray(gradient, dtype=float))
        for prox, proportional in self.proxes:
            regulariser = regularisers.get(prox.name)
            assert regulariser is not None
            coefficients = []
            for name, coefficient in prox.coefficients.items():
                if name in proportional:
                    coefficient = coefficient * at / self.here
                coefficients.append(coefficient)
            point = regulariser.prox(point, 1.0, *coefficients)
        return not bool(point.any())

    def smallest(self, gradient: np.ndarray) -> float:
        """The smallest weight that makes zero optimal, as every larger one does; F0805 if none is found."""
        low, high = 0.0, self.here
        for _ in range(WEIGHTS_TRIED):
            if self.makes_zero_optimal(gradient, high):
                break
            low, high = high, WEIGHT_FACTOR * high
        else:
            refuse(errors.never_zero(self.param, self.variable))
        while high - low > WEIGHT_ACCURACY * high and high > ZERO_WEIGHT:
            middle = 0.5 * (low + high)
            if self.makes_zero_optimal(gradient, middle):
                high = middle
            else:
                low = middle
        return high * (1 + PATH_MARGIN)


def _changed_coefficients(before: Prox, after: Prox) -> frozenset[str]:
    """The coefficients of ``before`` that have another value in ``after``."""
    return frozenset(
        name for name, value in before.coefficients.items() if after.coefficients.get(name) != value
    )


def _proxes(bound: Bound, param: str, value: float) -> tuple[Prox, ...]:
    """The regularisers that have a prox, for a value of a param.

    None are returned if the param decides sizes or sets.
    """
    other = rebinding.with_values(bound, {param: value})
    if other is None:
        return ()
    return normalise(bound.problem, other).prox


def _first_weight(
    compiled: pipeline.Compiled,
    binding: pipeline.Binding,
    bound: Bound,
    weight: Weight,
    chosen: options.Origins,
) -> float:
    """The smallest weight at which zero is optimal.

    The gradient of the other terms at zero decides. It depends on the other variables and on the
    multipliers, which are solved for until the weighed variable is zero.
    """
    at = weight.smallest(gradient_at_zero(bound, weight.variable, {}, {}))
    if len(bound.problem.variables) == 1 and not bound.problem.constraints:
        return at
    for _ in range(WEIGHTS_TRIED):
        given, again = pipeline.rebind(compiled, binding, bound, {weight.param: at})
        outcome = pipeline.solve(pipeline.plan(compiled, given, chosen, bound=again))
        multipliers = {label: row.multiplier for label, row in outcome.report.constraints.items()}
        point = outcome.solution.variables
        needed = weight.smallest(gradient_at_zero(again, weight.variable, point, multipliers))
        if np.abs(point[weight.variable]).max() <= ZERO_ENTRY:
            return needed
        at = max(WEIGHT_FACTOR * at, needed)
    refuse(errors.never_zero(weight.param, weight.variable))


def gradient_at_zero(
    bound: Bound, variable: str, point: Mapping[str, np.ndarray], multipliers: Mapping[str, float]
) -> np.ndarray:
    """The gradient of the minimised Lagrangian with respect to a variable, at zero.

    The other variables are at the point; variables without a value there are zero. Regularisers are
    smallest at zero and contribute the subgradient 0.
    """
    import torch

    from fccomodel.evaluation.interpret import Evaluator
    from fccomodel.evaluation.sets import elements
    from fccomodel.evaluation.values import functions

    values = {}
    for name, declared in bound.problem.variables.items():
        if declared.net is None:
            shape = elements.shape(bound, declared.shape)
            value = np.array(point.get(name, np.zeros(shape)), dtype=float)
            values[name] = torch.as_tensor(value)
    values[variable] = torch.zeros(values[variable].shape, dtype=torch.float64, requires_grad=True)
    with torch.enable_grad():
        objective, constraints, labels, _ = functions(Evaluator(bound, values))
        if bound.problem.objective.sense == "minimize":
            total = objective
        else:
            total = -objective
        nu = torch.tensor([multipliers.get(label, 0.0) for label in labels], dtype=torch.float64)
        total = total + (nu * constraints)[nu != 0].sum()
        (derivative,) = torch.autograd.grad(total, values[variable], allow_unused=True)
    if derivative is None:
        gradient = np.zeros(tuple(values[variable].shape))
    else:
        gradient = derivative.numpy()
    if not np.isfinite(gradient).all():
        refuse(errors.no_gradient_at_zero(variable))
    return gradient
