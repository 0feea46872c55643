"""Kinks met in an evaluation at one point: cut out of its graph, so that their weights can be chosen.

Of a kink outside the sampling every term is kept. Of one inside an expectation there is an instance
for every row; only those near their kink have subgradients to choose from, the others have one. A
chosen subgradient q of an instance misses its value by ``phi(t) - q.t``, which makes it an
epsilon-subgradient (J.-B. Hiriart-Urruty, C. Lemarechal, Convex Analysis and Minimization
Algorithms II, 1993, chapter XI); the reports count what is missed.
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
from fccomodel.report.kinks.weights import Weights

#: Terms of the rows of a kink that may be weighed; more keep the subgradient that automatic
#: differentiation takes.
MOST_TERMS = 1 << 17
#: A row is near its kink within the share ``NEAR`` of the rows' mean distance from theirs, or
#: ``AT`` of 1 + their terms' mean size where all rows are at theirs; of so few instances, all are
#: weighed. So many, the nearest, of those inside other kinks.
NEAR, AT, ALL, NESTED = 1e-3, 1e-7, 1000, 500


@dataclass(frozen=True, eq=False, kw_only=True)
class Record:
    """A kink met in an evaluation.

    call    number of the meeting
    terms   (instances, terms), with their graph
    value   (instances,): phi, a leaf from which the rest of the evaluation goes on
    near    which instances these are, and ``within`` what distance of the kink; None for all
    """

    kink: Kink
    weights: Weights
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

    Given the records of an earlier evaluation, their values are used again, so that only the terms
    move. ``instead`` has by node id nodes whose terms are recorded in the place of its own.
    """

    kinks: Mapping[int, Kink]
    frozen: Sequence[Record] | None = None
    records: list[Record] = field(default_factory=list)
    refused: list[ir.Expr] = field(default_factory=list)
    calls: int = 0
    instead: Mapping[int, ir.Expr] = field(default_factory=dict)

    def cuts(self) -> dict[int, Callable[[Evaluator, ir.Expr, Env], Named]]:
        return {key: self.cut for key in self.kinks}

    def cut(self, evaluator: Evaluator, node: ir.Expr, env: Env) -> Named:
        kink = self.kinks[id(node)]
        if kink.beside is None:
            found = self.part(kink, evaluator, node, env)
            if found is None:
                return evaluator.uncut(node, env)
            return found
        whole = evaluator.uncut(node, env)
        rest, place = whole.data, len(self.records)
        for part in (kink, kink.beside):
            found, terms = self.part(part, evaluator, node, env), part.terms(evaluator, node, env)
            assert isinstance(terms, Named)
            if (
                found is not None
            ):  # the part by its leaf, in the place of the part that automatic differentiation takes
                top = part.weights(evaluator, 1).top(part.sign * terms.data.detach().numpy())
                rest = rest + found.data - (torch.from_numpy(np.ascontiguousarray(top)) * terms.data).sum(-1)
        if len(self.records) > place:
            return Named(rest, whole.axes)
        return whole

    def part(self, kink: Kink, evaluator: Evaluator, node: ir.Expr, env: Env) -> Named | None:
        """The value of a kink from leaves on; None where none of its instances is weighed."""
        self.calls = call = self.calls + 1
        if self.frozen is None:
            earlier = None
        else:
            earlier = next((r for r in self.frozen if r.call == call), None)
        known = self.instead.get(id(node), node)
        if evaluator.numel(node, env) <= MOST_NUMBERS:
            values = kink.terms(evaluator, known, env)
        else:
            values = None
        if isinstance(values, Lists):
            return self.of_lists(kink, evaluator, node, values)
        if values is None or self.frozen is not None and earlier is None:
            if values is None:
                self.refused += [node]
            return None
        shape, count = values.data.shape[:-1], values.data.shape[-1]
        terms = values.data.reshape(-1, count)
        weights, plain = kink.weights(evaluator, count), kink.sign * terms.detach().numpy()
        if (
            earlier is None
            and weights.curved
            and bool((weights.margin(plain) > NEAR * (1 + np.abs(plain).max())).all())
        ):
            return None  # it has one subgradient, here and nearby
        if earlier is not None:
            near, within = (earlier.near, earlier.within)
        else:
            near, within = self.chosen(kink, weights, plain)
        if near is None:
            instances = len(plain)
        else:
            instances = len(near)
        if not instances or sum(r.terms.numel() for r in self.records) + instances * count > MOST_NUMBERS:
            if instances:
                self.refused += [node]
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
        if earlier is None:
            value = torch.from_numpy(np.ascontiguousarray(phi)).requires_grad_(True)
        else:
            value = earlier.value
        self.records.append(
            Record(kink=kink, weights=weights, call=call, terms=terms, value=value, near=near, within=within)
        )
        if near is None:
            whole = value
        else:
            whole = plain_value.index_put((torch.from_numpy(near),), value)
        rest = evaluator.uncut(node, env).data - values.data.abs().sum(-1) if kink.smooth else 0.0
        return Named(whole.reshape(shape) + rest, values.axes)

    def of_lists(self, kink: Kink, evaluator: Evaluator, node: ir.Expr, values: Lists) -> Named | None:
        """One record for each length of the lists, whose weights have a set of their own."""
        held = sum(r.terms.numel() for r in self.records) + sum(terms.numel() for _, terms in values.parts)
        if math.prod(values.shape) > ALL or held > MOST_NUMBERS:
            self.refused.append(node)
            return None
        whole = torch.zeros(values.shape, dtype=torch.float64)
        for cells, part in values.parts:
            terms = part.reshape(-1, part.shape[-1])
            weights = kink.weights(evaluator, part.shape[-1])
            if self.frozen is None:
                earlier = None
            else:
                earlier = self.frozen[len(self.records)]
            phi = kink.sign * weights.support(kink.sign * terms.detach().numpy())
            if earlier is None:
                value = torch.from_numpy(np.ascontiguousarray(phi)).requires_grad_(True)
            else:
                value = earlier.value
            self.records.append(Record(kink=kink, weights=weights, call=self.calls, terms=terms, value=value))
            whole = whole.index_copy(-1, cells, value.reshape(part.shape[:-1]))
        return values.finish(whole)

    def chosen(self, kink: Kink, weights: Weights, terms: np.ndarray) -> tuple[np.ndarray | None, float]:
        """Which instances of a kink are weighed, and how far from it they are at most; None for all."""
        if not kink.rows and len(terms) <= ALL:
            return None, 0.0
        margin = weights.margin(terms)
        nearest = margin.argsort(kind="stable")[: most(kink, terms.shape[1])]
        near = np.sort(nearest[margin[nearest] <= max(NEAR * margin.mean(), AT * (1 + np.abs(terms).mean()))])
        return near, float(margin[near].max(initial=0.0))


def most(kink: Kink, terms: int) -> int:
    """So many instances of a kink of so many terms are weighed where not all are."""
    return min(max(1, MOST_TERMS // terms), NESTED if kink.nested else MOST_TERMS)


def at_rows(
    kink: Kink, evaluator: Evaluator, node: ir.Expr, env: Env, values: Named, chosen: np.ndarray
) -> torch.Tensor:
    """The terms of the chosen instances alone, (instances, terms), from the rows that they are at: a
    small graph."""
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
    records: Sequence[Record],
    say: Callable[[ir.Expr], str],
) -> Iterator[str]:
    """Sentences on the kinks whose subgradients were not chosen, and on those of rows whose were."""
    for node, why in left:
        if why:
            where = f" ({why})"
        else:
            where = ""
        yield (
            f"{say(node)}{where}: one subgradient is taken where it has a kink; the stationarity is an "
            "upper bound"
        )
    for node in dict.fromkeys(refused):
        yield (
            f"{say(node)}: too many terms to weigh, so the largest take all weight; the stationarity "
            "is an upper bound"
        )
    by_node: dict[int, list[Record]] = {}
    for record in (r for r in records if r.near is not None):
        by_node.setdefault(id(record.kink.node), []).append(record)
    for met in by_node.values():
        kink, sizes = met[0].kink, [len(r.near) for r in met if r.near is not None]
        nearest = any(size >= most(kink, r.terms.shape[1]) for size, r in zip(sizes, met, strict=True))
        count, within = sum(sizes), max(r.within for r in met)
        yield (
            f"{say(kink.node)}: {count:,} row{'s' * (count > 1)}{' (the nearest)' * nearest} within "
            f"{within:.1e} of the kink: "
            "the subgradients there are chosen, and what they miss is counted in the stationarity"
        )
