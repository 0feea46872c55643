"""Kinks met in an evaluation at one point: cut out of its graph, so that their weights can be chosen.

Of a kink outside the sampling every term is kept. Of one inside an expectation there is an instance for every row; only those
near their kink have subgradients to choose from, the others have one. A chosen subgradient q of an instance misses its value by
``phi(t) - q.t``, which makes it an epsilon-subgradient (J.-B. Hiriart-Urruty, C. Lemarechal, Convex Analysis and Minimization
Algorithms II, 1993, chapter XI); the reports count what is missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.evaluation.axes import Env, Named, new_axis
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.report.kinks import MOST_NUMBERS, Kink
from fccomodel.report.weights import Weights

#: Terms of the rows of a kink that may be weighed; more keep the subgradient that automatic differentiation takes.
MOST_TERMS = 1 << 17
#: A row is near its kink within the share ``NEAR`` of the rows' mean distance from theirs, or ``AT`` of 1 + their terms' mean
#: size where all rows are at theirs; of so few instances, all are weighed.
NEAR, AT, ALL = 1e-3, 1e-7, 1000


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

    Given the records of an earlier evaluation, their values are used again, so that only the terms move.
    """

    kinks: Mapping[int, Kink]
    frozen: Sequence[Record] | None = None
    records: list[Record] = field(default_factory=list)
    refused: list[ir.Expr] = field(default_factory=list)
    calls: int = 0

    def cuts(self) -> dict[int, Callable[[Evaluator, ir.Expr, Env], Named]]:
        return {key: self.cut for key in self.kinks}

    def cut(self, evaluator: Evaluator, node: ir.Expr, env: Env) -> Named:
        kink, call = self.kinks[id(node)], self.calls + 1
        self.calls = call
        earlier = None if self.frozen is None else next((r for r in self.frozen if r.call == call), None)
        values = kink.terms(evaluator, node, env) if evaluator.numel(node, env) <= MOST_NUMBERS else None
        if values is None or self.frozen is not None and earlier is None:
            self.refused += [node] if values is None else []
            return evaluator.uncut(node, env)
        shape, count = values.data.shape[:-1], values.data.shape[-1]
        terms = values.data.reshape(-1, count)
        weights, plain = kink.weights(evaluator, count), kink.sign * terms.detach().numpy()
        if earlier is None and weights.curved and bool((weights.margin(plain) > NEAR * (1 + np.abs(plain).max())).all()):
            return evaluator.uncut(node, env)  # it has one subgradient, here and nearby
        near, within = (earlier.near, earlier.within) if earlier is not None else self.chosen(kink, weights, plain)
        instances = len(plain) if near is None else len(near)
        if not instances or sum(r.terms.numel() for r in self.records) + instances * count > MOST_NUMBERS:
            self.refused += [node] if instances else []
            return evaluator.uncut(node, env)
        if near is None:
            phi = kink.sign * weights.support(plain)
        else:
            phi = kink.sign * weights.support(plain[near])
            plain_value = (torch.from_numpy(np.ascontiguousarray(weights.top(plain))) * terms).sum(-1)
            terms = at_rows(kink, evaluator, node, env, values, near) if values.axes else terms[near]
        value = torch.from_numpy(np.ascontiguousarray(phi)).requires_grad_(True) if earlier is None else earlier.value
        self.records.append(Record(kink=kink, weights=weights, call=call, terms=terms, value=value, near=near, within=within))
        whole = value if near is None else plain_value.index_put((torch.from_numpy(near),), value)
        rest = evaluator.uncut(node, env).data - values.data.abs().sum(-1) if kink.smooth else 0.0
        return Named(whole.reshape(shape) + rest, values.axes)

    def chosen(self, kink: Kink, weights: Weights, terms: np.ndarray) -> tuple[np.ndarray | None, float]:
        """Which instances of a kink are weighed, and how far from it they are at most; None for all."""
        if not kink.rows and len(terms) <= ALL:
            return None, 0.0
        margin = weights.margin(terms)
        nearest = margin.argsort(kind="stable")[: max(1, MOST_TERMS // terms.shape[1])]
        near = np.sort(nearest[margin[nearest] <= max(NEAR * margin.mean(), AT * (1 + np.abs(terms).mean()))])
        return near, float(margin[near].max(initial=0.0))


def at_rows(kink: Kink, evaluator: Evaluator, node: ir.Expr, env: Env, values: Named, chosen: np.ndarray) -> torch.Tensor:
    """The terms of the chosen instances alone, (instances, terms), from the rows that they are at: a small graph."""
    place = np.unravel_index(chosen, values.data.shape[:-1])
    along = {axis: torch.from_numpy(at) for axis, at in zip(values.axes, place, strict=False)}
    axis, rows = new_axis(), {}
    for binder in evaluator.free(node):
        value = env[binder]
        places = tuple(along[a] for a in value.axes)
        rows[binder] = Named(value.data[places], (axis,)) if places else value
    terms = kink.terms(evaluator, node, {**env, **rows})
    assert terms is not None
    return terms.data[(torch.arange(len(chosen)), *map(torch.from_numpy, place[len(values.axes) :]))]


def notes(
    left: list[tuple[ir.Expr, str]], refused: list[ir.Expr], records: Sequence[Record], say: Callable[[ir.Expr], str]
) -> Iterator[str]:
    """Sentences on the kinks whose subgradients were not chosen, and on those of rows whose were."""
    for node, why in left:
        where = f" ({why})" if why else ""
        yield f"{say(node)}{where}: one subgradient is taken where it has a kink; the stationarity is an upper bound"
    for node in dict.fromkeys(refused):
        yield f"{say(node)}: too many terms to weigh, so the largest take all weight; the stationarity is an upper bound"
    for record in records:
        if record.near is not None:
            count = len(record.near)
            most = " (the nearest)" if count >= MOST_TERMS // record.terms.shape[1] else ""
            yield (
                f"{say(record.kink.node)}: {count:,} row{'s' * (count > 1)}{most} within {record.within:.1e} of the kink: the "
                "subgradients there are chosen, and what they miss is counted in the stationarity"
            )
