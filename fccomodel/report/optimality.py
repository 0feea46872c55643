"""The multipliers and the subgradients of kinks that make a point's KKT residual least, or those of given multipliers.

Unknown are the multipliers nu and, for every function (f or a c_k) that contains a kink, the kink's weights q times the
function's multiplier (1 for f); of a kink inside a term of another kink, times the weight of that term. With s the functions'
gradients at kinks held fixed, a their slopes in the kinks' values phi, and t the kinks' terms, the squares of these are summed:

    s_f + sum nu_k s_k + sum a q t', less the normals of simple sets;   nu_k c_k;   |a| (nu phi - q t) of every function
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fccomodel.report.groups import Cone, Group, Part, Simple, Weighing
from fccomodel.report.multipliers import Squares, solve
from fccomodel.report.system import System
from fccomodel.report.weights import Weights

Array = np.ndarray
#: Of a simplex, more terms have unknown weights than there are variables twice over and constraints, by so many.
SPARE = 20
#: Normals of simple sets that are unknowns of their own, at most.
MOST_NORMALS = 500


@dataclass(frozen=True, eq=False, kw_only=True)
class Optimum:
    """Multipliers with what they leave.

    gradient   norm of the Lagrangian's gradient less the normals of simple sets
    slack      by how much the chosen subgradients miss the functions' values: they are slack-subgradients
    lagrangian the gradient itself, with the weights chosen; ``missed`` is the sum of the slacks
    weights    of each record's terms in it (by record; a record may come several times)
    plain      norm of the objective's own gradient, its kinks at their largest terms
    weighed    the weights of kinks were chosen (else they are those of the largest terms, for want of time)
    missing    labels without a given multiplier
    """

    multipliers: Array
    gradient: float
    slack: float
    plain: float
    lagrangian: Array
    missed: float
    weights: tuple[tuple[int, Array], ...]
    weighed: bool = True
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Pair:
    """A kink (by record) in a function (0: the objective), or in a term of another kink of it.

    factor             the place among the unknowns of what its weights are times: a multiplier, a weight; -1: the number 1
    instances, slope   those of its instances that the function or the term depends on, with their slopes
    terms              which of their terms have unknown weights, (instances, unknown); ``weights``: the set of these
    at                 the places of these weights among the unknowns, of the same shape
    held               the weights of the other terms, (instances, terms)
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
        return float(z[self.factor]) if self.factor >= 0 else 1.0

    def chosen(self, full: Array) -> Array:
        """The entries of (instances, terms) whose weights are unknown."""
        return np.take_along_axis(full, self.terms, -1)

    def spread(self, system: System, weights: Array) -> Array:
        """Weights of these instances' terms, times their slopes, as weights of all of the record's terms."""
        full = np.zeros(tuple(system.records[self.record].terms.shape))
        full[self.instances] = self.slope[:, None] * weights
        return full


@dataclass(frozen=True, eq=False, kw_only=True)
class Gradients:
    """What all least squares problems at a point share; ``terms`` is None where kinks are not weighed."""

    c: Array
    terms: tuple[Array, ...] | None


def gradients(system: System, end: float) -> Gradients:
    """The gradients of constraints and terms; of constraints alone where time is too short for the terms."""
    count = len(system.values)
    rows = system.rows(terms=True, end=end) if system.records else None
    if rows is not None:
        sizes = np.cumsum([record.terms.numel() for record in system.records])[:-1]
        return Gradients(c=rows[:count].copy(), terms=tuple(np.split(rows[count:], sizes)))
    rows = system.rows(terms=False, end=math.inf)
    assert rows is not None
    return Gradients(c=rows, terms=None if system.records else ())


def jacobian(system: System, shared: Gradients) -> Array:
    """The gradients of the constraints, by row; kinks at their largest terms."""
    rows, (weighed, topped) = shared.c.copy(), _pairs(system, weighed=shared.terms is not None)
    top = [record.top() for record in system.records]
    z = _at_top(weighed, top, np.ones(len(rows)))
    for pair in (p for p in weighed if p.function):
        rows[pair.function - 1] += system.pull([(system.records[pair.record].terms, pair.spread(system, pair.of(z)))])
    for pair in (p for p in topped if p.function):
        rows[pair.function - 1] += system.pull([(system.records[pair.record].terms, _share(system, pair, top))])
    return rows


def _at_top(pairs: list[Pair], top: list[Array], nu: Array) -> Array:
    """The unknowns where every kink takes its largest terms."""
    z = np.concatenate([nu, np.zeros(sum(pair.at.size for pair in pairs))])
    for pair in pairs:
        z[pair.at] = pair.chosen(top[pair.record][pair.instances]) * pair.times(z)
    return z


def optimum(
    system: System,
    shared: Gradients,
    end: float,
    prescribed: Mapping[str, float] | None = None,
    held: Collection[int] = (),
) -> Optimum:
    """The least residual over all admissible multipliers and weights; over the weights alone where multipliers are given.

    A constraint that ``given`` does not name has multiplier 0. The records ``held`` keep the weights of their largest terms.
    """
    count = len(system.values)
    top = [record.top() for record in system.records]
    nu = np.zeros(count) if prescribed is None else np.array([float(prescribed.get(label, 0.0)) for label in system.labels])
    pairs, topped = _pairs(system, weighed=shared.terms is not None, held=held)
    fixed = [(system.records[p.record].terms, _share(system, p, top)) for p in topped if p.function == 0]
    base = system.slope + system.pull(fixed)
    z = _at_top(pairs, top, nu)
    kinked = system.pull([(system.records[p.record].terms, p.spread(system, p.of(z))) for p in pairs if p.function == 0])
    plain = np.linalg.norm(system.tangent(base + kinked))
    c = shared.c.copy()
    for pair in (p for p in topped if p.function):
        c[pair.function - 1] += system.pull([(system.records[pair.record].terms, _share(system, pair, top))])
    if pairs or (count and prescribed is None):
        z = _solve(system, shared, pairs, base, c, z, end, fixed=prescribed is not None)
    multipliers = z[:count]
    weights = [(p.record, p.spread(system, p.of(z))) for p in pairs]
    weights += [(p.record, _share(system, p, top) * (multipliers[p.function - 1] if p.function else 1.0)) for p in topped]
    weighted: list = [(system.c[k], nu_k) for k, nu_k in enumerate(multipliers) if nu_k]
    weighted += [(system.records[record].terms, shares) for record, shares in weights]
    lagrangian, slacks = system.slope + system.pull(weighted), _slacks(system, pairs, z)
    return Optimum(
        multipliers=multipliers,
        gradient=float(np.linalg.norm(system.tangent(lagrangian))),
        slack=float(np.linalg.norm(slacks)),
        lagrangian=lagrangian,
        missed=float(slacks.sum()),
        weights=tuple(weights),
        plain=float(plain),
        weighed=shared.terms is not None,
        missing=() if prescribed is None else tuple(label for label in system.labels if label not in prescribed),
    )


def _pairs(system: System, *, weighed: bool, held: Collection[int] = ()) -> tuple[list[Pair], list[Pair]]:
    """The kinks whose weights are unknown, each before those inside it, and those at their largest terms (equalities' always)."""
    pairs: list[Pair] = []
    topped: list[Pair] = []
    tops = [record.top() for record in system.records]
    place = len(system.values)

    def add(function: int, factor: int, record: int, instances: Array, slope: Array, free: bool) -> None:
        nonlocal place
        met = system.records[record]
        top = tops[record][instances]
        weights, terms, rest = met.weights, np.zeros((len(instances), 0), dtype=int), top
        if free and record not in held:
            plain = met.kink.sign * met.terms.detach().numpy()[instances]
            weights, terms, rest = met.weights.narrowed(plain, 2 * system.d + len(system.values) + SPARE)
        at = place + np.arange(terms.size).reshape(terms.shape)
        place += at.size
        pair = Pair(
            function=function, factor=factor, record=record, instances=instances, slope=slope, terms=terms, weights=weights,
            at=at, held=rest,
        )  # fmt: skip
        (pairs if free else topped).append(pair)
        fixed = pair.held if free else top
        for instance, term, inner, places, slopes in system.inside.get(record, ()):
            for row in np.flatnonzero(instances == instance):
                if term in terms[row]:
                    add(function, int(at[row, list(terms[row]).index(term)]), inner, places, slope[row] * slopes, free)
                elif fixed[row, term]:
                    add(function, factor, inner, places, slope[row] * fixed[row, term] * slopes, free)

    for function, slopes in enumerate(system.slopes):
        free = weighed and not (function and system.equal[function - 1])
        for record, slope in enumerate(slopes):
            if slope is not None:
                instances = np.flatnonzero(slope)
                add(function, function - 1, record, instances, slope.reshape(-1)[instances], free)
    return pairs, topped


def _share(system: System, pair: Pair, top: list[Array]) -> Array:
    """A kink's subgradient at its largest terms, times its slopes: a weight for every term."""
    return pair.spread(system, top[pair.record][pair.instances])


def _slack_row(system: System, pair: Pair) -> tuple[Array, float]:
    """(by term, constant): the slack of a kink is constant * nu + by term . q nu."""
    record, size = system.records[pair.record], np.abs(pair.slope)
    terms, phi = (record.kink.sign * tensor.detach().numpy()[pair.instances] for tensor in (record.terms, record.value))
    return -size[:, None] * terms, float(size @ phi)


def _slacks(system: System, pairs: list[Pair], z: Array) -> Array:
    """The slack of every function's subgradients."""
    slacks = np.zeros(1 + len(system.values))
    for pair in pairs:
        by_term, constant = _slack_row(system, pair)
        slacks[pair.function] += float((by_term * pair.of(z)).sum()) + constant * pair.times(z)
    return np.maximum(slacks, 0.0)


def _solve(
    system: System, shared: Gradients, pairs: list[Pair], base: Array, c: Array, z: Array, end: float, *, fixed: bool
) -> Array:
    d, count = system.d, len(system.values)
    matrix, offset = np.zeros((d + 2 * count + 1, len(z))), np.zeros(d + 2 * count + 1)
    offset[:d] = base
    matrix[:d, :count] = c.T
    matrix[d + np.arange(count), np.arange(count)] = system.values
    for pair in pairs:
        assert shared.terms is not None
        slopes = np.repeat(pair.slope, pair.at.shape[1])
        rows = shared.terms[pair.record].reshape(-1, pair.held.shape[1], d)[pair.instances]
        chosen = np.take_along_axis(rows, pair.terms[:, :, None], 1).reshape(-1, d)
        matrix[:d, pair.at.ravel()] = (slopes[:, None] * chosen).T
        by_term, constant = _slack_row(system, pair)
        row = d + count + pair.function
        matrix[row, pair.at.ravel()] = pair.chosen(by_term).ravel()
        rest = matrix[:, pair.factor] if pair.factor >= 0 else offset  # what goes with the factor, or by itself
        rest[:d] += np.einsum("i,it,itd->d", pair.slope, pair.held, rows)
        rest[row] += constant + float((by_term * pair.held).sum())
    if fixed:
        offset = offset + matrix[:, :count] @ z[:count]
        groups = [Weighing(part=part, scale=max(p.times(z), 0.0)) for p, part in _parts(pairs, count, shift=count)]
        return np.concatenate([z[:count], _beside_normals(system, matrix[:, count:], offset, groups, z[count:], end)])
    return _beside_normals(system, matrix, offset, _groups(system, pairs), z, end)


def _beside_normals(system: System, matrix: Array, offset: Array, groups: Sequence[Group], z: Array, end: float) -> Array:
    """The least squares with the normals of simple sets among the unknowns, or taken off by ``tangent`` where they are many."""
    size = len(z)
    if (generators := system.generators(MOST_NORMALS)) is None:
        return solve(Squares(matrix=matrix, offset=offset, d=system.d, groups=groups, tangent=system.tangent), z, end)
    columns, free = generators
    beside = np.concatenate([columns, np.zeros((len(matrix) - len(columns), len(free)))])
    if len(free):
        groups = [*groups, Simple(at=size + np.arange(len(free)), free=free)]
    whole = Squares(matrix=np.concatenate([matrix, beside], 1), offset=offset, d=system.d, groups=groups)
    return solve(whole, np.concatenate([z, np.zeros(len(free))]), end)[:size]


def _parts(pairs: list[Pair], count: int, shift: int = 0) -> list[tuple[Pair, Part]]:
    """The kinks that one of ``count`` multipliers scales, or nothing, with those inside them; places are less ``shift``."""
    unknown = [pair for pair in pairs if pair.at.size]

    def part(pair: Pair) -> Part:
        inside: dict[int, tuple[Part, ...]] = {}
        for inner in (p for p in unknown if p.factor >= count and p.factor in pair.at):
            inside[inner.factor - shift] = (*inside.get(inner.factor - shift, ()), part(inner))
        return Part(at=pair.at - shift, weights=pair.weights, inside=inside)

    return [(pair, part(pair)) for pair in unknown if pair.factor < count]


def _groups(system: System, pairs: list[Pair]) -> list[Group]:
    """The sets that the unknowns are in: weights, cones of multipliers with their weights, and plain multipliers."""
    groups: list[Group] = []
    coned: dict[int, list[Part]] = {}
    for pair, part in _parts(pairs, len(system.values)):
        if pair.factor < 0:
            groups.append(Weighing(part=part))
        else:
            coned.setdefault(pair.factor, []).append(part)
    groups += [Cone(at=k, parts=tuple(members)) for k, members in coned.items()]
    plain = np.array([k for k in range(len(system.values)) if k not in coned], dtype=int)
    if len(plain):
        groups.append(Simple(at=plain, free=np.array(system.equal)[plain]))
    return groups
