"""The multipliers and weights with which a point comes nearest to stationarity: least squares over a convex set."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fccomodel.report import bounded, min_norm
from fccomodel.report.groups import Array, Cone, Group, Simple, Weighing, parts_of, scaled_parts

#: Iterations at most; without progress for this many, the solver stops. From ``MANY`` unknowns on, vertices are too many.
ITERATIONS, PATIENCE, MANY = 20_000, 400, 40
#: Seconds for an exact answer, before one by projected gradients is tried.
PATIENCE_S = 10.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Squares:
    """Minimise half the squared norm of ``matrix z + offset``, its first ``d`` entries after ``tangent``, z in the groups' sets.

    tangent   the part of a vector (of the variables' space) that no normal of their simple sets can cancel; None for all of it
    """

    matrix: Array
    offset: Array
    d: int
    groups: Sequence[Group] = ()
    tangent: Callable[[Array], Array] | None = None

    def residual(self, z: Array) -> Array:
        residual = self.matrix @ z + self.offset
        if self.tangent is not None:
            residual[: self.d] = self.tangent(residual[: self.d])
        return residual


def solve(problem: Squares, start: Array, deadline: float) -> Array:
    """The z with the least residual; the best found by ``deadline`` (perf_counter).

    Exact where every set is a polytope or a polyhedral cone and ``tangent`` is None; else by projected gradients.
    """
    if not problem.matrix.shape[1]:
        return start
    if problem.tangent is None:
        matrix, offset = _compressed(problem.matrix, problem.offset)
        if len(start) > MANY and all(part.weights.kind in ("box", "simplex") for part in parts_of(problem.groups)):
            z = bounded.solve(matrix, offset, _bounds(problem.groups), _sums(problem.groups, len(start)), deadline)
            for group in problem.groups:
                group.project(z)
            if np.linalg.norm(problem.residual(z)) <= np.linalg.norm(problem.residual(start)):
                return z
        soon = min(deadline, time.perf_counter() + PATIENCE_S)
        z, exact = min_norm.nearest(matrix, offset, _generators(problem.groups, start), start, soon)
        if exact:
            return z
        start = z
    return descend(problem, start, deadline)


def _bounds(groups: Sequence[Group]) -> bounded.Rows:
    """The bounds of the groups' sets, whose weights are boxes and simplexes, as inequalities."""
    rows: list[tuple[Array, float, int, float, float]] = []  # places, entry there, another place, entry there, right side
    for group in groups:
        if isinstance(group, Simple):
            rows.append((group.at[~group.free], -1.0, -1, 0.0, 0.0))
        elif isinstance(group, Cone):
            rows.append((np.array([group.at]), -1.0, -1, 0.0, 0.0))
    for part, place, scale in scaled_parts(groups):
        w = part.weights
        low = w.low if w.kind == "box" else 0.0
        ends = [(1.0, w.high)] if w.kind == "box" or w.high < w.total else []
        for sign, end in [*ends, (-1.0, -low)]:
            rows.append((part.at, sign, place, -end, 0.0) if place >= 0 else (part.at, sign, -1, 0.0, end * scale))
    sizes = [at.size for at, *_ in rows]
    at = np.concatenate([places.ravel() for places, *_ in rows]).astype(int)
    near, beside, far, h = (np.repeat(column, sizes) for column in zip(*(row[1:] for row in rows), strict=True))
    return bounded.Rows(at=at, near=near, beside=np.where(beside < 0, at, beside), far=far, h=h)


def _sums(groups: Sequence[Group], size: int) -> tuple[Array, Array]:
    """The equations E z = e of the simplexes: the weights of a row sum to the total times their scale."""
    rows, right = [np.zeros((0, size))], [np.zeros(0)]
    for part, place, scale in scaled_parts(groups):
        if part.weights.kind == "simplex" and part.at.size:
            equations = np.zeros((len(part.at), size))
            np.put_along_axis(equations, part.at, 1.0, 1)
            if place >= 0:
                equations[:, place] -= part.weights.total
            rows.append(equations)
            right.append(np.full(len(part.at), 0.0 if place >= 0 else part.weights.total * scale))
    return np.concatenate(rows), np.concatenate(right)


def _compressed(matrix: Array, offset: Array) -> tuple[Array, Array]:
    """Fewer rows with the same norms."""
    if len(offset) <= matrix.shape[1] + 1:
        return matrix, offset
    stacked: Array = np.asarray(np.linalg.qr(np.column_stack([matrix, offset]), mode="r"))
    return stacked[:, :-1], stacked[:, -1]


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


def descend(problem: Squares, start: Array, deadline: float) -> Array:
    """FISTA with restarts, until ``deadline`` (perf_counter), in unknowns whose columns are of one size."""
    scale = _scales(problem)
    reduced = _rescaled(problem, scale)

    def project(z: Array) -> Array:
        z = z * scale
        for group in problem.groups:
            group.project(z)
        return z / scale

    z = project(start / scale)
    lipschitz = np.linalg.norm(reduced.matrix, 2) ** 2
    if not lipschitz:
        return z * scale
    ahead, momentum = z, 1.0
    best, record, since = z, np.inf, 0
    for iteration in range(ITERATIONS):
        rest = reduced.residual(ahead)
        new = project(ahead - reduced.matrix.T @ rest / lipschitz)
        if lipschitz * np.linalg.norm(new - ahead) < 1e-14:
            return new * scale
        if iteration % 20 == 0:
            size = float(np.linalg.norm(reduced.residual(new)))
            since = 0 if size < record * (1 - 1e-5) else since + 20
            best, record = (new, size) if size < record else (best, record)
            if since >= PATIENCE or time.perf_counter() > deadline:
                break
        if (ahead - new) @ (new - z) > 0:
            ahead, momentum = z, 1.0
            continue
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead, z, momentum = new + (momentum - 1) / following * (new - z), new, following
    return project(best) * scale


def _scales(problem: Squares) -> Array:
    """Factors that make columns of one size. The entries of a cone have one factor, so that it stays a cone."""
    norms = np.linalg.norm(problem.matrix, axis=0)
    typical = float(norms.max()) or 1.0
    scale = np.ones(len(norms))
    for group in problem.groups:
        if isinstance(group, Simple):
            sizes = norms[group.at]
            scale[group.at] = np.where(sizes > 1e-12 * typical, typical / np.maximum(sizes, 1e-12 * typical), 1.0)
        elif isinstance(group, Cone):
            places = np.concatenate([[group.at], *(p.at.ravel() for part in group.parts for p in part.all())]).astype(int)
            size = float(norms[places].max())
            scale[places] = typical / size if size > 1e-12 * typical else 1.0
    return scale


def _rescaled(problem: Squares, scale: Array) -> Squares:
    """The same least squares in the unknowns z / scale, of no more rows than needed; its groups are left out."""
    matrix = problem.matrix * scale
    if problem.tangent is not None:
        return Squares(matrix=matrix, offset=problem.offset, d=problem.d, tangent=problem.tangent)
    matrix, offset = _compressed(matrix, problem.offset)
    return Squares(matrix=matrix, offset=offset, d=0)
