"""The multipliers and weights with which a point is nearest to stationarity: least squares over a
convex set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fccomodel.core.work import Meter, multiplied, priced
from fccomodel.numerics import fista, min_norm, power_method
from fccomodel.numerics.fista import Minimiser
from fccomodel.report.kkt import working_set
from fccomodel.report.kkt.groups import Array, Cone, Group, Simple, Weighing, parts_of
from fccomodel.report.kkt.least_squares import Squares

#: Iterations of projected gradients at most.
ITERATIONS = 20_000
#: Iterations of projected gradients that are tried before a costly exact answer.
FIRST_ITERATIONS = 200
#: Up to so many unknowns an exact answer is cheap.
CHEAP_UNKNOWNS = 40
#: Up to so many unknowns in polyhedra, their vertices come first: no library is loaded for that.
FEW_UNKNOWNS = 8
#: Counted seconds that the search over vertices may take.
VERTICES_S = 10.0
#: An exact answer that takes more multiplications than this is costly.
COSTLY_MULTIPLICATIONS = 1e8
#: With fewer counted seconds left than this, every exact answer is costly.
LITTLE_TIME_S = 1.0
#: Residual that counts as 0, relative to the residual at the start.
NEGLIGIBLE = 1e-12
#: Iterations of projected gradients that must be affordable, or none are made.
LEAST_ITERATIONS = 20
#: Projections on its kinks' weights that one projection on a cone takes, in a typical search for its root.
PROJECTIONS_OF_CONE = 15


def solve(squares: Squares, start: Array, meter: Meter) -> Array:
    """The z with the least residual, or the best that is found with the work left.

    Many cones come in by a working set. The answer is exact if ``tangent`` is None and the matrix is
    known by its entries and not very large: by cones, else by vertices. Otherwise it comes from
    projected gradients.
    """
    if not squares.size:
        return start
    if squares.tangent is not None or not squares.dense:
        return descend(squares, start, meter).z
    if working_set.helps(squares):
        return working_set.solve(squares, start, meter, _solve_together)
    return _solve_together(squares, start, meter)


def _solve_together(squares: Squares, start: Array, meter: Meter) -> Array:
    """``solve`` for a matrix that is known by its entries, with all unknowns at once."""
    if len(start) <= FEW_UNKNOWNS and _polyhedral(squares):
        solution = _by_vertices(squares, start, meter)
        if solution.exact:
            return solution.z
    solution = _by_cones(squares, start, meter)
    if solution.exact:
        return solution.z
    reduced = squares.compressed()
    multiplications = len(reduced.offset) ** 2 * len(start)
    costly = multiplications > COSTLY_MULTIPLICATIONS or meter.left < LITTLE_TIME_S
    if costly and len(start) > CHEAP_UNKNOWNS:
        solution = descend(reduced, start, meter, FIRST_ITERATIONS)
        if solution.exact:
            return solution.z
    solution = _by_vertices(squares, solution.z, meter)
    if solution.exact or _length(squares, solution.z) <= NEGLIGIBLE * _length(squares, start):
        return solution.z
    return descend(reduced, solution.z, meter).z


def _polyhedral(squares: Squares) -> bool:
    """Whether all weights are in boxes and simplexes."""
    return all(part.weights.kind in ("box", "simplex") for part in parts_of(squares.groups))


def _length(squares: Squares, z: Array) -> float:
    """Norm of the residual."""
    return float(np.linalg.norm(squares.residual(z)))


def _by_vertices(squares: Squares, start: Array, meter: Meter) -> Minimiser:
    """The nearest point from the vertices and rays of the sets."""
    part = meter.part(VERTICES_S)
    generators = _generators(squares.groups, start)
    z, exact = min_norm.nearest(*squares.stacked(), generators, start, part)
    meter.spend(part.spent)
    return Minimiser(z, exact)


def _by_cones(squares: Squares, start: Array, meter: Meter) -> Minimiser:
    """The answer of the interior-point method on the sets' cones, or the start if that is better."""
    from fccomodel.report.kkt import by_cones

    answer = by_cones.solve(squares, meter)
    if answer is None:
        return Minimiser(start, False)
    z, ended = answer
    better = _no_worse(squares, z, start)
    return better._replace(exact=better.exact and ended)


def _no_worse(squares: Squares, z: Array, start: Array) -> Minimiser:
    """The unknowns moved into their sets, or the start if that is better."""
    for group in squares.groups:
        group.project(z)
    if _length(squares, z) <= _length(squares, start):
        return Minimiser(z, True)
    return Minimiser(start, False)


def _generators(groups: Sequence[Group], start: Array) -> min_norm.Generators:
    """The sets of all groups by linear minimisation."""

    def vertex(slope: Array) -> Array:
        """The vertex of the weights that is lowest along a slope."""
        z = np.zeros(len(start))
        for group in groups:
            if isinstance(group, Weighing):
                z += group.lowest(slope)
        return z

    def rays(slope: Array) -> Iterator[Array]:
        """The rays of the cones that descend along a slope."""
        for group in groups:
            if not isinstance(group, Weighing):
                yield from group.rays(slope)

    parts = list(parts_of(groups))
    round_s = sum(part.weights.projection_s(part.at.size) for part in parts)
    round_s += multiplied(len(parts) * len(start))
    return min_norm.Generators(vertex=vertex, rays=rays, round_s=round_s)


def descend(squares: Squares, start: Array, meter: Meter, iterations: int = ITERATIONS) -> Minimiser:
    """FISTA with restarts, with the work left; the unknowns are scaled so that their columns have one
    norm."""
    projection_s = _projection_s(squares.groups)
    if LEAST_ITERATIONS * projection_s > meter.left:
        return Minimiser(start, False)
    scale = _scales(squares)
    reduced = squares.scaled(scale).compressed()

    def project(z: Array) -> Array:
        """The projection on the groups' sets, in scaled units."""
        z = z * scale
        for group in squares.groups:
            group.project(z)
        return z / scale

    begin = project(start / scale)
    lipschitz = _lipschitz(reduced)
    if not lipschitz:
        return Minimiser(begin * scale, True)
    solution = fista.least_squares(
        reduced.residual,
        reduced.pulled,
        project,
        begin,
        lipschitz=lipschitz,
        price=_price(reduced, begin) + projection_s,
        meter=meter,
        iterations=iterations,
    )
    return Minimiser(solution.z * scale, solution.exact)


def _price(squares: Squares, z: Array) -> float:
    """Counted seconds of an iteration: passes over the rows, products with the matrix, and the rest."""
    if isinstance(squares.matrix, np.ndarray):
        entries = squares.matrix.size
    else:
        entries = 0
    passes = priced(lambda: squares.pulled(squares.residual(z)))[1]
    return passes + multiplied(2 * entries + 20 * len(z), calls=20)


def _projection_s(groups: Sequence[Group]) -> float:
    """Counted seconds of one projection on the weights of kinks."""
    total = 0.0
    for group in groups:
        once = sum(part.weights.projection_s(part.at.size) for part in parts_of([group]))
        if isinstance(group, Cone):
            total += PROJECTIONS_OF_CONE * once
        else:
            total += once
    return total


def _lipschitz(squares: Squares, rounds: int = 30) -> float:
    """The largest eigenvalue of the squares' Hessian without ``tangent``, by the power method, and a
    tenth more."""
    linear = Squares(
        matrix=squares.matrix,
        offset=np.zeros(len(squares.offset)),
        owner=squares.owner,
        rate=squares.rate,
        constant=np.zeros(len(squares.constant)),
        diagonal=squares.diagonal,
    )
    if not squares.dense:
        rounds = rounds // 3
    return 1.1 * power_method.largest_eigenvalue(
        lambda z: linear.pulled(linear.residual(z)), squares.size, rounds
    )


def _scales(squares: Squares) -> Array:
    """Factors that give the columns one norm. All unknowns of a cone have the same factor, so that it
    stays a cone."""
    norms = squares.norms()
    typical = float(norms.max()) or 1.0
    scale = np.ones(len(norms))
    for group in squares.groups:
        if isinstance(group, Simple):
            sizes, least = norms[group.at], 1e-12 * typical
            scale[group.at] = np.where(sizes > least, typical / np.maximum(sizes, least), 1.0)
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
