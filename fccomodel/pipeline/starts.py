"""The start of a run: values by name, or the answer of another run of the same model or of a
similar one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import Diagnostic, FccoError
from fccomodel.data.bound import Bound
from fccomodel.evaluation import centres, starts
from fccomodel.evaluation.sets import elements
from fccomodel.pipeline import errors
from fccomodel.pipeline.records import Planned
from fccomodel.plan.starts import EndOfRun, Start

if TYPE_CHECKING:
    from fccomodel.execution.run import Solution


def after(planned: Planned, other: Planned, solution: Solution) -> Start:
    """The answer of another run as a start: its point and multipliers.

    A run of the same program hands on all that it ended with. Variables that this model does not
    have are left out.
    """
    known = planned.problem.variables
    values = {name: value for name, value in solution.variables.items() if name in known}
    same = planned.compiled is other.compiled or planned.compiled.hash == other.compiled.hash
    alike = same and planned.plan.algorithm == other.plan.algorithm and planned.plan.via == other.plan.via
    return Start(
        values=values,
        multipliers=solution.multipliers,
        kept=solution.kept if alike else EndOfRun(),
        found=True,
        patience=solution.patience if same else None,
        answered=same and solution.status == "converged" and _equal(planned.bound.params, other.bound.params),
    )


def _equal(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> bool:
    """Whether two mappings have the same names and numbers."""
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def begun(planned: Planned, start: Start) -> Planned:
    """The plan with its start. Raises F0712 if names, shapes or numbers do not fit."""
    declared = {} if start.found else _first(planned, planned.seed)
    values = {**declared, **start.kept.variables, **fitted(planned.bound, start.values)}
    return replace(planned, plan=replace(planned.plan, start=replace(start, values=values)))


def as_declared(planned: Planned) -> Planned:
    """The plan with the start that the model says, or with centres among the rows, if there are any."""
    values = _first(planned, planned.seed)
    if not values:
        return planned
    return _declared(planned, values)


def another(planned: Planned, number: int) -> Planned:
    """The plan with another first point: drawn where the model says so, or says nothing."""
    seed = f"{planned.seed}.{number}"
    return _declared(planned, {**starts.drawn(planned.bound, seed), **_first(planned, seed)})


def _first(planned: Planned, seed: int | str) -> dict[str, np.ndarray]:
    """First values that the model says, and centres among the rows unless the problem is convex."""
    declared = starts.declared(planned.bound, seed)
    if planned.plan.convex or planned.ranks:
        return declared
    return {**centres.apart(planned.bound, seed), **declared}


def _declared(planned: Planned, values: Mapping[str, np.ndarray]) -> Planned:
    fitting = fitted(planned.bound, values)
    return replace(planned, plan=replace(planned.plan, start=Start(values=fitting, declared=True)))


def _without_ones(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape without its axes of length 1. A transposed or flattened matrix still differs."""
    return tuple(size for size in shape if size != 1)


def fitted(bound: Bound, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Values of variables as arrays of their shapes.

    A variable along labels may also be a mapping from labels to numbers. Raises F0712 for values
    that do not fit.
    """
    arrays: dict[str, np.ndarray] = {}
    wrong: list[Diagnostic] = []
    for name, value in values.items():
        variable = bound.problem.variables.get(name)
        if variable is None:
            wrong.append(errors.start_of_no_variable(name, [*bound.problem.variables]))
            continue
        shape = elements.shape(bound, variable.shape)
        try:
            array = np.asarray(_by_label(bound, variable, value), dtype=float)
        except (TypeError, ValueError, KeyError, ArithmeticError) as error:
            wrong.append(errors.start_of_no_numbers(name, error, variable.span))
            continue
        if _without_ones(array.shape) != _without_ones(shape):
            wrong.append(errors.start_of_shape(name, array.shape, shape, variable.span))
        elif not np.isfinite(array).all():
            wrong.append(errors.start_not_finite(name, variable.span))
        else:
            arrays[name] = array.reshape(shape)
    if wrong:
        raise FccoError(wrong, bound.problem.source)
    return arrays


def _by_label(bound: Bound, variable: ir.Variable, value: Any) -> Any:
    """Numbers by label, put into the order of the labels; anything else as it is."""
    if not isinstance(value, Mapping) or len(variable.shape) != 1:
        return value
    labels = bound.labels.get(str(variable.shape[0]))
    if labels is None or {*value} != {*labels}:
        raise KeyError(f"its labels are {', '.join(map(str, labels or ()))}")
    return [value[label] for label in labels]


def ahead(known: Sequence[tuple[float, Start]], at: float) -> Start:
    """A start at ``at``, extrapolated from answers at other numbers by Lagrange's polynomial.

    known  pairs of a number and the answer there, the nearest first

    Multipliers keep their signs. What only the nearest answer has is taken from it.
    """
    (_, last), places = known[0], [place for place, _ in known]
    weights = [
        math.prod((at - other) / (place - other) for other in places if other != place) for place in places
    ]

    def along(*parts: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The arrays that all parts have, extrapolated; the others from the first part."""
        alike = [
            n
            for n, value in parts[0].items()
            if all(n in other and other[n].shape == value.shape for other in parts)
        ]
        extrapolated = {
            name: np.asarray(sum(c * part[name] for c, part in zip(weights, parts, strict=True)))
            for name in alike
        }
        return {**parts[0], **extrapolated}

    def sign(label: str, now: float) -> float:
        """A multiplier extrapolated, or half the nearest one if its sign would change."""
        extrapolated = sum(
            c * start.multipliers.get(label, now) for c, (_, start) in zip(weights, known, strict=True)
        )
        if extrapolated * now > 0:
            return extrapolated
        return 0.5 * now

    return replace(
        last,
        values=along(*(start.values for _, start in known)),
        multipliers={label: sign(label, nu) for label, nu in last.multipliers.items()},
        kept=replace(
            last.kept,
            variables=along(*(start.kept.variables for _, start in known)),
            centres=along(*(start.kept.centres for _, start in known)),
        ),
        answered=False,
    )
