"""How often the events of chance constraints happen at a point, and how sure that is on new rows.

An answer is fitted to its rows: what happens in 5% of them may happen in 10% of new ones, and no interval
from the same rows says how often. Intervals are of draws that the answer does not depend on: fresh draws
of a distribution, or rows held out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.evaluation.sets import members
from fccomodel.report.new_rows.sampling import fresh
from fccomodel.report.point.system import System

#: Confidence of the intervals.
CONFIDENCE = 0.95
#: Members of a family of chance constraints that the report names.
MOST_MEMBERS = 8
#: How a sentence about one member ends.
ALLOWED = " allowed"
#: What a frequency on the rows of a report does not say.
OF_FITTED_ROWS = "new rows may differ, as the answer may be fitted to these (--holdout 0.2 tests it)"


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
    for constraint, chance in _chances(system.bound):
        words = f"verdict and gap are about the problem with its surrogate, `{chance.surrogate}`"
        if not _is_drawn(chance):
            words = f"{OF_FITTED_ROWS}; {words}"
        for sentence in _of_family(evaluator, constraint, chance, new=_is_drawn(chance)):
            yield f"{sentence}; {words}" if sentence.endswith(ALLOWED) else sentence


def on_new_rows(bound: Bound, point: Mapping[str, np.ndarray], *, seed: int) -> Iterator[str]:
    """A sentence for each chance constraint: the event's frequency on rows that the point does not depend
    on, with its interval."""
    values = {name: torch.as_tensor(value) for name, value in point.items()}
    evaluator = Evaluator(bound, values, seed=fresh(bound.problem, seed))
    for constraint, chance in _chances(bound):
        yield from _of_family(evaluator, constraint, chance, new=True)


def _chances(bound: Bound) -> Iterator[tuple[ir.Constraint, ir.Chance]]:
    """The constraints in which a surrogate stands for a probability, with their events."""
    for constraint in bound.problem.constraints:
        if constraint.chance is not None:
            yield constraint, constraint.chance


def _is_drawn(chance: ir.Chance) -> bool:
    """Whether the draws are of a distribution: a report draws them afresh."""
    return all(isinstance(binder.domain, ir.Distribution) for binder in chance.event.binders)


def _of_family(
    evaluator: Evaluator, constraint: ir.Constraint, chance: ir.Chance, *, new: bool
) -> Iterator[str]:
    """The sentences of a family's members. ``new``: the point does not depend on these draws."""
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
        yield f"{_frequency(label, share, total, new)}, {level:.3g}{ALLOWED}"
    if len(labels) > MOST_MEMBERS:
        yield f"`{constraint.label}`: {len(labels) - MOST_MEMBERS} more members, not listed"


def _frequency(label: str, share: float, total: float | None, new: bool) -> str:
    """How often an event happens, with the interval if there are new and independent draws."""
    words = f"`{label}`: its event happens in {share:.3g}"
    if total is None:
        return f"{words} of the draws"
    if not new:
        return f"{words} of these {total:,.0f} rows"
    low, high = interval(round(share * total), total)
    return (
        f"{words} of {total:,.0f} draws that were not fitted to "
        f"({CONFIDENCE:.0%} interval of its probability: {low:.2g} to {high:.2g})"
    )


def _totals(evaluator: Evaluator, event: ir.Reduce, family: members.Members) -> Sequence[float | None]:
    """The number of draws of each member's event; None for pairs of draws, which share some."""
    if len(event.binders) > 1:
        return [None] * len(family)
    (binder,) = event.binders
    if isinstance(binder.domain, ir.Distribution):
        return [float(evaluator.sampled.get(binder, evaluator.draws))] * len(family)
    total = dataclasses.replace(event, kind="sum", body=ir.Const(value=1.0))
    return family.over(evaluator.value(total, family.env)).double().tolist()
