"""Reformulations, one file each, and the search for the cheapest chain of them that a problem needs."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection, Set
from functools import cache

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.registry import records
from fccomodel.normal_form.reformulations._base import (
    Additions,
    AppliedReformulation,
    Chain,
    Constant,
    Reformulation,
    unknown,
)
from fccomodel.normal_form.reformulations._features import COUPLING, KINKS, STRUCTURE, features, kinks
from fccomodel.normal_form.reformulations.penalise import Penalised

__all__ = [
    "COUPLING",
    "KINKS",
    "STRUCTURE",
    "Chain",
    "Additions",
    "Penalised",
    "Reformulation",
    "AppliedReformulation",
    "all",
    "chain",
    "features",
    "get",
    "kinks",
    "penalty",
]


PENALTY = "smoothed_hinge"  # the penalty of constraints for algorithms that declare none


@cache
def all() -> tuple[Reformulation, ...]:  # noqa: A001 - the registry's verb, as in the other registries
    """Every reformulation, in their declared order."""
    return tuple(sorted(records(__name__, Reformulation).values(), key=lambda r: r.order))


def get(name: str) -> Reformulation:
    """The reformulation of that name."""
    return next(r for r in all() if r.name == name)


def penalty(name: str) -> Penalised:
    """The penalty of that name."""
    reformulation = get(name)
    assert isinstance(reformulation, Penalised), name
    return reformulation


def chain(
    problem: ir.Problem,
    unwanted: Set[str] = STRUCTURE,
    allowed: Collection[Reformulation] | None = None,
    constant: Constant = unknown,
) -> Chain:
    """The cheapest chain after which the problem has none of the ``unwanted`` features.

    unwanted   features (see ``_features``)
    allowed    reformulations to choose from; by default the equivalent ones
    constant   gives the value of a subexpression without variables and rows

    If no chain removes all features, the one that leaves the fewest is returned. If a reformulation
    raised an error on the way, the first such error is raised instead.
    """
    if allowed is None:
        candidates = [r for r in all() if r.role == "equivalent"]
    else:
        candidates = sorted(allowed, key=lambda r: r.order)
    number = itertools.count()
    queue: list[tuple[float, int, Chain]] = [(0.0, next(number), Chain(problem=problem))]
    ended: list[tuple[int, float, int, Chain]] = []
    errors: list[FccoError] = []
    while queue:
        cost, _, here = heapq.heappop(queue)
        asked = {"kinks_too": not unwanted.isdisjoint(KINKS), "curves_too": "curves outside" in unwanted}
        left = features(here.problem, constant, **asked) & unwanted
        if not left:
            return here
        used = {step.reformulation.name for step in here.steps}
        ways = [r for r in candidates if r.name not in used and left.intersection(r.removes)]
        ahead = len(queue)
        for reformulation in ways:
            # every unwanted feature has to go, so it is enough to branch on the features that the
            # first reformulation removes
            if left.isdisjoint({*ways[0].removes} & {*reformulation.removes}):
                continue
            try:
                new, recover, sentences = reformulation.apply(here.problem, constant)
            except FccoError as error:
                errors.append(error)
                continue
            if sentences:
                step = AppliedReformulation(
                    reformulation=reformulation, sentences=tuple(sentences), recover=recover
                )
                longer = Chain(problem=new, steps=(*here.steps, step))
                heapq.heappush(queue, (longer.cost, next(number), longer))
        if len(queue) == ahead:
            ended.append((len(left), cost, next(number), here))
    if errors:
        raise errors[0]
    return min(ended)[3]
