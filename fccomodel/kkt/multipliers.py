"""The multipliers and weights with which a point comes nearest to stationarity: least squares over a convex set."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, copysign, log2

import numpy as np

from fccomodel.kkt import bounded, min_norm
from fccomodel.kkt.weights import Weights

Array = np.ndarray
#: Iterations at most; without progress for this many, the solver stops. From ``MANY`` unknowns on, vertices are too many.
ITERATIONS, PATIENCE, MANY = 20_000, 400, 40
#: Seconds for an exact answer, before one by projected gradients is tried.
PATIENCE_S = 10.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Simple:
    """Independent entries: multipliers of constraints without kinks; ``free`` marks those of equalities."""

    at: Array
    free: Array

    def project(self, z: Array) -> None:
        z[self.at] = np.where(self.free, z[self.at], np.maximum(z[self.at], 0))

    def rays(self, slope: Array) -> Iterator[Array]:
        """Of each entry, the direction in which it may go down the slope."""
        for place, free in zip(self.at, self.free, strict=True):
            if slope[place] < 0 or free and slope[place] > 0:
                ray = np.zeros(len(slope))
                ray[place] = -np.sign(slope[place])
                yield ray


@dataclass(frozen=True, eq=False, kw_only=True)
class Part:
    """The weights of a kink, (instances, terms): each row in the set ``weights`` times a scale.

    inside   by place of a weight, the kinks inside that term: their weights are scaled by that one
    """

    at: Array
    weights: Weights
    inside: Mapping[int, tuple[Part, ...]] = field(default_factory=dict)

    def nearest(self, z: Array, scale: float) -> Array:
        """The nearest weights to those in z, kinks inside left alone."""
        return scale * self.weights.project(z[self.at] / scale) if scale > 1e-200 else np.zeros(self.at.shape)

    def project(self, z: Array, scale: float) -> None:
        """The nearest weights; of kinks inside, the nearest after that, which is the nearest of all only without them."""
        z[self.at] = self.nearest(z, scale)
        for place, parts in self.inside.items():
            for part in parts:
                part.project(z, max(float(z[place]), 0.0))

    def lowest(self, slope: Array) -> tuple[Array, float]:
        """The weights with the least ``slope . z``, as a vector of all unknowns, and this least."""
        total, below = slope[self.at].astype(float), {}
        for place, parts in self.inside.items():
            found = [part.lowest(slope) for part in parts]
            below[place] = sum((z for z, _ in found), np.zeros(len(slope)))
            total[self.at == place] += sum(value for _, value in found)
        z = np.zeros(len(slope))
        z[self.at] = chosen = self.weights.top(-total)
        for place, rest in below.items():
            z += z[place] * rest
        return z, float((chosen * total).sum())

    def all(self) -> Iterator[Part]:
        yield self
        for parts in self.inside.values():
            for part in parts:
                yield from part.all()


@dataclass(frozen=True, eq=False, kw_only=True)
class Weighing:
    """The weights of a kink in the objective."""

    part: Part
    scale: float = 1.0

    def project(self, z: Array) -> None:
        self.part.project(z, self.scale)

    def lowest(self, slope: Array) -> Array:
        """The weights with the least ``slope . z``."""
        return self.scale * self.part.lowest(slope)[0]


@dataclass(frozen=True, eq=False, kw_only=True)
class Cone:
    """A constraint's multiplier with the weights of its kinks times that multiplier: mu_j in lambda Q_j, lambda >= 0."""

    at: int
    parts: tuple[Part, ...]

    def project(self, z: Array) -> None:
        if len(self.parts) == 1 and self.parts[0].weights.kind == "box" and self.parts[0].at.size == 1:
            self._wedge(z)
            return
        high = max(0.0, z[self.at]) + sum(10 * float(np.abs(z[part.at]).sum()) for part in self.parts) + 1e-300
        scale = _root(lambda scale: self._rises(z, scale), 0.0, high)
        z[self.at] = scale
        for part in self.parts:
            part.project(z, scale)

    def rays(self, slope: Array) -> Iterator[Array]:
        """The multiplier 1 with the weights that go down the slope fastest."""
        ray = np.zeros(len(slope))
        ray[self.at] = 1.0
        ray = sum((part.lowest(slope)[0] for part in self.parts), ray)
        if slope @ ray < 0:
            yield ray

    def _rises(self, z: Array, scale: float) -> float:
        """The derivative in lambda of half the squared distance to the cone's slice at lambda."""
        slope = scale - z[self.at]
        for part in self.parts:
            slope -= float(part.weights.support(z[part.at] - part.nearest(z, scale)).sum())
        return slope

    def _wedge(self, z: Array) -> None:
        """One weight in an interval: the cone {low lambda <= mu <= high lambda} of the plane, between two rays."""
        (part,) = self.parts
        place, weights = part.at.item(), part.weights
        x, y = z[self.at], z[place]
        if x >= 0 and weights.low * x <= y <= weights.high * x:
            return
        best = (np.inf, 0.0, 0.0)
        for slope in (weights.low, weights.high):
            along = max(0.0, (x + slope * y) / (1 + slope**2))
            best = min(best, ((along - x) ** 2 + (slope * along - y) ** 2, along, slope * along))
        z[self.at], z[place] = best[1:]


def _root(f: Callable[[float], float], low: float, high: float, accuracy: float = 1e-16) -> float:
    """Where f, which does not decrease, changes its sign between the two (or the nearer end), to ``accuracy`` of their distance.

    False position kept so near the middle that no more steps than bisection's, and one, are taken (I. Oliveira and R. Takahashi,
    An enhancement of the bisection method average performance preserving minmax optimality, 2020).
    """
    f_low, f_high, length = f(low), f(high), high - low
    if f_low >= 0 or f_high <= 0:
        return low if f_low >= 0 else high
    steps = ceil(log2(1 / accuracy)) + 1
    for k in range(steps):
        middle, half = (low + high) / 2, (high - low) / 2
        if half <= accuracy * length:
            break
        guess = (low * f_high - high * f_low) / (f_high - f_low)
        inward = copysign(1.0, middle - guess)
        place = guess + inward * min(0.4 * half**2 / length, abs(middle - guess))
        reach = accuracy * length * 2.0 ** (steps - k) - half
        place = place if abs(place - middle) <= reach else middle - inward * reach
        here = f(place)
        if here == 0:
            return place
        low, f_low, high, f_high = (place, here, high, f_high) if here < 0 else (low, f_low, place, here)
    return (low + high) / 2


Group = Simple | Weighing | Cone


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
    scale: Array = field(default_factory=lambda: np.ones(0))

    def residual(self, z: Array) -> Array:
        found = self.matrix @ z + self.offset
        if self.tangent is not None:
            found[: self.d] = self.tangent(found[: self.d])
        return found


def solve(problem: Squares, start: Array, deadline: float) -> Array:
    """The z with the least residual; the best found by ``deadline`` (perf_counter).

    Exact where every set is a polytope or a polyhedral cone and ``tangent`` is None; else by projected gradients.
    """
    if not problem.matrix.shape[1]:
        return start
    if problem.tangent is None:
        matrix, offset = _compressed(problem.matrix, problem.offset)
        if len(start) > MANY and all(part.weights.kind in ("box", "simplex") for part in _parts(problem.groups)):
            found = bounded.solve(matrix, offset, _bounds(problem.groups), _sums(problem.groups, len(start)), deadline)
            for group in problem.groups:
                group.project(found)
            if np.linalg.norm(problem.residual(found)) <= np.linalg.norm(problem.residual(start)):
                return found
        soon = min(deadline, time.perf_counter() + PATIENCE_S)
        found, exact = min_norm.nearest(matrix, offset, _generators(problem.groups, start), start, soon)
        if exact:
            return found
        start = found
    return descend(problem, start, deadline)


def _parts(groups: Sequence[Group]) -> Iterator[Part]:
    for group in groups:
        for part in (group.part,) if isinstance(group, Weighing) else group.parts if isinstance(group, Cone) else ():
            yield from part.all()


def _scaled(groups: Sequence[Group]) -> Iterator[tuple[Part, int, float]]:
    """Every part with the place of what scales it and the scale there, or -1 and a number."""

    def below(part: Part, place: int, scale: float) -> Iterator[tuple[Part, int, float]]:
        yield part, place, scale
        for inner, parts in part.inside.items():
            for own in parts:
                yield from below(own, inner, 1.0)

    for group in groups:
        if isinstance(group, Weighing):
            yield from below(group.part, -1, group.scale)
        elif isinstance(group, Cone):
            for part in group.parts:
                yield from below(part, group.at, 1.0)


def _bounds(groups: Sequence[Group]) -> bounded.Rows:
    """The bounds of the groups' sets, whose weights are boxes and simplexes, as inequalities."""
    rows: list[tuple[Array, float, int, float, float]] = []  # places, entry there, another place, entry there, right side
    for group in groups:
        if isinstance(group, Simple):
            rows.append((group.at[~group.free], -1.0, -1, 0.0, 0.0))
        elif isinstance(group, Cone):
            rows.append((np.array([group.at]), -1.0, -1, 0.0, 0.0))
    for part, place, scale in _scaled(groups):
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
    for part, place, scale in _scaled(groups):
        if part.weights.kind == "simplex" and part.at.size:
            own = np.zeros((len(part.at), size))
            np.put_along_axis(own, part.at, 1.0, 1)
            if place >= 0:
                own[:, place] -= part.weights.total
            rows.append(own)
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
    """FISTA with restarts, until ``deadline`` (perf_counter); each group's entries have one scale, so that cones stay cones."""
    matrix, offset, d = problem.matrix, problem.offset, problem.d
    scale = np.ones(matrix.shape[1])
    norms = np.linalg.norm(matrix, axis=0)
    typical = float(norms.max()) or 1.0
    for group in problem.groups:
        if isinstance(group, Simple):
            own = norms[group.at]
            scale[group.at] = np.where(own > 1e-12 * typical, typical / np.maximum(own, 1e-12 * typical), 1.0)
        elif isinstance(group, Cone):
            places = np.concatenate([[group.at], *(p.at.ravel() for part in group.parts for p in part.all())]).astype(int)
            size = float(norms[places].max())
            scale[places] = typical / size if size > 1e-12 * typical else 1.0
    if problem.tangent is None:
        scaled, shifted = _compressed(matrix * scale, offset)
        reduced = Squares(matrix=scaled, offset=shifted, d=0)
    else:
        scaled = matrix * scale
        reduced = Squares(matrix=scaled, offset=offset, d=d, tangent=problem.tangent)

    def project(z: Array) -> Array:
        z = z * scale
        for group in problem.groups:
            group.project(z)
        return z / scale

    lipschitz = np.linalg.norm(scaled, 2) ** 2
    if not lipschitz:
        return project(start / scale) * scale
    z = project(start / scale)
    ahead, momentum = z, 1.0
    best, record, since = z, np.inf, 0
    for iteration in range(ITERATIONS):
        rest = reduced.residual(ahead)
        new = project(ahead - scaled.T @ rest / lipschitz)
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
