"""The kinks whose weights are chosen, for each function, and their contributions to gradients and
values."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
import torch

from fccomodel.report.kinks.weights import Weights
from fccomodel.report.point.system import SPARE, System

Array = np.ndarray
#: A record, some of its instances, and weights of their terms.
Charge = tuple[int, Array, Array]


@dataclass(frozen=True, eq=False, kw_only=True)
class Pair:
    """A kink in a function, or in a term of another kink of that function.

    function    0 for the objective, else 1 + the number of the constraint among those kept
    factor      the place of the unknown that multiplies its weights, a multiplier or a weight; -1 for 1
    record      number of the kink's record
    instances   its instances that the function or the term depends on
    slope       derivatives of the function or of the term in their values
    terms       the terms of these instances with unknown weights, (instances, unknown)
    weights     the set of these weights
    at          their places among the unknowns, (instances, unknown)
    held        the weights of the other terms, (instances, terms)
    """

    function: int
    factor: int
    record: int
    instances: Array
    slope: Array
    terms: Array
    weights: Weights
    at: Array
    held: Array

    def of(self, z: Array) -> Array:
        """The weights of all terms of these instances, times the factor, from the unknowns."""
        full = self.held * self.times(z)
        np.put_along_axis(full, self.terms, z[self.at], -1)
        return full

    def times(self, z: Array) -> float:
        """The number that multiplies the weights."""
        if self.factor >= 0:
            return float(z[self.factor])
        return 1.0

    def chosen(self, full: Array) -> Array:
        """The entries of an array (instances, terms) whose weights are unknown."""
        return np.take_along_axis(full, self.terms, -1)

    def charge(self, weights: Array) -> Charge:
        """Weights of these instances' terms, times their slopes."""
        return self.record, self.instances, self.slope[:, None] * weights

    @property
    def numbers(self) -> Array:
        """The numbers of the terms with unknown weights, among all terms of the record."""
        return self.instances[:, None] * self.held.shape[1] + self.terms


def pairs_of(system: System, *, weighed: bool, held: Collection[int] = ()) -> tuple[list[Pair], list[Pair]]:
    """The kinks whose weights are unknown, each before those inside it, and the kinks whose largest
    terms have all weight.

    weighed   choose weights at all; kinks in equalities always keep their largest terms
    held      records that keep the weights of their largest terms
    """
    pairs: list[Pair] = []
    topped: list[Pair] = []
    tops = [record.top() for record in system.records]
    inside = {record: _by_instance(uses) for record, uses in system.inside.items()}
    place = len(system.kept)

    def add(function: int, factor: int, record: int, instances: Array, slope: Array, free: bool) -> None:
        """Add the pairs of a function and a factor."""
        nonlocal place
        met = system.records[record]
        top = tops[record][instances]
        weights, terms, rest = met.weights, np.zeros((len(instances), 0), dtype=int), top
        if free and record not in held:
            plain = met.kink.sign * met.terms.detach().numpy()[instances]
            weights, terms, rest = met.weights.narrowed(plain, 2 * system.d + len(system.kept) + SPARE)
        at = place + np.arange(terms.size).reshape(terms.shape)
        place += at.size
        pair = Pair(
            function=function,
            factor=factor,
            record=record,
            instances=instances,
            slope=slope,
            terms=terms,
            weights=weights,
            at=at,
            held=rest,
        )
        (pairs if free else topped).append(pair)
        fixed = pair.held if free else top
        within = inside.get(record, {})
        for row in np.flatnonzero(np.isin(instances, list(within))).tolist() if within else ():
            for term, inner, places, slopes in within[int(instances[row])]:
                if term in terms[row]:
                    add(
                        function,
                        int(at[row, list(terms[row]).index(term)]),
                        inner,
                        places,
                        slope[row] * slopes,
                        free,
                    )
                elif fixed[row, term]:
                    add(function, factor, inner, places, slope[row] * fixed[row, term] * slopes, free)

    for function, slopes in enumerate(system.slopes):
        free = weighed and not (function and system.equal[system.kept[function - 1]])
        for record, (instances, slope) in slopes.items():
            add(function, function - 1, record, instances, slope, free)
    return pairs, topped


def _by_instance(
    uses: Iterable[tuple[int, int, int, Array, Array]],
) -> dict[int, list[tuple[int, int, Array, Array]]]:
    """The kinks inside each instance of a kink: term, record, instances and slopes of each."""
    found: dict[int, list[tuple[int, int, Array, Array]]] = {}
    for instance, term, record, instances, slopes in uses:
        found.setdefault(instance, []).append((term, record, instances, slopes))
    return found


def summed(system: System, charges: Iterable[Charge]) -> dict[int, Array]:
    """The sum of all charges, by record: weights of all terms."""
    total: dict[int, Array] = {}
    for record, instances, weights in charges:
        if record not in total:
            total[record] = np.zeros(tuple(system.records[record].terms.shape))
        np.add.at(total[record], instances, weights)
    return total


def tensors(system: System, charges: Iterable[Charge]) -> list[tuple[torch.Tensor, Array | float]]:
    """Terms with their summed weights, as ``System.pull`` takes them."""
    return [(system.records[record].terms, weights) for record, weights in summed(system, charges).items()]


def slack_row(system: System, pair: Pair) -> tuple[Array, float]:
    """(by term, constant): the weights of a kink miss its value by constant * factor + by term . weights."""
    record, size = system.records[pair.record], np.abs(pair.slope)
    terms, phi = (
        record.kink.sign * tensor.detach().numpy()[pair.instances] for tensor in (record.terms, record.value)
    )
    return -size[:, None] * terms, float(size @ phi)


def scattered(system: System, nu: Array) -> Array:
    """The multipliers of all constraints, from those of the constraints kept."""
    full = np.zeros(len(system.values))
    full[system.kept] = nu
    return full
