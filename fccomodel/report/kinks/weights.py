"""Sets of weights: a function with a kink is phi(t) = max over q in Q of q.t, and its subgradients are
the q that attain it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from fccomodel.core.work import multiplied
from fccomodel.library.sets.capped_simplex import project_capped
from fccomodel.numerics import ball_maxima
from fccomodel.numerics.ball_maxima import CHI2, KL, TV

#: Distance of terms, relative to 1 + the largest, up to which they count as tied.
TIED = 1e-6
#: Tied terms of a row that have weights of their own, at most, ...
MOST_TIED = 600
#: ... or more, if those of all rows together are at most so many.
MOST_TIED_IN_ALL = 20_000
#: Size of a singular value, relative to the largest, up to which it counts as 0.
VANISHING_SINGULAR_VALUE = 1e-12
#: Halvings of the segment from a distribution to the centre of a ball.
SEGMENT_HALVINGS = 50


@dataclass(frozen=True, kw_only=True)
class WeightSet:
    """Q, a convex set of weights over the last dim; ``kind`` is a key of ``SHAPES``.

    low, high   the ends of a box; ``high`` is also the largest weight of a simplex
    total       the sum of the weights of a simplex
    columns     the entries of each vector or matrix row that the last dim consists of; 0: all of them
    centre      the distribution in the middle of a ball of distributions
    radius      the largest divergence from it
    """

    kind: str
    low: float = 0.0
    high: float = 1.0
    total: float = 1.0
    columns: int = 0
    centre: tuple[float, ...] = ()
    radius: float = 0.0

    @property
    def curved(self) -> bool:
        """Whether Q is no polytope."""
        return SHAPES[self.kind].curved

    def top(self, t: np.ndarray) -> np.ndarray:
        """A q of Q with the largest q.t."""
        return SHAPES[self.kind].top(self, t)

    def project(self, q: np.ndarray) -> np.ndarray:
        """The nearest weights."""
        return SHAPES[self.kind].project(self, q)

    def projection_s(self, entries: int) -> float:
        """Counted seconds of one call of ``project`` for so many entries."""
        shape = SHAPES[self.kind]
        return multiplied(0, calls=shape.calls) + shape.entry_s * entries

    def support(self, t: np.ndarray) -> np.ndarray:
        """phi(t), the largest q.t over Q."""
        return (self.top(t) * t).sum(-1)

    def margin(self, t: np.ndarray) -> np.ndarray:
        """Distance from t to a kink of phi, where a second q attains the largest value."""
        return SHAPES[self.kind].margin(self, t)

    def narrowed(self, t: np.ndarray, most: int) -> tuple[WeightSet, np.ndarray, np.ndarray]:
        """The terms of each row of t whose weights are uncertain: ``most`` of them, and those tied
        with these. Only simplexes are narrowed; other sets keep all terms.

        Returns the set of these weights, the places of their terms, (rows, terms), and the weights
        of all other terms: ``high`` for larger ones, 0 for the rest.
        """
        n = t.shape[-1]
        if self.kind != "simplex" or n <= most or not t.size:
            return self, np.broadcast_to(np.arange(n), t.shape), np.zeros(t.shape)
        order = np.argsort(-t, axis=-1, kind="stable")
        full_weights_in_total = int(1 / self.high)
        last_full = min(full_weights_in_total, n) - 1
        edge = np.take_along_axis(t, order[:, [last_full]], -1)
        tie = TIED * (1 + np.abs(t).max(-1, keepdims=True))
        first = int((t > edge + tie).sum(-1).min())
        last = int((t >= edge - tie).sum(-1).max())
        full = max(0, min(full_weights_in_total - most // 2, n - most, first))
        uncertain = max(most, min(last - full, max(MOST_TIED, MOST_TIED_IN_ALL // len(t))))
        full_weights = np.zeros(t.shape)
        np.put_along_axis(full_weights, order[:, :full], self.high, -1)
        rest = replace(self, total=1 - self.high * full)
        return rest, order[:, full : full + uncertain], full_weights

    def matrix(self, t: np.ndarray) -> np.ndarray:
        """The last dim as a matrix with rows of ``columns`` entries."""
        return t.reshape((*t.shape[:-1], -1, self.columns or t.shape[-1]))


class Shape:
    """One kind of set: its projection, its support points, its kinks.

    curved    whether it is no polytope
    calls     calls of NumPy and torch in a projection
    entry_s   seconds that a projection takes for each entry, as measured
    """

    curved = False
    calls = 8
    entry_s = 1e-8

    def top(self, weights: WeightSet, t: np.ndarray) -> np.ndarray:
        """A q of the set with the largest q.t."""
        raise NotImplementedError

    def project(self, weights: WeightSet, q: np.ndarray) -> np.ndarray:
        """The nearest point of the set."""
        raise NotImplementedError

    def margin(self, weights: WeightSet, t: np.ndarray) -> np.ndarray:
        """Distance from t to where a second q attains the largest q.t."""
        raise NotImplementedError


class Simplex(Shape):
    """0 <= q <= high, with the sum ``total``."""

    calls = 40
    entry_s = 2e-7

    def top(self, weights: WeightSet, t: np.ndarray) -> np.ndarray:
        """The largest terms get ``high`` each, as long as the total lasts."""
        left = weights.total - weights.high * _rank(t)
        return np.clip(left, 0, weights.high)

    def project(self, weights: WeightSet, q: np.ndarray) -> np.ndarray:
        """The projection on a simplex of total 1, scaled."""
        shares = _project_simplex(q / weights.total, weights.high / weights.total)
        return weights.total * shares

    def margin(self, weights: WeightSet, t: np.ndarray) -> np.ndarray:
        """From the least term with a weight to the largest term without a full one."""
        q = self.top(weights, t)
        least_weighed = np.where(q > 0, t, np.inf).min(-1)
        largest_not_full = np.where(q < min(1.0, weights.high), t, -np.inf).max(-1)
        return least_weighed - largest_not_full


class Box(Shape):
    """low <= q <= high."""

    def top(self, weights: WeightSet, t: np.ndarray) -> np.ndarray:
        """An end of the interval by the sign of each term."""
        at_zero = np.clip(0.0, weights.low, weights.high)
        not_positive = np.where(t < 0, weights.low, at_zero)
        return np.where(t > 0, weights.high, not_positive)

    def project(self, weights: WeightSet, q: np.ndarray) -> np.ndarray:
        """Each weight moved into the interval."""
        return np.clip(q, weights.low, weights.high)

    def margin(self, weights: WeightSet, t: np.ndarray) -> np.ndarray:
        """The size of the term nearest to 0."""
        return np.abs(t).min(-1)


class Cross(Shape):
    """|q|_1 <= 1."""

    calls = 45
    entry_s = 2e-7

    def top(self, weights: WeightSet, t: np.ndarray) -> np.ndarray:
        """The sign of the largest term at its place."""
        is_largest = _rank(np.abs(t)) == 0
        return np.where(is_largest, np.sign(t), 0.0)

    def project(self, weights: WeightSet, q: np.ndarray) -> np.ndarray:
        """Sizes projected on the simplex, unless their sum is at most 1."""
        size = np.abs(q)
        inside = size.sum(-1, keepdims=True) <= 1
        return np.where(inside, q, np.sign(q) * _project_simplex(size, 1.0))

    def margin(self, weights: WeightSet, t: np.ndarray) -> np.ndarray:
        """From the largest size to the second largest, or to 0."""
        size = np.abs(t)
        return size.max(-1) - np.maximum(_second(size), 0.0)


class Ball(Shape):
    """|q|_2 <= 1 for every ``columns`` consecutive entries."""

    curved = True

    def top(self, weights: WeightSet, t: np.ndarray) -> np.ndarray:
        """Each vector divided by its norm."""
        vectors = weights.matrix(self.attainable(t))
        norm = np.linalg.norm(vectors, axis=-1, keepdims=True)
        return (vectors / np.where(norm > 0, norm, 1)).reshape(t.shape)

    def project(self, weights: WeightSet, q: np.ndarray) -> np.ndarray:
        """Each vector shortened to length 1 if it is longer."""
        vectors = weights.matrix(self.attainable(q))
        norm = np.linalg.norm(vectors, axis=-1, keepdims=True)
        return (vectors / np.maximum(1, norm)).reshape(q.shape)

    def margin(self, weights: WeightSet, t: np.ndarray) -> np.ndarray:
        """The norm of the shortest vector."""
        vectors = weights.matrix(self.attainable(t))
        return np.linalg.norm(vectors, axis=-1).min(-1)

    def attainable(self, t: np.ndarray) -> np.ndarray:
        """The part of t that weights can have a product with."""
        return t


class PositiveBall(Ball):
    """|q|_2 <= 1, q >= 0."""

    def attainable(self, t: np.ndarray) -> np.ndarray:
        """The positive part of t."""
        return np.maximum(t, 0.0)


class SpectralBall(Shape):
    """q is a matrix with rows of ``columns`` entries and singular values of at most 1."""

    curved = True
    entry_s = 2e-7

    def top(self, weights: WeightSet, t: np.ndarray) -> np.ndarray:
        """All singular values that are not 0 become 1."""
        left, size, right = np.linalg.svd(weights.matrix(t), full_matrices=False)
        positive = size > VANISHING_SINGULAR_VALUE * size.max(-1, keepdims=True)
        return ((left * positive[..., None, :]) @ right).reshape(t.shape)

    def project(self, weights: WeightSet, q: np.ndarray) -> np.ndarray:
        """Singular values beyond 1 become 1."""
        left, size, right = np.linalg.svd(weights.matrix(q), full_matrices=False)
        shortened = np.minimum(size, 1)
        return ((left * shortened[..., None, :]) @ right).reshape(q.shape)

    def margin(self, weights: WeightSet, t: np.ndarray) -> np.ndarray:
        """The smallest singular value."""
        return np.linalg.svd(weights.matrix(t), compute_uv=False).min(-1)


class NuclearBall(Shape):
    """q is such a matrix, and the sum of its singular values is at most 1."""

    curved = True
    calls = 50
    entry_s = 2e-7

    def top(self, weights: WeightSet, t: np.ndarray) -> np.ndarray:
        """The product of the leading singular vectors."""
        left, _, right = np.linalg.svd(weights.matrix(t), full_matrices=False)
        return (left[..., :1] @ right[..., :1, :]).reshape(t.shape)

    def project(self, weights: WeightSet, q: np.ndarray) -> np.ndarray:
        """Singular values projected on the simplex, unless their sum is at most 1."""
        left, size, right = np.linalg.svd(weights.matrix(q), full_matrices=False)
        inside = size.sum(-1, keepdims=True) <= 1
        shortened = np.where(inside, size, _project_simplex(size, 1.0))
        return ((left * shortened[..., None, :]) @ right).reshape(q.shape)

    def margin(self, weights: WeightSet, t: np.ndarray) -> np.ndarray:
        """From the largest singular value to the second largest, or to 0."""
        size = np.linalg.svd(weights.matrix(t), compute_uv=False)
        return size[..., 0] - np.maximum(_second(size), 0.0)


class Spectraplex(Shape):
    """q is a symmetric matrix of trace 1 without a negative eigenvalue."""

    curved = True
    calls = 50
    entry_s = 2e-7

    def top(self, weights: WeightSet, t: np.ndarray) -> np.ndarray:
        """The square of the leading eigenvector."""
        vectors = np.linalg.eigh(_symmetric(weights.matrix(t)))[1]
        leading = vectors[..., -1:]
        return (leading @ leading.swapaxes(-1, -2)).reshape(t.shape)

    def project(self, weights: WeightSet, q: np.ndarray) -> np.ndarray:
        """Eigenvalues projected on the simplex."""
        size, vectors = np.linalg.eigh(_symmetric(weights.matrix(q)))
        weighed = vectors * _project_simplex(size, 1.0)[..., None, :]
        return (weighed @ vectors.swapaxes(-1, -2)).reshape(q.shape)

    def margin(self, weights: WeightSet, t: np.ndarray) -> np.ndarray:
        """From the largest eigenvalue to the second largest."""
        size = np.linalg.eigvalsh(_symmetric(weights.matrix(t)))
        return size[..., -1] - _second(size)


class DistributionBall(Shape):
    """Distributions q within a divergence of ``centre``.

    generator  of the divergence
    """

    curved = True

    def __init__(self, generator: str):
        self.generator = generator

    def top(self, weights: WeightSet, t: np.ndarray) -> np.ndarray:
        """The distribution with the largest mean of t."""
        rows = torch.from_numpy(np.ascontiguousarray(t))
        centre = torch.tensor(weights.centre, dtype=torch.float64).expand(rows.shape)
        radius = torch.full((*rows.shape[:-1], 1), weights.radius, dtype=torch.float64)
        return ball_maxima.MAXIMISERS[self.generator](rows, centre, radius).numpy()

    def project(self, weights: WeightSet, q: np.ndarray) -> np.ndarray:
        """A point of the set near q: the nearest distribution, moved towards the centre.

        It is not the nearest point; subgradients from it are exact all the same.
        """
        nearest, centre = _project_simplex(q, 1.0), np.array(weights.centre)
        low, high = np.zeros((*q.shape[:-1], 1)), np.ones((*q.shape[:-1], 1))
        inside = self._distance(weights, nearest) <= weights.radius
        for _ in range(SEGMENT_HALVINGS):
            middle = (low + high) / 2
            near = self._distance(weights, centre + middle * (nearest - centre)) <= weights.radius
            low, high = np.where(near, middle, low), np.where(near, high, middle)
        return np.where(inside, nearest, centre + low * (nearest - centre))

    def margin(self, weights: WeightSet, t: np.ndarray) -> np.ndarray:
        """From the largest term to the last of those that may share all weight, the second at least."""
        order = np.argsort(-t, axis=-1, kind="stable")
        share = np.array(weights.centre)[order].cumsum(-1)
        with np.errstate(divide="ignore"):
            far = -np.log(share) if self.generator == KL else 1 / share - 1
        first = (far > weights.radius).sum(-1, keepdims=True)
        place = np.clip(first, 1, t.shape[-1] - 1)
        ordered = np.take_along_axis(t, order, -1)
        return ordered[..., 0] - np.take_along_axis(ordered, place, -1)[..., 0]

    def _distance(self, weights: WeightSet, q: np.ndarray) -> np.ndarray:
        """The divergence of each distribution from the centre."""
        p = np.array(weights.centre)
        if self.generator == KL:
            terms = np.where(q > 0, q * np.log(np.maximum(q, 1e-300) / np.maximum(p, 1e-300)), 0.0)
        elif self.generator == CHI2:
            terms = (q - p) ** 2 / np.maximum(p, 1e-300)
        else:
            terms = np.abs(q - p) / 2
        return terms.sum(-1, keepdims=True)


class VariationBall(DistributionBall):
    """Distributions within a total variation of ``centre``: a polytope."""

    curved = False

    def margin(self, weights: WeightSet, t: np.ndarray) -> np.ndarray:
        """From the largest term to the second, or from the last term that loses weight to its neighbours."""
        ascending = np.argsort(t, axis=-1, kind="stable")
        ordered = np.take_along_axis(t, ascending, -1)
        share = np.array(weights.centre)[ascending].cumsum(-1)
        steps = np.concatenate([np.full((*t.shape[:-1], 1), np.inf), np.diff(ordered, axis=-1)], -1)
        edge = np.minimum((share < weights.radius).sum(-1, keepdims=True), t.shape[-1] - 1)
        above = np.take_along_axis(steps, np.minimum(edge + 1, t.shape[-1] - 1), -1)
        below = np.take_along_axis(steps, edge, -1)
        return np.minimum(np.minimum(above, below)[..., 0], steps[..., -1])


#: The sets of weights, by their kinds.
SHAPES: dict[str, Shape] = {
    "simplex": Simplex(),
    "box": Box(),
    "cross": Cross(),
    "ball": Ball(),
    "positive": PositiveBall(),
    "spectral": SpectralBall(),
    "nuclear": NuclearBall(),
    "spectraplex": Spectraplex(),
    KL: DistributionBall(KL),
    CHI2: DistributionBall(CHI2),
    TV: VariationBall(TV),
}


def _symmetric(t: np.ndarray) -> np.ndarray:
    """The symmetric part of matrices."""
    return (t + t.swapaxes(-1, -2)) / 2


def _rank(t: np.ndarray) -> np.ndarray:
    """The rank of each entry in its row; 0 for the largest."""
    order = np.argsort(-t, axis=-1, kind="stable")
    return np.argsort(order, axis=-1)


def _second(t: np.ndarray) -> np.ndarray:
    """The second largest entry, or -inf if there is only one."""
    if t.shape[-1] > 1:
        return np.sort(t, axis=-1)[..., -2]
    return np.full(t.shape[:-1], -np.inf)


def _project_simplex(q: np.ndarray, cap: float) -> np.ndarray:
    """The projection on {0 <= q <= cap, sum 1}."""
    rows = torch.from_numpy(np.ascontiguousarray(q))
    return project_capped(rows, max(cap, 1 / q.shape[-1])).numpy()
