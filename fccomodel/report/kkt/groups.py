"""The sets of multipliers and of the weights of kinks: projections, and points that minimise a linear
function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, copysign, log2

import numpy as np

from fccomodel.report.kinks.weights import WeightSet

Array = np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class Simple:
    """Independent entries: multipliers of constraints without kinks.

    at     their places among the unknowns
    free   which of them belong to equalities, and may have any sign
    """

    at: Array
    free: Array

    def project(self, z: Array) -> None:
        """Move these entries of z to the nearest point of the set."""
        z[self.at] = np.where(self.free, z[self.at], np.maximum(z[self.at], 0))

    def places(self) -> Array:
        """The places of the group's unknowns."""
        return self.at

    def rays(self, slope: Array) -> Iterator[Array]:
        """The directions of single entries that go down the slope."""
        for place, free in zip(self.at, self.free, strict=True):
            if slope[place] < 0 or free and slope[place] > 0:
                ray = np.zeros(len(slope))
                ray[place] = -np.sign(slope[place])
                yield ray


@dataclass(frozen=True, eq=False, kw_only=True)
class KinkWeights:
    """The weights of a kink: each row is in the set ``weights`` times a scale.

    at       their places among the unknowns, (instances, terms)
    inside   by place of a weight, the kinks inside that term; that weight scales theirs
    """

    at: Array
    weights: WeightSet
    inside: Mapping[int, tuple[KinkWeights, ...]] = field(default_factory=dict)

    def nearest(self, z: Array, scale: float) -> Array:
        """The weights nearest to those in z. Kinks inside are left alone."""
        if scale > 1e-200:
            return scale * self.weights.project(z[self.at] / scale)
        return np.zeros(self.at.shape)

    def project(self, z: Array, scale: float) -> None:
        """Move z to the nearest weights, then kinks inside to their nearest.

        With kinks inside this is a point of the set, but perhaps not the nearest one.
        """
        z[self.at] = self.nearest(z, scale)
        for place, parts in self.inside.items():
            for part in parts:
                part.project(z, max(float(z[place]), 0.0))

    def lowest(self, slope: Array) -> tuple[Array, float]:
        """The weights with the least ``slope . z``, as a vector of all unknowns, and this least."""
        total, below = slope[self.at].astype(float), {}
        for place, parts in self.inside.items():
            lowest = [part.lowest(slope) for part in parts]
            below[place] = sum((z for z, _ in lowest), np.zeros(len(slope)))
            total[self.at == place] += sum(value for _, value in lowest)
        z = np.zeros(len(slope))
        z[self.at] = chosen = self.weights.top(-total)
        for place, rest in below.items():
            z += z[place] * rest
        return z, float((chosen * total).sum())

    def places(self) -> Array:
        """The places of the weights, also of kinks inside."""
        return np.concatenate([part.at.ravel() for part in self.all()])

    def all(self) -> Iterator[KinkWeights]:
        """This part, and all parts inside it."""
        yield self
        for parts in self.inside.values():
            for part in parts:
                yield from part.all()


@dataclass(frozen=True, eq=False, kw_only=True)
class Weighing:
    """The weights of a kink in the objective."""

    part: KinkWeights
    scale: float = 1.0

    def project(self, z: Array) -> None:
        """Move the weights in z into their set."""
        self.part.project(z, self.scale)

    def places(self) -> Array:
        """The places of the group's unknowns."""
        return self.part.places()

    def lowest(self, slope: Array) -> Array:
        """The weights with the least ``slope . z``."""
        return self.scale * self.part.lowest(slope)[0]


@dataclass(frozen=True, eq=False, kw_only=True)
class Cone:
    """A constraint's multiplier lambda >= 0, and the weights mu_j of its kinks times that multiplier:
    mu_j in lambda Q_j."""

    at: int
    parts: tuple[KinkWeights, ...]

    def project(self, z: Array) -> None:
        """Move the multiplier and the weights in z into the cone."""
        if len(self.parts) == 1 and self.parts[0].weights.kind == "box" and self.parts[0].at.size == 1:
            self._wedge(z)
            return
        size_of_parts = sum(10 * float(np.abs(z[part.at]).sum()) for part in self.parts)
        high = max(0.0, z[self.at]) + size_of_parts + 1e-300
        scale = _root(lambda scale: self._rises(z, scale), 0.0, high)
        z[self.at] = scale
        for part in self.parts:
            part.project(z, scale)

    def places(self) -> Array:
        """The places of the multiplier and of the weights."""
        return np.concatenate([[self.at], *(part.places() for part in self.parts)]).astype(int)

    def rays(self, slope: Array) -> Iterator[Array]:
        """The multiplier 1 with the weights that go down the slope fastest, if they go down."""
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
        """Project one weight in an interval: the cone {low lambda <= mu <= high lambda} of the plane
        lies between two rays."""
        (part,) = self.parts
        place, weights = part.at.item(), part.weights
        x, y = z[self.at], z[place]
        if x >= 0 and weights.low * x <= y <= weights.high * x:
            return
        best = (np.inf, 0.0, 0.0)
        for slope in (weights.low, weights.high):
            along = max(0.0, (x + slope * y) / (1 + slope**2))
            squared_distance = (along - x) ** 2 + (slope * along - y) ** 2
            best = min(best, (squared_distance, along, slope * along))
        z[self.at], z[place] = best[1:]


def _root(f: Callable[[float], float], low: float, high: float, accuracy: float = 1e-16) -> float:
    """The root of a nondecreasing f between ``low`` and ``high``, to ``accuracy`` of their distance;
    the nearer end if f does not change its sign.

    False position, kept so near the middle that it takes at most one step more than bisection
    (I. Oliveira and R. Takahashi, An enhancement of the bisection method average performance
    preserving minmax optimality, 2020).
    """
    f_low, f_high, length = f(low), f(high), high - low
    if f_low >= 0:
        return low
    if f_high <= 0:
        return high
    steps = ceil(log2(1 / accuracy)) + 1
    for k in range(steps):
        middle, half = (low + high) / 2, (high - low) / 2
        if half <= accuracy * length:
            break
        guess = (low * f_high - high * f_low) / (f_high - f_low)
        inward = copysign(1.0, middle - guess)
        place = guess + inward * min(0.4 * half * (half / length), abs(middle - guess))
        reach = accuracy * length * 2.0 ** (steps - k) - half
        if not abs(place - middle) <= reach:
            place = middle - inward * reach
        f_place = f(place)
        if f_place == 0:
            return place
        if f_place < 0:
            low, f_low = place, f_place
        else:
            high, f_high = place, f_place
    return (low + high) / 2


Group = Simple | Weighing | Cone


def parts_of(groups: Sequence[Group]) -> Iterator[KinkWeights]:
    """The weights of all kinks, including those inside others."""
    for group in groups:
        parts: tuple[KinkWeights, ...] = ()
        if isinstance(group, Weighing):
            parts = (group.part,)
        elif isinstance(group, Cone):
            parts = group.parts
        for part in parts:
            yield from part.all()


def renumbered(group: Group, numbers: Array) -> Group:
    """The group among fewer unknowns: ``numbers`` has the new place of each of them."""
    if isinstance(group, Simple):
        return replace(group, at=numbers[group.at])
    if isinstance(group, Weighing):
        return replace(group, part=_renumbered(group.part, numbers))
    parts = tuple(_renumbered(part, numbers) for part in group.parts)
    return Cone(at=int(numbers[group.at]), parts=parts)


def _renumbered(part: KinkWeights, numbers: Array) -> KinkWeights:
    """The weights of a kink among fewer unknowns."""
    inside = {
        int(numbers[place]): tuple(_renumbered(inner, numbers) for inner in parts)
        for place, parts in part.inside.items()
    }
    return replace(part, at=numbers[part.at], inside=inside)
