"""The end of a program in the model's names: variables, multipliers, the failure, notes."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.core.failure import Failure
from fccomodel.core.work import to_the_end, within_memory
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import members
from fccomodel.evaluation.sets.members import Members
from fccomodel.normal_form.penalty import Penalty
from fccomodel.normal_form.smoothing import Smoothed
from fccomodel.program.emit import Program

#: How near its bound a constraint counts as active.
AT_BOUND = 1e-6
#: Weight, relative to the largest, up to which a constraint is not part of a conflict.
LEAST_WEIGHT = 1e-3
#: Seconds for the constraints' values at its point, after a run that the clock ended.
SECONDS_AFTER_THE_END = 0.5


def variables(program: Program, bound: Bound, w: torch.Tensor) -> dict[str, np.ndarray]:
    """The user's variables in float64, without those that reformulations added."""
    return {
        name: w[a:b].reshape(shape).numpy().astype(np.float64)
        for name, (a, b, shape) in program.layout.items()
        if name in bound.problem.variables
    }


def exact_values(module: Any, program: Program, final: Any) -> Mapping[str, tuple[str, Any]]:
    """Values of the constraints at the point found, if multipliers or a failure follow from them.

    There are none if the clock ended the run and they take longer than ``SECONDS_AFTER_THE_END``, or if
    they find no room in memory.
    """
    failed = getattr(final, "failure", None) is not None
    if not failed and not any(isinstance(p, Penalty) for p in program.penalties.values()):
        return {}
    until = time.perf_counter() + SECONDS_AFTER_THE_END
    values: dict[str, tuple[str, Any]] = {}
    w = final.w.to(final.exact.device)

    def once() -> None:
        """One pass."""
        values.update(module.evaluate(final.exact, w)[1])

    with module.no_grad():
        timed = getattr(final, "timed", False)
        dear = timed and not failed
        within_memory(lambda: to_the_end(once, lambda: time.perf_counter() > until, dear=dear))
    return values


def multipliers(
    program: Program, bound: Bound, final: Any, values: Mapping[str, tuple[str, Any]]
) -> dict[str, float]:
    """The solver's own multipliers by label, from ``values`` of the constraints at the point found.

    Constraints that became sets of variables have none.
    """
    result: dict[str, float] = {}
    for constraint in bound.problem.constraints:
        match program.penalties.get(constraint.label):
            case Smoothed(name=name, args=args, units=(below, above)) if hasattr(final.c, name):
                slopes = getattr(final.c, name).cpu().double().numpy()
                array = np.where(slopes < 0, slopes / below, slopes / above)
                order = [
                    constraint.binders.index(b)
                    for b in dict.fromkeys(b for a in args for b in ir.free_binders(a))
                ]
                family = members.of(bound, constraint)
                result |= labelled(
                    family,
                    constraint,
                    np.broadcast_to(array[tuple(family.ids[k] for k in order)], len(family)),
                )
            case None if not ir.variables_of(constraint.body):
                result |= dict.fromkeys(members.of(bound, constraint).labels(constraint.label), 0.0)
            case Penalty(scale=str(scale)) as penalty if constraint.label in values:
                array = penalty.multiplier(
                    values[constraint.label][1].cpu().double().numpy(), getattr(final.h, scale)
                )
                family = members.of(bound, constraint)
                result |= labelled(family, constraint, family.of(array))
    return result


def limits(program: Program, bound: Bound, final: Any) -> dict[str, float]:
    """The largest slopes of the penalties that are multiples of a hinge or an absolute value."""
    result: dict[str, float] = {}
    for constraint in bound.problem.constraints:
        match program.penalties.get(constraint.label):
            case Smoothed(bound=str(scale)):
                result[constraint.label] = float(getattr(final.h, scale))
            case Penalty(scale=str(scale), op="pos" | "abs") as penalty:
                result[constraint.label] = float(getattr(final.h, scale)) * penalty.factor
    return result


def failure(
    bound: Bound, program: Program, said: Mapping[str, Any] | None, values: Mapping[str, tuple[str, Any]]
) -> Failure | None:
    """The failure that a program found, in the model's names; None if there is none.

    ``values`` are those of the constraints at the point found. Constraints that became sets of
    variables are never violated; they belong to a conflict if the point is at their bound.
    """
    if said is None:
        return None
    if said["kind"] == "infeasible":
        conflict = _conflict(bound, said["weights"]) | _at_bounds(bound, program, values)
        radius = max(said["nearest"] - said["size"], 0.0)
        return Failure(kind="infeasible", conflict=conflict, nearest=said["nearest"], radius=radius)
    direction = said["direction"].cpu()
    k = int(direction.abs().argmax())
    along = (_entry(program, k), bool(direction[k] > 0))
    return Failure(kind=said["kind"], along=along, far=said["far"])


def _conflict(bound: Bound, weights: Mapping[str, torch.Tensor]) -> dict[str, float]:
    """The weights of the constraints that count in a conflict, by label, the largest first."""
    by_label: dict[str, float] = {}
    for constraint in bound.problem.constraints:
        family = members.of(bound, constraint)
        of_family = family.of(weights[constraint.label].cpu().numpy())
        by_label |= labelled(family, constraint, of_family)
    least = LEAST_WEIGHT * max(by_label.values())
    largest_first = sorted(by_label.items(), key=lambda pair: -pair[1])
    return {label: weight for label, weight in largest_first if weight > least}


def _at_bounds(bound: Bound, program: Program, values: Mapping[str, tuple[str, Any]]) -> dict[str, float]:
    """A weight of 0 for each constraint that became a set of a variable and is at its bound."""
    at_bounds: dict[str, float] = {}
    for constraint in bound.problem.constraints:
        if constraint.label in program.penalties or not ir.variables_of(constraint.body):
            continue
        if constraint.label not in values:  # there was no memory for them
            continue
        family = members.of(bound, constraint)
        of_family = family.of(values[constraint.label][1].cpu().numpy())
        excess = labelled(family, constraint, of_family)
        at_bounds |= {label: 0.0 for label, value in excess.items() if value > -AT_BOUND}
    return at_bounds


def _entry(program: Program, k: int) -> str:
    """The name of entry k of the flat vector of variables, as the model writes it."""
    for name, (start, stop, shape) in program.layout.items():
        if start <= k < stop:
            if not shape:
                return name
            indices = np.unravel_index(k - start, shape)
            return f"{name}[{', '.join(str(int(i) + 1) for i in indices)}]"
    raise AssertionError(k)


def labelled(family: Members, constraint: ir.Constraint, values: np.ndarray) -> dict[str, float]:
    """The values of a family's members, by label."""
    return dict(zip(family.labels(constraint.label), values.tolist(), strict=True))


def notes(program: Program, module: Any, final: Any) -> list[str]:
    """Notes on a run for the reader: step size, smoothing, epsilon, divergence."""
    sentences = []
    if module.SOLVER.direct and getattr(final, "way", "") == "finish":
        if not module.SOLVER.nonconvex:
            steps = f"{final.iterations:,} steps only prepare passes over all rows"
            sentences.append(f"{steps}: the problem is convex, and passes are cheap")
        elif not final.iterations and not module.SOLVER.resume:
            sentences.append(
                "passes over all rows come in place of steps: the problem is smooth, and they cost "
                "little more"
            )
    if module.SOLVER.settings().eta == 0 and final.iterations:
        sentences.append(
            f"first step size: {final.eta:.3g}, the inverse of the smoothness estimated at the start"
        )
    sentences += [gap(f.text, final.h.smoothing(name), f.width) for name, f in program.smoothed.items()]
    if getattr(final, "epsilon", None) is not None:
        sentences.append(
            f"the solver's own pair (x, y) is epsilon-KKT, epsilon = {final.epsilon:.2g} (hscg-2020, "
            "Lemma 3.1)"
        )
    if getattr(final, "broken", None) is not None:
        sentences.append(
            f"iterates were not finite by step {final.broken:,}: the run went on from its best point with "
            "smaller steps"
        )
    return sentences


def gap(text: str, lam: float, width: float) -> str:
    """A sentence on how far an envelope can lie below its function.

    The bound is the maximum of lam/2 |y - c|^2 over y, c in the dual domain, which has this width.
    """
    bound = ""
    if not math.isinf(width):
        bound = f", so a block lies at most {0.5 * lam * width**2:.2g} below its function"
    return f"smoothing of {text}: lambda = {lam:.2g}{bound}"
