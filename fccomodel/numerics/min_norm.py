"""The point of least norm in ``offset + matrix Z``, for Z a product of polytopes and cones.

Wolfe's algorithm, extended by rays. The point is kept as an affine combination of few vertices (and
multiples of few rays) of the set. Each round adds the vertex or ray that reduces the norm fastest,
then moves to the point of least norm in their hull. It ends after finitely many rounds, exactly.
P. Wolfe, Finding the nearest point in a polytope, Mathematical Programming 11 (1976).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fccomodel.core.work import Meter, multiplied

Array = np.ndarray
#: Vertices and rays that are held at most.
LARGEST_CORRAL = 400
#: Rounds at most.
ROUNDS = 5000
#: Relative gap at which the point counts as nearest.
GAP = 1e-7
#: Weight below which a vertex or ray is dropped.
SMALLEST_WEIGHT = 1e-14


class Matrix(Protocol):
    """A matrix with its entries, dense or sparse."""

    @property
    def size(self) -> int:
        """The number of entries that are held."""
        ...

    @property
    def T(self) -> Any:
        """The transpose."""
        ...

    def __matmul__(self, z: Any, /) -> Any: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Generators:
    """The set Z by linear minimisation.

    vertex   of g: the point of the compact part that minimises g.z
    rays     of g: for every cone its direction z with the least g.z, if that is negative
    round_s  counted seconds that both take once
    """

    vertex: Callable[[Array], Array]
    rays: Callable[[Array], Iterator[Array]]
    round_s: float = 0.0


def nearest(
    matrix: Matrix, offset: Array, generators: Generators, start: Array, meter: Meter
) -> tuple[Array, bool]:
    """The nearest z, and whether it is known to be the nearest.

    If no work is left or progress ends, it is the best z so far.
    """
    corral = [start]
    images = [matrix @ start + offset]
    is_ray = [False]
    weights = np.ones(1)
    x = images[0]
    for _ in range(ROUNDS):
        squared_norm = float(x @ x)
        scale = max(float(np.abs(image).max()) for image in images)
        smallest_gain = GAP * squared_norm + 1e-15 * scale * np.sqrt(squared_norm)
        best = _fastest(matrix, offset, generators, x, smallest_gain)
        if best is None:
            return _combined(corral, weights), True
        flops_of_least_squares = 4 * len(x) * len(corral) ** 2
        meter.spend(generators.round_s + multiplied(3 * matrix.size + flops_of_least_squares, calls=20))
        if len(corral) >= LARGEST_CORRAL or meter.over:
            break
        point, image, along_ray = best
        corral.append(point)
        images.append(image)
        is_ray.append(along_ray)
        corral, images, is_ray, weights = _moved(corral, images, is_ray, np.append(weights, 0.0))
        new = _combined(images, weights)
        if float(new @ new) >= squared_norm * (1 - 1e-15):
            break
        x = new
    return _combined(corral, weights), False


def _fastest(
    matrix: Matrix, offset: Array, generators: Generators, x: Array, smallest_gain: float
) -> tuple[Array, Array, bool] | None:
    """The vertex or ray along which the norm of x falls fastest; None if none gains enough.

    It comes with its image and whether it is a ray. Rays have images of length 1.
    """
    slope = matrix.T @ x
    norm = np.sqrt(float(x @ x))
    largest_gain = smallest_gain
    best = None
    vertex = generators.vertex(slope)
    image = matrix @ vertex + offset
    gain = float(x @ (x - image))
    if gain > largest_gain:
        largest_gain = gain
        best = (vertex, image, False)
    for ray in generators.rays(slope):
        image = matrix @ ray
        length = float(np.linalg.norm(image))
        if not length > 0:
            continue
        gain = -float(x @ image) / length * norm
        if gain > largest_gain:
            largest_gain = gain
            best = (ray / length, image / length, True)
    return best


def _combined(vectors: list[Array], weights: Array) -> Array:
    """The sum of the vectors, weighted."""
    return np.asarray(weights) @ np.stack(vectors)


def _moved(corral: list[Array], images: list[Array], is_ray: list[bool], weights: Array):
    """The corral after the move to the least norm in its hull: points, images, which are rays, weights.

    Vertices and rays whose weight becomes 0 on the way are dropped.
    """
    while True:
        target = _affine(images, is_ray)
        falling = target < SMALLEST_WEIGHT
        if not falling.any():
            return corral, images, is_ray, target
        now = weights[falling]
        decrease = now - target[falling]
        ratios = now / np.maximum(decrease, 1e-300)
        step = min(1.0, float(ratios.min()))
        weights = weights + step * (target - weights)
        dropped = falling & (weights <= SMALLEST_WEIGHT)
        if not dropped.any():
            first = np.argmin(ratios)
            dropped[np.flatnonzero(falling)[first]] = True
        points = [k for k, ray in enumerate(is_ray) if not ray]
        if all(dropped[k] for k in points):  # one vertex stays
            dropped[max(points, key=lambda k: weights[k])] = False
            if not dropped.any():
                return corral, images, is_ray, np.maximum(weights, 0)
        keep = np.flatnonzero(~dropped)
        corral = [corral[k] for k in keep]
        images = [images[k] for k in keep]
        is_ray = [is_ray[k] for k in keep]
        weights = weights[keep]
        is_vertex = [not ray for ray in is_ray]
        weights[is_vertex] /= weights[is_vertex].sum()


def _affine(images: list[Array], is_ray: list[bool]) -> Array:
    """The weights, of any sign, that give the least norm; those of the vertices sum to 1."""
    first = is_ray.index(False)
    base = images[first]
    rest = [k for k in range(len(images)) if k != first]
    if not rest:
        return np.ones(1)
    columns = np.stack([images[k] if is_ray[k] else images[k] - base for k in rest], axis=1)
    solution = np.linalg.lstsq(columns, -base, rcond=1e-15)[0]
    weights = np.empty(len(images))
    weights[rest] = solution
    of_points = [value for k, value in zip(rest, solution, strict=True) if not is_ray[k]]
    weights[first] = 1 - sum(of_points)
    return weights
