"""Sets of weights: a function with a kink is phi(t) = max over q in Q of q.t, and its subgradients are the q that attain it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from fccomodel.interpret import inner_maximum


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Q, a convex set of weights over the last dim.

    kind   ``simplex`` (0 <= q <= high, sum 1), ``box`` (low <= q <= high), ``ball`` (|q|_2 <= 1) or ``cross`` (|q|_1 <= 1)
    """

    kind: str
    low: float = 0.0
    high: float = 1.0

    def top(self, t: np.ndarray) -> np.ndarray:
        """A q of Q with the largest q.t."""
        if self.kind == "box":
            return np.where(t > 0, self.high, np.where(t < 0, self.low, np.clip(0.0, self.low, self.high)))
        if self.kind == "ball":
            norm = np.linalg.norm(t, axis=-1, keepdims=True)
            return t / np.where(norm > 0, norm, 1)
        rank = np.argsort(np.argsort(-(np.abs(t) if self.kind == "cross" else t), axis=-1, kind="stable"), axis=-1)
        if self.kind == "cross":
            return np.where(rank == 0, np.sign(t), 0.0)
        return np.clip(1 - self.high * rank, 0, self.high)

    def project(self, q: np.ndarray) -> np.ndarray:
        """The nearest weights."""
        if self.kind == "box":
            return np.clip(q, self.low, self.high)
        if self.kind == "ball":
            return q / np.maximum(1, np.linalg.norm(q, axis=-1, keepdims=True))
        if self.kind == "cross":
            size = np.abs(q)
            inside = size.sum(-1, keepdims=True) <= 1
            return np.where(inside, q, np.sign(q) * _project_simplex(size, 1.0))
        return _project_simplex(q, self.high)

    def support(self, t: np.ndarray) -> np.ndarray:
        """phi(t)."""
        return (self.top(t) * t).sum(-1)

    def margin(self, t: np.ndarray) -> np.ndarray:
        """How far t is from a kink of phi, where another q attains it too."""
        if self.kind == "box":
            return np.abs(t).min(-1)
        if self.kind == "ball":
            return np.linalg.norm(t, axis=-1)
        if self.kind == "cross":
            return np.abs(t).max(-1) - np.maximum(_second(np.abs(t)), 0.0)
        q = self.top(t)
        return np.where(q > 0, t, np.inf).min(-1) - np.where(q < min(1.0, self.high), t, -np.inf).max(-1)


def _second(t: np.ndarray) -> np.ndarray:
    """The second largest entry, -inf where there is one alone."""
    return np.sort(t, axis=-1)[..., -2] if t.shape[-1] > 1 else np.full(t.shape[:-1], -np.inf)


def _project_simplex(q: np.ndarray, cap: float) -> np.ndarray:
    return inner_maximum.project_simplex(torch.from_numpy(np.ascontiguousarray(q)), max(cap, 1 / q.shape[-1])).numpy()
