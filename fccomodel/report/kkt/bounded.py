"""Least squares under bounds, for many unknowns: a primal-dual interior-point method.

    minimise the squares of z   subject to   G z <= h,   sums of simplexes,   each row of G with at
                                most two entries

S. Mehrotra's predictor and corrector (J. Nocedal, S. Wright, Numerical Optimization, 2006,
Algorithm 16.4). The number of rounds hardly depends on the number of unknowns, which methods that
move from vertex to vertex pay for. Bounds, sums and what the subgradients miss couple an unknown to
its simplex, its function and its multiplier alone: that part of the equations is eliminated without
fill, and the dense rows are a correction of their number's rank (Sherman, Morrison and Woodbury),
so that a round is linear in the unknowns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from fccomodel.core.work import Meter, multiplied
from fccomodel.report.kkt.elimination import NONE, Elimination
from fccomodel.report.kkt.groups import Array, Cone, Group, Part, Simple, Weighing
from fccomodel.report.kkt.least_squares import Squares

#: Rounds at most; the complementarity at which it ends, relative to the first and to the squares;
#: what is added to the diagonal.
ROUNDS, SMALL, EXACT, RIDGE = 60, 1e-19, 1e-11, 1e-15


@dataclass(frozen=True, eq=False, kw_only=True)
class Limits:
    """What the groups' sets, whose weights are boxes and simplexes, allow.

    Row k of G z <= h:   near[k] z[at[k]] + far[k] z[beside[k]] <= h[k]  (``beside`` is ``at`` where ``far`` is 0).
    Simplex j: the z whose ``simplex`` is j sum to ``right[j] + share[j] z[of[j]]`` (``of`` is ``NONE`` for a number).

    scaler   the unknown that scales each one's set, or ``NONE``;   depth   of a kink's weights
             inside other kinks
    """

    at: Array
    near: Array
    beside: Array
    far: Array
    h: Array
    simplex: Array
    of: Array
    share: Array
    right: Array
    scaler: Array
    depth: Array

    def times(self, z: Array) -> Array:
        return self.near * z[self.at] + self.far * z[self.beside]

    def transposed(self, y: Array) -> Array:
        size = len(self.simplex)
        return np.bincount(self.at, self.near * y, size) + np.bincount(self.beside, self.far * y, size)

    def missed(self, z: Array) -> Array:
        """By how much the sums of simplexes are wrong."""
        inside = self.simplex != NONE
        sums = np.bincount(self.simplex[inside], z[inside], len(self.right))
        return sums - self.right - np.where(self.of == NONE, 0.0, self.share * z[self.of])

    def pulled(self, x: Array) -> Array:
        """The gradient in z of x times the sums."""
        total = np.where(self.simplex == NONE, 0.0, np.append(x, 0.0)[self.simplex])
        scaled = self.of != NONE
        return total - np.bincount(self.of[scaled], (self.share * x)[scaled], len(self.simplex))


def limits(groups: Sequence[Group], size: int) -> Limits:
    """Of the unknowns' sets."""
    rows: list[
        tuple[Array, float, int, float, float]
    ] = []  # places, entry there, another place, entry there, right side
    simplex, scaler, depth = np.full(size, NONE), np.full(size, NONE), np.zeros(size, dtype=int)
    sums: list[tuple[int, float, float]] = []
    for group in groups:
        if isinstance(group, Simple):
            rows.append((group.at[~group.free], -1.0, NONE, 0.0, 0.0))
        elif isinstance(group, Cone):
            rows.append((np.array([group.at]), -1.0, NONE, 0.0, 0.0))
    for part, place, scale, below in _parts(groups):
        w = part.weights
        scaler[part.at], depth[part.at] = place, below
        low = w.low if w.kind == "box" else 0.0
        if w.kind == "box" or w.high < w.total:
            ends = [(1.0, w.high)]
        else:
            ends = []
        for sign, end in [*ends, (-1.0, -low)]:
            rows.append(
                (part.at, sign, place, -end, 0.0)
                if place != NONE
                else (part.at, sign, NONE, 0.0, end * scale)
            )
        if w.kind == "simplex" and part.at.size:
            simplex[part.at] = len(sums) + np.arange(len(part.at))[:, None]
            if place != NONE:
                right = (0.0, w.total)
            else:
                right = (w.total * scale, 0.0)
            sums += [(place, *right)] * len(part.at)
    counts = [places.size for places, *_ in rows]
    at = np.concatenate([np.zeros(0), *(places.ravel() for places, *_ in rows)]).astype(int)
    near, beside, far, h = (
        np.repeat(column, counts) for column in zip(*(row[1:] for row in rows), strict=True)
    )
    used = (far != 0) & (beside != NONE)
    of, constants, share = np.reshape(np.array(sums, dtype=float), (-1, 3)).T
    return Limits(
        at=at,
        near=near,
        beside=np.where(used, beside, at),
        far=np.where(used, far, 0.0),
        h=h,
        simplex=simplex,
        of=of.astype(int),
        share=share,
        right=constants,
        scaler=scaler,
        depth=depth,
    )


def _parts(groups: Sequence[Group]) -> Iterator[tuple[Part, int, float, int]]:
    """Every part with the place of what scales it and the scale there, or ``NONE`` and a number, and
    how many are around it."""

    def below(part: Part, place: int, scale: float, depth: int) -> Iterator[tuple[Part, int, float, int]]:
        yield part, place, scale, depth
        for inner, parts in part.inside.items():
            for nested in parts:
                yield from below(nested, inner, 1.0, depth + 1)

    for group in groups:
        if isinstance(group, Weighing):
            yield from below(group.part, NONE, group.scale, 0)
        elif isinstance(group, Cone):
            for part in group.parts:
                yield from below(part, group.at, 1.0, 0)


class Equations:
    """Newton's equations of a round: (squares + G' diag(weight) G) dz + sums' dx = right, sums dz =
    missed.

    Unknown beside dz and dx is what the subgradients of each function miss. Each has its neighbours
    in three slots: an unknown's simplex, its function, and what scales its set.
    """

    def __init__(self, squares: Squares, limits: Limits):
        self.squares, self.limits = squares, limits
        size, sums, functions = squares.size, len(limits.right), len(squares.constant)
        self.ends = np.cumsum([size, sums])
        deepest = int(limits.depth.max(initial=0))
        later = np.full((size + sums + functions, 3), NONE)
        level = np.full(len(later), 2 * deepest + 2)
        root = limits.scaler == NONE
        charged = squares.rate != 0
        heads = np.full(functions, NONE)  # the multiplier of a function
        outer = np.flatnonzero(~root & (limits.depth == 0))
        heads[squares.owner[outer]] = limits.scaler[outer]
        multiplier = np.zeros(size, dtype=bool)
        multiplier[heads[heads != NONE]] = True
        weight = (limits.depth > 0) | ~root | charged & ~multiplier | (limits.simplex != NONE)
        level[:size] = np.where(weight, 2 * (deepest - limits.depth), 2 * deepest + 3)
        later[:size, 0] = np.where(limits.simplex != NONE, size + limits.simplex, NONE)
        later[:size, 1] = np.where(weight, size + sums + squares.owner, NONE)
        later[:size, 2] = limits.scaler
        inside = np.flatnonzero(limits.simplex != NONE)
        owner = size + limits.simplex[inside]
        level[owner], later[owner, 1], later[owner, 2] = (
            level[inside] + 1,
            later[inside, 1],
            limits.scaler[inside],
        )
        later[size + sums :, 2] = heads
        self.heads = heads
        self.pattern = Elimination(later, level)
        self.matrix = torch.from_numpy(np.ascontiguousarray(np.asarray(squares.matrix)))
        norms = squares.norms()
        self.ridge = RIDGE * np.maximum(norms, 1e-2 * max(float(norms.max(initial=0.0)), 1e-300)) ** 2

    def factored(self, weight: Array) -> None:
        squares, limits, (first, second) = self.squares, self.limits, self.ends
        own = squares.diagonal**2 + np.bincount(limits.at, weight * limits.near**2, first)
        own += np.bincount(limits.beside, weight * limits.far**2, first)
        diagonal = np.concatenate(
            [own + self.ridge, np.full(second - first, -1e-30), -np.ones(len(squares.constant))]
        )
        beside = np.zeros((len(diagonal), 3))
        beside[:first, 0] = limits.simplex != NONE
        beside[:first, 1] = np.where(self.pattern.later[:first, 1] != NONE, squares.rate, 0.0)
        beside[:first, 2] = np.bincount(limits.at, weight * limits.near * limits.far, first)
        beside[first:second, 2] = -limits.share
        beside[second:, 2] = np.where(self.heads == NONE, 0.0, squares.rate[self.heads])
        self.sparse = self.pattern.factored(diagonal, beside)
        columns = torch.zeros((len(diagonal), len(self.matrix)), dtype=torch.float64)
        columns[:first] = self.matrix.T
        self.across = self.sparse.solve(columns)
        middle = torch.eye(len(self.matrix), dtype=torch.float64) + self.matrix @ self.across[:first]
        self.lower, failed = torch.linalg.cholesky_ex((middle + middle.T) / 2)
        if failed:
            raise np.linalg.LinAlgError

    def solve(self, right: Array, missed: Array) -> tuple[Array, Array]:
        """(dz, dx)."""
        first, second = self.ends
        whole = torch.from_numpy(
            np.concatenate([right, missed, np.zeros(len(self.squares.constant))])[:, None]
        )
        found = self.sparse.solve(whole)
        found = found - self.across @ torch.cholesky_solve(self.matrix @ found[:first], self.lower)
        return found[:first, 0].numpy(), found[first:second, 0].numpy()


def solve(squares: Squares, limits: Limits, meter: Meter) -> Array:
    """The z with the least squares, which may miss the limits by rounding; the last one that the work
    left allows."""
    equations, size = Equations(squares, limits), squares.size
    z, x = np.zeros(size), np.zeros(len(limits.right))
    s = np.maximum(limits.h - limits.times(z), 1e-2)
    y = np.full(len(s), max(float(np.abs(squares.pulled(squares.residual(z))).max()), 1e-12))
    first = float(s @ y) / max(len(s), 1)
    for _ in range(ROUNDS):
        rest = squares.residual(z)
        dual, primal = (
            squares.pulled(rest) + limits.transposed(y) + limits.pulled(x),
            limits.times(z) + s - limits.h,
        )
        mean = float(s @ y) / max(len(s), 1)
        exact = float(s @ y) <= EXACT * float(rest @ rest) and np.abs(primal).max(initial=0.0) < 1e-12
        if mean <= SMALL * first or exact or meter.over:
            break
        try:
            meter.count(partial(equations.factored, y / s))
            meter.spend(multiplied(8 * squares.size, calls=100))
        except np.linalg.LinAlgError:
            break
        missed = limits.missed(z)

        def step(target: Array, dual=dual, primal=primal, s=s, y=y, missed=missed):
            shift = target / s - y + y / s * primal
            dz, dx = equations.solve(-dual - limits.transposed(shift), -missed)
            ds = -primal - limits.times(dz)
            return dz, dx, ds, target / s - y - y / s * ds

        _, _, ds, dy = step(np.zeros_like(s))
        reach = min(_reach(s, ds), _reach(y, dy))
        centring = (float((s + reach * ds) @ (y + reach * dy)) / max(len(s), 1) / mean) ** 3
        dz, dx, ds, dy = step(centring * mean - ds * dy)
        reach = 0.995 * min(_reach(s, ds), _reach(y, dy))
        if not np.isfinite(dz).all() or reach < 1e-10:
            break
        z, x, s, y = z + reach * dz, x + reach * dx, s + reach * ds, y + reach * dy
    return z


def _reach(values: Array, change: Array) -> float:
    """How far values may move along their change and stay positive; at most 1."""
    falling = change < 0
    return min(1.0, float((-values[falling] / change[falling]).min(initial=np.inf)))
