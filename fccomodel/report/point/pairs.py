"""The kinks whose weights are chosen, for each function, and their contributions to gradients and
values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from fccomodel.report.kinks.weights import WeightSet
from fccomodel.report.point.system import SPARE, System

Array = np.ndarray
#: Levels of kinks inside kinks from which on a kink is deep.
DEEP = 2
#: Pairs from which on deep kinks keep their largest terms.
MOST_DEEP = 200
#: A record, some of its instances, and weights of their terms.
Charge = tuple[int, Array, Array]


@dataclass(frozen=True, eq=False, kw_only=True)
class KinkInFunction:
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
    weights: WeightSet
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


def pairs_of(
    system: System, *, weighed: bool, held: Collection[int] = ()
) -> tuple[list[KinkInFunction], list[KinkInFunction]]:
    """The kinks whose weights are unknown, each before those inside it, and the kinks whose largest
    terms have all weight.

    weighed   choose weights at all; kinks in equalities always keep their largest terms
    held      records that keep the weights of their largest terms
    """
    finder = _Pairs(system, frozenset(held))
    for function, slopes in enumerate(system.slopes):
        free = weighed and not (function and system.equal[system.kept[function - 1]])
        for record, (instances, slope) in slopes.items():
            use = _Use(
                function=function, factor=function - 1, record=record, instances=instances, slope=slope
            )
            finder.add(use, free, depth=0)
    finder.add_deep()
    return finder.pairs, finder.topped


@dataclass(frozen=True, eq=False, kw_only=True)
class _Use:
    """A function, or a term of a kink in it, that depends on instances of a record.

    See ``KinkInFunction``.
    """

    function: int
    factor: int
    record: int
    instances: Array
    slope: Array


class _Pairs:
    """Collects the ``pairs`` and those that are ``topped``.

    A chain of definitions that each use the one before twice has 2^k ways to its k-th kink. So kinks
    that are ``DEEP`` inside others keep their largest terms once there are ``MOST_DEEP`` pairs. Their
    uses are first summed, by function, factor and record.
    """

    def __init__(self, system: System, held: frozenset[int]):
        self.system, self.held = system, held
        self.pairs: list[KinkInFunction] = []
        self.topped: list[KinkInFunction] = []
        self.tops = [record.top() for record in system.records]
        self.inside = {record: _by_instance(uses) for record, uses in system.inside.items()}
        self.place = len(system.kept)
        self.deep: dict[int, dict[tuple[int, int], Array]] = {}

    def add(self, use: _Use, free: bool, depth: int) -> None:
        """Add the pair of a use, and the pairs of the kinks inside its terms."""
        if depth >= DEEP and len(self.pairs) + len(self.topped) >= MOST_DEEP:
            self.put_off(use)
            return
        pair, top = self.pair(use, free)
        (self.pairs if free else self.topped).append(pair)
        fixed = pair.held if free else top
        for row, (term, inner, places, slopes) in self.within(use):
            unknown = term in pair.terms[row]
            if not unknown and not fixed[row, term]:
                continue
            if unknown:
                factor = int(pair.at[row, list(pair.terms[row]).index(term)])
                slope = use.slope[row] * slopes
            else:
                factor, slope = use.factor, use.slope[row] * fixed[row, term] * slopes
            below = _Use(function=use.function, factor=factor, record=inner, instances=places, slope=slope)
            self.add(below, free, depth + 1)

    def pair(self, use: _Use, free: bool) -> tuple[KinkInFunction, Array]:
        """The pair of a use, and the weights of its largest terms."""
        system = self.system
        record = system.records[use.record]
        top = self.tops[use.record][use.instances]
        weights, terms, rest = record.weights, np.zeros((len(use.instances), 0), dtype=int), top
        if free and use.record not in self.held:
            plain = record.kink.sign * record.terms.detach().numpy()[use.instances]
            weights, terms, rest = record.weights.narrowed(plain, 2 * system.d + len(system.kept) + SPARE)
        at = self.place + np.arange(terms.size).reshape(terms.shape)
        self.place += at.size
        pair = KinkInFunction(
            function=use.function,
            factor=use.factor,
            record=use.record,
            instances=use.instances,
            slope=use.slope,
            terms=terms,
            weights=weights,
            at=at,
            held=rest,
        )
        return pair, top

    def within(self, use: _Use) -> Iterator[tuple[int, tuple[int, int, Array, Array]]]:
        """For each row of a use's instances, the kinks inside it: term, record, instances, slopes."""
        within = self.inside.get(use.record, {})
        if not within:
            return
        for row in np.flatnonzero(np.isin(use.instances, list(within))).tolist():
            for inside in within[int(use.instances[row])]:
                yield row, inside

    def put_off(self, use: _Use) -> None:
        """Add the slopes of a deep use to those of the others."""
        uses = self.deep.setdefault(use.record, {})
        key = use.function, use.factor
        slopes = uses.setdefault(key, np.zeros(len(self.tops[use.record])))
        np.add.at(slopes, use.instances, use.slope)

    def add_deep(self) -> None:
        """Add the deep uses with their largest terms; a record comes before the records inside it."""
        while self.deep:
            record = max(self.deep)
            for (function, factor), slopes in self.deep.pop(record).items():
                instances = np.flatnonzero(slopes)
                use = _Use(
                    function=function,
                    factor=factor,
                    record=record,
                    instances=instances,
                    slope=slopes[instances],
                )
                pair, top = self.pair(use, free=False)
                self.topped.append(pair)
                for row, (term, inner, places, slopes_inside) in self.within(use):
                    slope = use.slope[row] * top[row, term] * slopes_inside
                    below = _Use(
                        function=function, factor=factor, record=inner, instances=places, slope=slope
                    )
                    self.put_off(below)


def _by_instance(
    uses: Iterable[tuple[int, int, int, Array, Array]],
) -> dict[int, list[tuple[int, int, Array, Array]]]:
    """The kinks inside each instance of a kink: term, record, instances and slopes of each."""
    pairs_of_instance: dict[int, list[tuple[int, int, Array, Array]]] = {}
    for instance, term, record, instances, slopes in uses:
        pairs_of_instance.setdefault(instance, []).append((term, record, instances, slopes))
    return pairs_of_instance


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


def slack_row(system: System, pair: KinkInFunction) -> tuple[Array, float]:
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
