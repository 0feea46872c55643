"""Kinks met in an evaluation at one point, cut out of its graph so that their weights can be chosen.

A kink outside of expectations keeps every term. A kink inside an expectation has an instance for
every row. Only instances near their kink have several subgradients to choose from; the others have
one. A chosen subgradient q of an instance misses its value by ``phi(t) - q.t``. It is an
epsilon-subgradient with this epsilon (J.-B. Hiriart-Urruty, C. Lemarechal, Convex Analysis and
Minimization Algorithms II, 1993, chapter XI), which the reports count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.evaluation.sets.axes import Env, Named, new_axis
from fccomodel.report.kinks.kinks import MOST_NUMBERS, Kink, Lists
from fccomodel.report.kinks.weights import WeightSet

#: Terms of the rows of a kink that are weighed, at most; further rows keep the subgradient of
#: automatic differentiation.
MOST_TERMS = 1 << 17
#: Distance up to which a row is near its kink, as a share of the rows' mean distance from theirs.
NEAR_SHARE = 1e-3
#: The same if all rows are at their kinks, as a share of 1 + the terms' mean size.
AT_SHARE = 1e-7
#: Instances of a kink up to which all are weighed.
MOST_INSTANCES = 1000
#: Instances of a kink inside another one that are weighed, at most.
MOST_NESTED = 500


@dataclass(frozen=True, eq=False, kw_only=True)
class KinkRecord:
    """A kink met in an evaluation.

    call     number of the kink in the order of the evaluation
    terms    (instances, terms), with their graph
    value    phi, (instances,): a leaf from which the rest of the evaluation goes on
    near     which instances these are; None for all
    within   their largest distance from the kink
    """

    kink: Kink
    weights: WeightSet
    call: int
    terms: torch.Tensor
    value: torch.Tensor
    near: np.ndarray | None = None
    within: float = 0.0

    def top(self) -> np.ndarray:
        """Weights that attain phi."""
        return self.weights.top(self.kink.sign * self.terms.detach().numpy())


@dataclass(eq=False)
class Recorder:
    """Cuts kinks out of an evaluation: their values become leaves, their terms are kept.

    frozen    records of an earlier evaluation, whose values are used again: only the terms move
    refused   nodes with too many terms
    instead   by node id, nodes whose terms are recorded in place of the node's own
    """

    kinks: Mapping[int, Kink]
    frozen: Sequence[KinkRecord] | None = None
    records: list[KinkRecord] = field(default_factory=list)
    refused: list[ir.Expr] = field(default_factory=list)
    calls: int = 0
    instead: Mapping[int, ir.Expr] = field(default_factory=dict)

    def cuts(self) -> dict[int, Callable[[Evaluator, ir.Expr, Env], Named]]:
        """The evaluation of every kink, by node id, as the evaluator takes it."""
        return {key: self.cut for key in self.kinks}

    def cut(self, evaluator: Evaluator, node: ir.Expr, env: Env) -> Named:
        """The value of a node with a kink, from a leaf on if its instances are weighed."""
        kink = self.kinks[id(node)]
        if kink.beside is None:
            part_of_kink = self.part(kink, evaluator, node, env)
            if part_of_kink is None:
                return evaluator.uncut(node, env)
            return part_of_kink
        whole = evaluator.uncut(node, env)
        rest, place = whole.data, len(self.records)
        for part in (kink, kink.beside):
            part_of_kink, terms = self.part(part, evaluator, node, env), part.terms(evaluator, node, env)
            assert isinstance(terms, Named)
            if part_of_kink is not None:  # the leaf replaces what automatic differentiation takes
                top = part.weights(evaluator, 1).top(part.sign * terms.data.detach().numpy())
                rest = (
                    rest
                    + part_of_kink.data
                    - (torch.from_numpy(np.ascontiguousarray(top)) * terms.data).sum(-1)
                )
        if len(self.records) > place:
            return Named(rest, whole.axes)
        return whole

    def part(self, kink: Kink, evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
        """The value of a kink from leaves on, or None if none of its instances is weighed."""
        self.calls += 1
        call = self.calls  # kinks inside the terms have later numbers
        values: Named | Lists | None = None
        if evaluator.numel(node, env) <= MOST_NUMBERS:
            values = kink.terms(evaluator, self.instead.get(id(node), node), env)
        if values is None:
            self.refused.append(node)
            return None
        if isinstance(values, Lists):
            return self.of_lists(kink, evaluator, node, values)
        count = values.data.shape[-1]
        terms = values.data.reshape(-1, count)
        weights, plain = kink.weights(evaluator, count), kink.sign * terms.detach().numpy()
        weighed = self._weighed(kink, weights, plain, call)
        if weighed is None:
            return None
        near, within = weighed
        if near is None:
            instances = len(plain)
        else:
            instances = len(near)
        if not instances:
            return None
        if self._numbers() + instances * count > MOST_NUMBERS:
            self.refused.append(node)
            return None
        if near is None:
            phi = kink.sign * weights.support(plain)
        else:
            phi = kink.sign * weights.support(plain[near])
            plain_value = (torch.from_numpy(np.ascontiguousarray(weights.top(plain))) * terms).sum(-1)
            if values.axes:
                terms = at_rows(kink, evaluator, node, env, values, near)
            else:
                terms = terms[near]
        value = _leaf(phi, self._earlier(call))
        self.records.append(
            KinkRecord(
                kink=kink,
                weights=weights,
                call=call,
                terms=terms,
                value=value,
                near=near,
                within=within,
            )
        )
        whole = value
        if near is not None:
            whole = plain_value.index_put((torch.from_numpy(near),), value)
        rest: torch.Tensor | float = 0.0
        if kink.smooth:
            rest = evaluator.uncut(node, env).data - values.data.abs().sum(-1)
        return Named(whole.reshape(values.data.shape[:-1]) + rest, values.axes)

    def _earlier(self, call: int) -> KinkRecord | None:
        """The record of this kink in the earlier evaluation, or None."""
        return next((record for record in self.frozen or () if record.call == call), None)

    def _numbers(self) -> int:
        """Numbers in the terms of all records so far."""
        return sum(record.terms.numel() for record in self.records)

    def _weighed(
        self, kink: Kink, weights: WeightSet, terms: np.ndarray, call: int
    ) -> tuple[np.ndarray | None, float] | None:
        """The instances to weigh and their largest distance, as in ``chosen``; None if the kink keeps the
        subgradient of automatic differentiation."""
        if self.frozen is not None:
            earlier = self._earlier(call)
            if earlier is None:
                return None
            return (earlier.near, earlier.within)
        near = NEAR_SHARE * (1 + np.abs(terms).max())
        if weights.curved and bool((weights.margin(terms) > near).all()):
            return None  # it has one subgradient, here and nearby
        return self.chosen(kink, weights, terms)

    def of_lists(self, kink: Kink, evaluator: Evaluator, node: ir.Expr, values: Lists) -> Named | None:
        """The value of a kink whose instances have lists of their own: one record for each length,
        whose weights have a set of their own."""
        numbers = self._numbers() + sum(terms.numel() for _, terms in values.parts)
        if math.prod(values.shape) > MOST_INSTANCES or numbers > MOST_NUMBERS:
            self.refused.append(node)
            return None
        whole = torch.zeros(values.shape, dtype=torch.float64)
        for k, (cells, part) in enumerate(values.parts):
            terms = part.reshape(-1, part.shape[-1])
            weights = values.weights(k, kink.weights(evaluator, part.shape[-1]))
            phi = kink.sign * weights.support(kink.sign * terms.detach().numpy())
            value = _leaf(phi, None if self.frozen is None else self.frozen[len(self.records)])
            self.records.append(
                KinkRecord(kink=kink, weights=weights, call=self.calls, terms=terms, value=value)
            )
            whole = whole.index_copy(-1, cells, value.reshape(part.shape[:-1]))
        return values.finish(whole)

    def chosen(self, kink: Kink, weights: WeightSet, terms: np.ndarray) -> tuple[np.ndarray | None, float]:
        """The instances of a kink to weigh, None for all, and their largest distance from the kink."""
        if not kink.rows and len(terms) <= MOST_INSTANCES:
            return None, 0.0
        margin = weights.margin(terms)
        nearest = margin.argsort(kind="stable")[: most(kink, terms.shape[1])]
        limit = max(NEAR_SHARE * margin.mean(), AT_SHARE * (1 + np.abs(terms).mean()))
        near = np.sort(nearest[margin[nearest] <= limit])
        return near, float(margin[near].max(initial=0.0))


def _leaf(phi: np.ndarray, earlier: KinkRecord | None) -> torch.Tensor:
    """A leaf with some values, or the equal leaf of an earlier record."""
    if earlier is not None:
        return earlier.value
    return torch.from_numpy(np.ascontiguousarray(phi)).requires_grad_(True)


def most(kink: Kink, terms: int) -> int:
    """The largest number of instances that are weighed, for a kink with this many terms."""
    limit = MOST_NESTED if kink.nested else MOST_TERMS
    return min(max(1, MOST_TERMS // terms), limit)


def at_rows(
    kink: Kink, evaluator: Evaluator, node: ir.Expr, env: Env, values: Named, chosen: np.ndarray
) -> torch.Tensor:
    """The terms of the chosen instances, (instances, terms), computed from their rows alone, so that the
    graph is small."""
    place = np.unravel_index(chosen, values.data.shape[:-1])
    along = {axis: torch.from_numpy(at) for axis, at in zip(values.axes, place, strict=False)}
    axis, rows = new_axis(), {}
    for binder in evaluator.free(node):
        value = env[binder]
        places = tuple(along[a] for a in value.axes)
        if places:
            rows[binder] = Named(value.data[places], (axis,))
        else:
            rows[binder] = value
    terms = kink.terms(evaluator, node, {**env, **rows})
    assert isinstance(terms, Named)
    return terms.data[(torch.arange(len(chosen)), *map(torch.from_numpy, place[len(values.axes) :]))]


def notes(
    left: list[tuple[ir.Expr, str]],
    refused: list[ir.Expr],
    records: Sequence[KinkRecord],
    say: Callable[[ir.Expr], str],
) -> Iterator[str]:
    """Sentences on the kinks whose subgradients were not chosen, and on the rows whose subgradients
    were.

    Kinks at one place of the text, as in the steps of a recursion, share a sentence.
    """
    for text, why in dict.fromkeys((say(node), why) for node, why in left):
        if why:
            where = f" ({why})"
        else:
            where = ""
        yield (
            f"{text}{where}: one subgradient is taken where it has a kink; the stationarity is an upper bound"
        )
    for node in dict.fromkeys(refused):
        yield (
            f"{say(node)}: too many terms to weigh, so the largest take all weight; the stationarity "
            "is an upper bound"
        )
    by_node: dict[int, list[KinkRecord]] = {}
    for record in (r for r in records if r.near is not None):
        by_node.setdefault(id(record.kink.node), []).append(record)
    for at_node in by_node.values():
        kink, sizes = at_node[0].kink, [len(r.near) for r in at_node if r.near is not None]
        nearest = any(size >= most(kink, r.terms.shape[1]) for size, r in zip(sizes, at_node, strict=True))
        count, within = sum(sizes), max(r.within for r in at_node)
        yield (
            f"{say(kink.node)}: {count:,} row{'s' * (count > 1)}{' (the nearest)' * nearest} within "
            f"{within:.1e} of the kink: "
            "the subgradients there are chosen, and what they miss is counted in the stationarity"
        )
