"""Sets of weights: a function with a kink is phi(t) = max over q in Q of q.t, and its subgradients are
the q that attain it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from fccomodel.library.sets.capped_simplex import project_capped

#: Distance of terms, relative to 1 + the largest, up to which they count as tied.
TIED = 1e-6
#: Tied terms of a row that have weights of their own, at most, ...
MOST_TIED = 600
#: ... or more, if those of all rows together are at most so many.
MOST_TIED_IN_ALL = 20_000
#: Size of a singular value, relative to the largest, up to which it counts as 0.
VANISHING_SINGULAR_VALUE = 1e-12


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Q, a convex set of weights over the last dim, by its ``kind``:

    simplex    0 <= q <= high, sum ``total``
    box        low <= q <= high
    ball       |q|_2 <= 1 for every ``columns`` consecutive entries
    positive   |q|_2 <= 1, q >= 0
    cross      |q|_1 <= 1
    spectral     q is a matrix with rows of ``columns`` entries and singular values of at most 1
    nuclear      q is such a matrix, and the sum of its singular values is at most 1
    spectraplex  q is a symmetric matrix of trace 1 without a negative eigenvalue
    """

    kind: str
    low: float = 0.0
    high: float = 1.0
    total: float = 1.0
    columns: int = 0

    @property
    def curved(self) -> bool:
        """Whether Q is no polytope."""
        return self.kind in ("ball", "positive", "spectral", "nuclear", "spectraplex")

    def top(self, t: np.ndarray) -> np.ndarray:
        """A q of Q with the largest q.t."""
        if self.kind == "box":
            at_zero = np.clip(0.0, self.low, self.high)
            return np.where(t > 0, self.high, np.where(t < 0, self.low, at_zero))
        if self.kind in ("ball", "positive"):
            groups = self._matrix(self._allowed(t))
            norm = np.linalg.norm(groups, axis=-1, keepdims=True)
            return (groups / np.where(norm > 0, norm, 1)).reshape(t.shape)
        if self.kind == "spectral":
            left, size, right = np.linalg.svd(self._matrix(t), full_matrices=False)
            positive = size > VANISHING_SINGULAR_VALUE * size.max(-1, keepdims=True)
            return ((left * positive[..., None, :]) @ right).reshape(t.shape)
        if self.kind == "nuclear":
            left, _, right = np.linalg.svd(self._matrix(t), full_matrices=False)
            return (left[..., :1] @ right[..., :1, :]).reshape(t.shape)
        if self.kind == "spectraplex":
            vectors = np.linalg.eigh(_symmetric(self._matrix(t)))[1][..., -1:]
            return (vectors @ vectors.swapaxes(-1, -2)).reshape(t.shape)
        if self.kind == "cross":
            return np.where(_rank(np.abs(t)) == 0, np.sign(t), 0.0)
        return np.clip(self.total - self.high * _rank(t), 0, self.high)

    def project(self, q: np.ndarray) -> np.ndarray:
        """The nearest weights."""
        if self.kind == "box":
            return np.clip(q, self.low, self.high)
        if self.kind in ("ball", "positive"):
            groups = self._matrix(self._allowed(q))
            norm = np.linalg.norm(groups, axis=-1, keepdims=True)
            return (groups / np.maximum(1, norm)).reshape(q.shape)
        if self.kind == "spectral":
            left, size, right = np.linalg.svd(self._matrix(q), full_matrices=False)
            shortened = np.minimum(size, 1)
            return ((left * shortened[..., None, :]) @ right).reshape(q.shape)
        if self.kind == "nuclear":
            left, size, right = np.linalg.svd(self._matrix(q), full_matrices=False)
            inside = size.sum(-1, keepdims=True) <= 1
            shortened = np.where(inside, size, _project_simplex(size, 1.0))
            return ((left * shortened[..., None, :]) @ right).reshape(q.shape)
        if self.kind == "spectraplex":
            size, vectors = np.linalg.eigh(_symmetric(self._matrix(q)))
            weighed = vectors * _project_simplex(size, 1.0)[..., None, :]
            return (weighed @ vectors.swapaxes(-1, -2)).reshape(q.shape)
        if self.kind == "cross":
            size = np.abs(q)
            inside = size.sum(-1, keepdims=True) <= 1
            return np.where(inside, q, np.sign(q) * _project_simplex(size, 1.0))
        return self.total * _project_simplex(q / self.total, self.high / self.total)

    def support(self, t: np.ndarray) -> np.ndarray:
        """phi(t), the largest q.t over Q."""
        return (self.top(t) * t).sum(-1)

    def margin(self, t: np.ndarray) -> np.ndarray:
        """Distance from t to a kink of phi, where a second q attains the largest value."""
        if self.kind == "box":
            return np.abs(t).min(-1)
        if self.kind in ("ball", "positive"):
            return np.linalg.norm(self._matrix(self._allowed(t)), axis=-1).min(-1)
        if self.kind == "spectral":
            return np.linalg.svd(self._matrix(t), compute_uv=False).min(-1)
        if self.kind == "nuclear":
            size = np.linalg.svd(self._matrix(t), compute_uv=False)
            return size[..., 0] - np.maximum(_second(size), 0.0)
        if self.kind == "spectraplex":
            size = np.linalg.eigvalsh(_symmetric(self._matrix(t)))
            return size[..., -1] - _second(size)
        if self.kind == "cross":
            return np.abs(t).max(-1) - np.maximum(_second(np.abs(t)), 0.0)
        q = self.top(t)
        least_weighed = np.where(q > 0, t, np.inf).min(-1)
        largest_not_full = np.where(q < min(1.0, self.high), t, -np.inf).max(-1)
        return least_weighed - largest_not_full

    def narrowed(self, t: np.ndarray, most: int) -> tuple[Weights, np.ndarray, np.ndarray]:
        """The terms of each row of t whose weights are uncertain: ``most`` of them, and those tied
        with these. Only simplexes are narrowed; other sets keep all terms.

        Returns the set of these weights, the places of their terms, (rows, terms), and the weights
        of all other terms: ``high`` for larger ones, 0 for the rest.
        """
        n = t.shape[-1]
        if self.kind != "simplex" or n <= most or not t.size:
            return self, np.broadcast_to(np.arange(n), t.shape), np.zeros(t.shape)
        order = np.argsort(-t, axis=-1, kind="stable")
        last_full = min(int(1 / self.high), n) - 1
        edge = np.take_along_axis(t, order[:, [last_full]], -1)
        tie = TIED * (1 + np.abs(t).max(-1, keepdims=True))
        first = int((t > edge + tie).sum(-1).min())
        last = int((t >= edge - tie).sum(-1).max())
        full = max(0, min(int(1 / self.high) - most // 2, n - most, first))
        most = max(most, min(last - full, max(MOST_TIED, MOST_TIED_IN_ALL // len(t))))
        full_weights = np.zeros(t.shape)
        np.put_along_axis(full_weights, order[:, :full], self.high, -1)
        return replace(self, total=1 - self.high * full), order[:, full : full + most], full_weights

    def _allowed(self, t: np.ndarray) -> np.ndarray:
        """The part of t that weights of at least 0 can take up."""
        if self.kind == "positive":
            return np.maximum(t, 0.0)
        return t

    def _matrix(self, t: np.ndarray) -> np.ndarray:
        """The last dim as a matrix with rows of ``columns`` entries."""
        return t.reshape((*t.shape[:-1], -1, self.columns or t.shape[-1]))


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
