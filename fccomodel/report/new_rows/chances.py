"""How often the events of chance constraints happen at a point, with intervals for new rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import torch

from fccomodel.core import ir
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.evaluation.sets import members
from fccomodel.report.point.system import System

#: Confidence of the intervals.
CONFIDENCE = 0.95
#: Members of a family of chance constraints that the report names.
MOST_MEMBERS = 8


def interval(count: float, total: float) -> tuple[float, float]:
    """The exact interval (Clopper and Pearson) of a probability, from the draws in which an event happened.

    count  number of these draws
    total  number of all draws, independent of each other
    """
    from scipy.special import betaincinv

    outside = (1 - CONFIDENCE) / 2
    low = 0.0 if count <= 0 else float(betaincinv(count, total - count + 1, outside))
    high = 1.0 if count >= total else float(betaincinv(count + 1, total - count, 1 - outside))
    return low, high


def labels(system: System) -> tuple[str, ...]:
    """The labels of the constraints in which a surrogate stands for a probability, of families each."""
    chosen = [constraint for constraint in system.problem.constraints if constraint.chance is not None]
    return tuple(label for one in chosen for label in members.of(system.bound, one).labels(one.label))


def sentences(system: System) -> Iterator[str]:
    """A sentence for each chance constraint: the event's frequency beside the share that is allowed."""
    evaluator = Evaluator(system.bound, system.point, seed=system.seed)
    for constraint in system.problem.constraints:
        if constraint.chance is not None:
            yield from _of_family(evaluator, constraint, constraint.chance)


def _of_family(evaluator: Evaluator, constraint: ir.Constraint, chance: ir.Chance) -> Iterator[str]:
    family = members.of(evaluator.bound, constraint)
    with torch.no_grad():
        shares, levels = (
            family.over(evaluator.value(part, family.env)).double().tolist()
            for part in (chance.event, chance.level)
        )
        totals = _totals(evaluator, chance.event, family)
    labels = list(family.labels(constraint.label))
    each = zip(labels, shares, totals, levels, strict=True)
    for label, share, total, level in list(each)[:MOST_MEMBERS]:
        yield (
            f"{_frequency(label, share, total)}, {level:.3g} allowed; verdict and gap are about the problem "
            f"with its surrogate, `{chance.surrogate}`"
        )
    if len(labels) > MOST_MEMBERS:
        yield f"`{constraint.label}`: {len(labels) - MOST_MEMBERS} more members, not listed"


def _frequency(label: str, share: float, total: float | None) -> str:
    """How often an event happens, with the interval if the number of independent draws is known."""
    words = f"`{label}`: its event happens in {share:.3g}"
    if total is None:
        return f"{words} of the draws"
    low, high = interval(round(share * total), total)
    return f"{words} of {total:,.0f} draws ({CONFIDENCE:.0%} interval for new ones: {low:.2g} to {high:.2g})"


def _totals(evaluator: Evaluator, event: ir.Reduce, family: members.Members) -> Sequence[float | None]:
    """The number of draws of each member's event; None for pairs of draws, which share some."""
    if len(event.binders) > 1:
        return [None] * len(family)
    (binder,) = event.binders
    if isinstance(binder.domain, ir.Distribution):
        return [float(evaluator.sampled.get(binder, evaluator.draws))] * len(family)
    total = dataclasses.replace(event, kind="sum", body=ir.Const(value=1.0))
    return family.over(evaluator.value(total, family.env)).double().tolist()
