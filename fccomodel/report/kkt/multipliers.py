"""The multipliers and weights with which a point comes nearest to stationarity: least squares over a
convex set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fccomodel.core.work import Meter, multiplied, priced
from fccomodel.numerics import fista, min_norm, power_method
from fccomodel.numerics.fista import Found
from fccomodel.report.kkt import bounded
from fccomodel.report.kkt.groups import Array, Cone, Group, Simple, Weighing, parts_of
from fccomodel.report.kkt.least_squares import Squares

#: Iterations of projected gradients at most.
ITERATIONS = 20_000
#: From so many unknowns on, vertices are too many.
MANY = 40
#: Up to so many unknowns in polyhedra, their vertices come first: no library is loaded for that.
FEW = 8
#: Counted seconds for an exact answer, before one by projected gradients is tried.
PATIENCE_S = 10.0
#: From so many multiplications on, or with fewer counted seconds left, projected gradients are
#: tried before an exact answer, for so many iterations.
DEAR, LITTLE, FIRST = 1e8, 1.0, 200


def solve(squares: Squares, start: Array, meter: Meter) -> Array:
    """The z with the least residual; the best found with the work left.

    Exact where ``tangent`` is None and the matrix is known by its entries, and not very large; else
    by projected gradients.
    """
    if not squares.size:
        return start
    if squares.tangent is not None or not squares.dense:
        return descend(squares, start, meter).z
    polyhedral = all(part.weights.kind in ("box", "simplex") for part in parts_of(squares.groups))
    if polyhedral and len(start) <= FEW and (found := _by_vertices(squares, start, meter)).exact:
        return found.z
    if (found := _by_cones(squares, start, meter)).exact:
        return found.z
    reduced = squares.compressed()
    if len(start) > MANY and (len(reduced.offset) ** 2 * len(start) > DEAR or meter.left < LITTLE):
        found = descend(reduced, start, meter, FIRST)
    if not found.exact and len(start) > MANY and polyhedral:
        found = _bounded(reduced, found.z, meter)
    if not found.exact:
        found = _by_vertices(squares, found.z, meter)
    if found.exact:
        return found.z
    return descend(reduced, found.z, meter).z


def _by_vertices(squares: Squares, start: Array, meter: Meter) -> Found:
    """By the vertices and rays of the sets."""
    part = meter.part(PATIENCE_S)
    found = Found(*min_norm.nearest(*squares.stacked(), _generators(squares.groups, start), start, part))
    meter.spend(part.spent)
    return found


def _by_cones(squares: Squares, start: Array, meter: Meter) -> Found:
    """By the interior point on the sets' cones, where it is no worse than the start."""
    from fccomodel.report.kkt import by_cones

    found = by_cones.solve(squares, meter)
    if found is None:
        return Found(start, False)
    better = _no_worse(squares, found[0], start)
    return better._replace(exact=better.exact and found[1])


def _bounded(squares: Squares, start: Array, meter: Meter) -> Found:
    """By the interior point in half the work left, where it is no worse than the start."""
    part = meter.part(meter.left / 2)
    better = _no_worse(
        squares, bounded.solve(squares, bounded.limits(squares.groups, squares.size), part), start
    )
    meter.spend(part.spent)
    return better._replace(exact=better.exact and not part.over)


def _no_worse(squares: Squares, z: Array, start: Array) -> Found:
    """Unknowns in their sets, where they are no worse than the start; exact where the method that
    found them came to its end."""
    for group in squares.groups:
        group.project(z)
    better = np.linalg.norm(squares.residual(z)) <= np.linalg.norm(squares.residual(start))
    if better:
        return Found(z, True)
    return Found(start, False)


def _generators(groups: Sequence[Group], start: Array) -> min_norm.Generators:
    def vertex(slope: Array) -> Array:
        z = np.zeros(len(start))
        for group in groups:
            if isinstance(group, Weighing):
                z += group.lowest(slope)
        return z

    def rays(slope: Array) -> Iterator[Array]:
        for group in groups:
            if not isinstance(group, Weighing):
                yield from group.rays(slope)

    return min_norm.Generators(vertex=vertex, rays=rays)


def descend(squares: Squares, start: Array, meter: Meter, iterations: int = ITERATIONS) -> Found:
    """FISTA with restarts, with the work left, in unknowns whose columns are of one size."""
    scale = _scales(squares)
    reduced = squares.scaled(scale).compressed()

    def project(z: Array) -> Array:
        z = z * scale
        for group in squares.groups:
            group.project(z)
        return z / scale

    begin = project(start / scale)
    lipschitz = _lipschitz(reduced)
    if not lipschitz:
        return Found(begin * scale, True)
    found = fista.least_squares(
        reduced.residual,
        reduced.pulled,
        project,
        begin,
        lipschitz=lipschitz,
        price=_price(reduced, begin),
        meter=meter,
        iterations=iterations,
    )
    return Found(found.z * scale, found.exact)


def _price(squares: Squares, z: Array) -> float:
    """Counted seconds of an iteration: of passes over the rows, of the matrix's entries, and of the rest."""
    entries = squares.matrix.size if isinstance(squares.matrix, np.ndarray) else 0
    return priced(lambda: squares.pulled(squares.residual(z)))[1] + multiplied(
        2 * entries + 20 * len(z), calls=20
    )


def _lipschitz(squares: Squares, rounds: int = 30) -> float:
    """The largest eigenvalue of the squares' Hessian, with a margin, by the power method; normals are
    left in."""
    linear = Squares(
        matrix=squares.matrix,
        offset=np.zeros(len(squares.offset)),
        owner=squares.owner,
        rate=squares.rate,
        constant=np.zeros(len(squares.constant)),
        diagonal=squares.diagonal,
    )
    if squares.dense:
        rounds = rounds
    else:
        rounds = rounds // 3
    return 1.1 * power_method.largest_eigenvalue(
        lambda z: linear.pulled(linear.residual(z)), squares.size, rounds
    )


def _scales(squares: Squares) -> Array:
    """Factors that make columns of one size. The entries of a cone have one factor, so that it stays a
    cone."""
    norms = squares.norms()
    typical = float(norms.max()) or 1.0
    scale = np.ones(len(norms))
    for group in squares.groups:
        if isinstance(group, Simple):
            sizes = norms[group.at]
            scale[group.at] = np.where(
                sizes > 1e-12 * typical, typical / np.maximum(sizes, 1e-12 * typical), 1.0
            )
        elif isinstance(group, Cone):
            places = np.concatenate(
                [[group.at], *(p.at.ravel() for part in group.parts for p in part.all())]
            ).astype(int)
            size = float(norms[places].max())
            if size > 1e-12 * typical:
                scale[places] = typical / size
            else:
                scale[places] = 1.0
    return scale
