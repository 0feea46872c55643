"""The multipliers and the subgradients of kinks that make a point's KKT residual least, or the
subgradients for given multipliers.

Unknown are the multipliers nu and, for every function (f or a c_k) that contains a kink, the kink's
weights q times the function's multiplier (1 for f). For a kink inside a term of another kink, q is
multiplied by the weight of that term too. With s the functions' gradients with kinks held fixed, a
their derivatives in the kinks' values phi, and t the kinks' terms, these squares are summed:

    s_f + sum nu_k s_k + sum a q t', less the normals of simple sets
    nu_k c_k
    |a| (nu phi - q t) of every function

If the gradients are few they are held by row. Otherwise only their products are known, which take
one pass over the rows each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from fccomodel.core.work import Meter
from fccomodel.report.kkt.groups import Cone, Group, KinkWeights, Simple, Weighing
from fccomodel.report.kkt.lagrangian import LagrangianTerm, gradient, of_members
from fccomodel.report.kkt.least_squares import LinearOperator, ProductOperator, Squares
from fccomodel.report.kkt.multipliers import solve
from fccomodel.report.point.pairs import (
    Array,
    Charge,
    KinkInFunction,
    pairs_of,
    scattered,
    slack_row,
    summed,
    tensors,
)
from fccomodel.report.point.rows import Gradients
from fccomodel.report.point.system import System, norm

#: Normals of simple sets that are unknowns of their own, at most.
MOST_NORMALS = 1_500


@dataclass(frozen=True, eq=False, kw_only=True)
class Optimum:
    """Multipliers and the residuals they leave.

    gradient    norm of the Lagrangian's gradient less the normals of simple sets
    slack       norm of the errors of the chosen subgradients, which are slack-subgradients
    lagrangian  the Lagrangian's gradient itself, with the chosen weights
    missed      the sum of the slacks
    weights     of the terms of records in this gradient, by record
    plain       norm of the objective's own gradient, its kinks at their largest terms
    unknowns    the multipliers of the constraints kept, and the weights
    weighed     whether the weights of kinks were chosen; if too little work was left, the largest
                terms have all weight
    missing     labels without a given multiplier
    """

    multipliers: Array
    gradient: float
    slack: float
    plain: float
    lagrangian: Array
    missed: float
    weights: tuple[tuple[int, Array], ...]
    unknowns: Array
    weighed: bool = True
    missing: tuple[str, ...] = ()


def optimum(
    system: System,
    shared: Gradients,
    meter: Meter,
    prescribed: Mapping[str, float] | None = None,
    held: Collection[int] = (),
    start: Array | None = None,
) -> Optimum:
    """The least residual over all admissible multipliers and weights, or over the weights alone if
    multipliers are prescribed.

    prescribed   multipliers by label; constraints that it does not name have multiplier 0
    held         records that keep the weights of their largest terms
    start        unknowns at which the search begins; multipliers 0 and the largest terms if None
    """
    nu = np.zeros(len(system.values))
    if prescribed is not None:
        nu = np.array([float(prescribed.get(label, 0.0)) for label in system.labels])
    lagrangian = Lagrangian(system, shared.weighed, held, nu)
    first = lagrangian.at_top(np.zeros(len(system.kept)))
    plain = norm(system.tangent(lagrangian.gradient(first) - lagrangian.rest))
    z = lagrangian.at_top(nu[system.kept])
    if lagrangian.pairs or (len(nu) and prescribed is None):
        begin = z if start is None else start
        z = _solve(lagrangian, shared, begin, meter, fixed=prescribed is not None)
    missing: tuple[str, ...] = ()
    if prescribed is not None:
        missing = tuple(label for label in system.labels if label not in prescribed)
    multipliers = nu.copy()
    multipliers[system.kept] = z[: len(system.kept)]
    slope, slacks = lagrangian.gradient(z), lagrangian.slacks(z)
    return Optimum(
        multipliers=multipliers,
        gradient=norm(system.tangent(slope)),
        slack=norm(slacks),
        lagrangian=slope,
        missed=float(slacks.sum()),
        weights=tuple(summed(system, lagrangian.charges(z)).items()),
        plain=plain,
        unknowns=z,
        weighed=shared.weighed,
        missing=missing,
    )


class Lagrangian:
    """Gradient and slacks of the Lagrangian as affine functions of the unknowns.

    The unknowns are the multipliers of the constraints kept, then the weights of the ``pairs``. The
    pairs in ``topped`` give all weight to their largest terms. Constraints that are not kept have
    the multipliers ``nu``.
    """

    def __init__(self, system: System, weighed: bool, held: Collection[int], nu: Array):
        self.system, self.count = system, len(system.kept)
        self.pairs, self.topped = pairs_of(system, weighed=weighed, held=held)
        self.tops = [record.top() for record in system.records]
        self.slack_rows = [slack_row(system, pair) for pair in self.pairs]
        self.size = self.count + sum(pair.at.size for pair in self.pairs)
        others = nu.copy()
        others[system.kept] = 0.0
        if others.any():
            self.rest = _of_others(system, others)
        else:
            self.rest = np.zeros(system.d)

    def at_top(self, nu: Array) -> Array:
        """The unknowns where every kink takes its largest terms."""
        z = np.concatenate([nu, np.zeros(self.size - self.count)])
        for pair in self.pairs:
            z[pair.at] = pair.chosen(self.tops[pair.record][pair.instances]) * pair.times(z)
        return z

    def charges(self, z: Array) -> list[Charge]:
        """The weights of all terms."""
        topped = [pair.charge(self.tops[pair.record][pair.instances] * pair.times(z)) for pair in self.topped]
        return [pair.charge(pair.of(z)) for pair in self.pairs] + topped

    def gradient(self, z: Array) -> Array:
        """The Lagrangian's gradient, without the normals of simple sets."""
        system, nu = self.system, scattered(self.system, z[: self.count])
        of_kinks = tensors(system, self.charges(z))
        return system.slope + self.rest + system.pull([(system.c, nu), *of_kinks])

    def slacks(self, z: Array) -> Array:
        """The error of each function's chosen subgradients: by how much they miss its value."""
        slacks = np.zeros(1 + self.count)
        for pair, (by_term, constant) in zip(self.pairs, self.slack_rows, strict=True):
            slacks[pair.function] += float((by_term * pair.of(z)).sum()) + constant * pair.times(z)
        return np.maximum(slacks, 0.0)

    def pushed(self, direction: Array) -> Array:
        """The transpose of the gradient's linear part, times a direction."""
        c, terms = self.system.push(direction)
        values = np.zeros(self.size)
        values[: self.count] = c[self.system.kept]
        for pair in self.pairs:
            along = pair.slope[:, None] * terms[pair.record][pair.instances]
            values[pair.at] += pair.chosen(along)
            if pair.factor >= 0:
                values[pair.factor] += float((along * pair.held).sum())
        for pair in (p for p in self.topped if p.factor >= 0):
            record, instances, weights = pair.charge(self.tops[pair.record][pair.instances])
            values[pair.factor] += float((weights * terms[record][instances]).sum())
        return values

    def matrix(self, shared: Gradients) -> LinearOperator:
        """The gradient's linear part: by its entries if the gradients are held, else by its products."""
        if shared.c is None:
            constant = self.gradient(np.zeros(self.size))
            return ProductOperator(
                (self.system.d, self.size), lambda z: self.gradient(z) - constant, self.pushed
            )
        columns = np.zeros((self.system.d, self.size))
        columns[:, : self.count] = shared.c.T
        held: dict[int, list[Charge]] = {}
        for pair in self.pairs:
            numbers, rows = shared.terms[pair.record]
            slopes = np.repeat(pair.slope, pair.at.shape[1])
            columns[:, pair.at.ravel()] = slopes * rows[np.searchsorted(numbers, pair.numbers.ravel())].T
            if pair.factor >= 0 and pair.held.any():
                held.setdefault(pair.factor, []).append(pair.charge(pair.held))
        for pair in (p for p in self.topped if p.factor >= 0):
            held.setdefault(pair.factor, []).append(pair.charge(self.tops[pair.record][pair.instances]))
        for place, charges in held.items():
            columns[:, place] += self.system.pull(tensors(self.system, charges))
        return columns

    def squares(self, shared: Gradients) -> Squares:
        """The least squares of all unknowns."""
        owner = np.zeros(self.size, dtype=int)
        rate = np.zeros(self.size)
        diagonal = np.zeros(self.size)
        constant = np.zeros(1 + self.count)
        owner[: self.count] = 1 + np.arange(self.count)
        diagonal[: self.count] = self.system.values[self.system.kept]
        for pair, (by_term, alone) in zip(self.pairs, self.slack_rows, strict=True):
            owner[pair.at] = pair.function
            rate[pair.at] += pair.chosen(by_term)
            more = alone + float((by_term * pair.held).sum())
            if pair.factor >= 0:
                rate[pair.factor] += more
            else:
                constant[pair.function] += more
        return Squares(
            matrix=self.matrix(shared),
            offset=self.gradient(np.zeros(self.size)),
            owner=owner,
            rate=rate,
            constant=constant,
            diagonal=diagonal,
            groups=_groups(self.system, self.pairs),
        )


def _of_others(system: System, multipliers: Array) -> Array:
    """The gradient of the constraints that are not kept, times their multipliers; at kinks, the
    subgradient of automatic differentiation."""
    at = system.flat
    constraints = [
        LagrangianTerm(constraint.body, 1.0, weights, constraint)
        for constraint, weights in of_members(system, multipliers)
    ]
    return gradient(system, [(root, root.expr) for root in constraints], at)


def _solve(lagrangian: Lagrangian, shared: Gradients, z: Array, meter: Meter, *, fixed: bool) -> Array:
    """The best unknowns; ``fixed`` keeps the multipliers of z."""
    squares, count = lagrangian.squares(shared), lagrangian.count
    if fixed:
        at = np.concatenate([z[:count], np.zeros(len(z) - count)])
        groups: list[Group] = [
            Weighing(part=part, scale=max(pair.times(z), 0.0))
            for pair, part in _parts(lagrangian.pairs, count, shift=count)
        ]
        missed = np.bincount(squares.owner, squares.rate * at, 1 + count) + squares.constant
        matrix: LinearOperator = _columns_from(squares.matrix, count, len(z))
        squares = Squares(
            matrix=matrix,
            offset=squares.matrix @ at + squares.offset,
            owner=squares.owner[count:],
            rate=squares.rate[count:],
            constant=missed,
            diagonal=squares.diagonal[count:],
            groups=groups,
        )
        return np.concatenate([z[:count], _beside_normals(lagrangian.system, squares, z[count:], meter)])
    return _beside_normals(lagrangian.system, squares, z, meter)


def _columns_from(matrix: LinearOperator, first: int, size: int) -> LinearOperator:
    """The columns from ``first`` on of a matrix with ``size`` columns."""
    if isinstance(matrix, np.ndarray):
        columns: Array = matrix[:, first:]
        return columns
    before = np.zeros(first)
    shape = (matrix.shape[0], size - first)
    return ProductOperator(
        shape, lambda z: matrix @ np.concatenate([before, z]), lambda rest: (matrix.T @ rest)[first:]
    )


def _beside_normals(system: System, squares: Squares, z: Array, meter: Meter) -> Array:
    """The best unknowns, with the normals of simple sets as further unknowns, or taken off by
    ``tangent`` if they are too many."""
    if not system.projected:
        return solve(squares, z, meter)
    if squares.dense:
        generators = system.generators(MOST_NORMALS)
    else:
        generators = None
    if generators is None:
        return solve(squares.over(system.tangent), z, meter)
    columns, free = generators
    start = np.concatenate([z, np.zeros(len(free))])
    return solve(squares.extended(columns, free), start, meter)[: len(z)]


def _parts(
    pairs: list[KinkInFunction], count: int, shift: int = 0
) -> list[tuple[KinkInFunction, KinkWeights]]:
    """The outermost kinks, which one of ``count`` multipliers scales or nothing, with those inside
    them. ``shift`` is taken off all places."""
    unknown = [pair for pair in pairs if pair.at.size]
    nested: dict[int, list[KinkInFunction]] = {}
    for pair in (p for p in unknown if p.factor >= count):
        nested.setdefault(pair.factor, []).append(pair)

    def part(pair: KinkInFunction) -> KinkWeights:
        """The part of a pair, with the parts inside it."""
        if nested:
            places = [place for place in pair.at.ravel().tolist() if place in nested]
        else:
            places = []
        inside = {place - shift: tuple(part(inner) for inner in nested[place]) for place in places}
        return KinkWeights(at=pair.at - shift, weights=pair.weights, inside=inside)

    return [(pair, part(pair)) for pair in unknown if pair.factor < count]


def _groups(system: System, pairs: list[KinkInFunction]) -> list[Group]:
    """The sets of the unknowns: weights, cones of multipliers with their weights, and multipliers of
    constraints without kinks."""
    groups: list[Group] = []
    coned: dict[int, list[KinkWeights]] = {}
    for pair, part in _parts(pairs, len(system.kept)):
        if pair.factor < 0:
            groups.append(Weighing(part=part))
        else:
            coned.setdefault(pair.factor, []).append(part)
    groups += [Cone(at=k, parts=tuple(members)) for k, members in coned.items()]
    plain = np.array([k for k in range(len(system.kept)) if k not in coned], dtype=int)
    if len(plain):
        groups.append(Simple(at=plain, free=np.array(system.equal, dtype=bool)[system.kept[plain]]))
    return groups
