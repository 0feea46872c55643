"""Products of the Lagrangian's Hessian with vectors, and eigenvalues from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from fccomodel.core.work import Meter
from fccomodel.report.kkt.lagrangian import Term, differentiable_sum, gradient
from fccomodel.report.point.system import STEP, System, norm

Array = np.ndarray
#: Products that Lanczos' method makes, at most.
MOST_PRODUCTS = 40
#: Share of the largest eigenvalue up to which another counts as 0.
VANISHING = 1e-9


class Spent(Exception):
    """The work allowed is used up before curvature is known."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Eigenpairs:
    """Eigenvalues in ascending order, and their vectors by column."""

    values: Array
    vectors: Array

    @property
    def size(self) -> float:
        """The largest absolute eigenvalue."""
        return float(np.abs(self.values).max(initial=0.0))


class HessianProduct:
    """Products of the Lagrangian's Hessian with vectors: by differentiating twice, else by
    differences of gradients."""

    def __init__(self, system: System, terms: list[Term], at: Array, meter: Meter):
        self.system, self.terms, self.at, self.meter = system, terms, at, meter
        if meter.left < 3 * system.forward_s:
            raise Spent
        meter.spend(3 * system.forward_s)
        total, self.leaves = differentiable_sum(system, terms, at, ())
        self.slopes: torch.Tensor | None = None
        self.twice = True
        self.seconds = 0.0
        if not total.requires_grad:
            return
        try:
            parts = torch.autograd.grad(total, self.leaves, create_graph=True, materialize_grads=True)
        except RuntimeError:  # an operation that is differentiated once
            self.twice = False
        else:
            self.slopes = torch.cat([part.reshape(-1) for part in parts])
        first = np.ones(system.d) / max(math.sqrt(system.d), 1.0)
        self.seconds = meter.count(lambda: self(first))[1]

    def affordable(self, count: int) -> bool:
        """Whether the remaining work allows this many products."""
        return count * self.seconds <= self.meter.left

    def most(self, share: float) -> int:
        """The number of products that this share of the work left pays."""
        if self.seconds <= 0:
            return MOST_PRODUCTS
        return int(share * self.meter.left / self.seconds)

    def __call__(self, direction: Array) -> Array:
        self.meter.spend(self.seconds)
        if self.twice:
            if self.slopes is None or not self.slopes.requires_grad:
                return np.zeros(self.system.d)
            try:
                along = (self.slopes * torch.from_numpy(direction)).sum()
                parts = torch.autograd.grad(
                    along, self.leaves, retain_graph=True, allow_unused=True, materialize_grads=True
                )
                return torch.cat([part.reshape(-1) for part in parts]).numpy()
            except RuntimeError:
                self.twice = False
        length = STEP * (1 + norm(self.at))
        points = [self.at + sign * length * direction for sign in (1.0, -1.0)]
        ends = [gradient(self.system, self.terms, point) for point in points]
        difference: Array = (ends[0] - ends[1]) / (2 * length)
        return difference


def eigen(matrix: Array, basis: Array) -> Eigenpairs:
    """The spectrum of a symmetric matrix given in an orthonormal basis (by column); NaN if it is not
    finite."""
    if not np.isfinite(matrix).all():
        return Eigenpairs(values=np.full(1, math.nan), vectors=basis[:, :1])
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return Eigenpairs(values=values, vectors=basis @ vectors)


def krylov(multiply: Callable[[Array], Array], start: Array, count: int) -> Eigenpairs:
    """Ritz values and vectors of a symmetric matrix on the space of ``start`` and its first
    products (Lanczos' method, with every direction made orthogonal to all those before)."""
    basis, products = [start], [multiply(start)]
    while len(basis) < count:
        known = np.stack(basis)
        following = products[-1]
        for _ in range(2):  # the second time removes rounding errors of the first
            following = following - known.T @ (known @ following)
        length = norm(following)
        if not length > VANISHING * max(norm(products[0]), norm(products[-1])):
            break
        basis.append(following / length)
        products.append(multiply(basis[-1]))
    columns = np.stack(basis, axis=1)
    return eigen(columns.T @ np.stack(products, axis=1), columns)
