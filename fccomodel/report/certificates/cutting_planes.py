"""Intervals for entries of variables that no set and no norm bounds, such as intercepts: by cutting
planes.

Every feasible x has c(x) <= 0, and one that is no worse than w has f(x) <= f(w). For such a convex
h <= level, and any point p,

    h(p) + s.(x - p) <= level,      s a subgradient of h at p,

which bounds an entry where its slope s_k is not 0 and s.x is bounded over the other entries (J.
Kelley, The cutting-plane method, 1960). Logistic and hinge losses of a class grow in the intercept
to one side: the points p go far enough along each entry.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import torch

from fccomodel.core.diagnostics import FccoError
from fccomodel.core.work import Meter
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.report.certificates.support_functions import Support
from fccomodel.report.point.system import Array, System, functions

#: Constraints up to which cuts are made, how often all entries are gone through; evaluations that a
#: point of cuts takes, and the share of the work left that all may.
FUNCTIONS, ROUNDS, PRICE, SHARE = 32, 2, 4, 0.2
#: How far along an entry cuts are made, relative to its size, and how far aside of it; what rounding may add.
FAR, ASIDE, ROUNDING = (0.618, 3.303, 10.76, 37.07, 117.2), 1e-7, 1e-9


def boxes(
    system: System,
    supports: Mapping[str, Sequence[Support]],
    meter: Meter,
    *,
    level: bool,
    affine: Sequence[bool],
) -> dict[str, list[Support]]:
    """Intervals of the variables without a support, of those points that are feasible and, with
    ``level``, no worse than w.

    ``affine``: the objective and each constraint, whose planes are the same at all points.
    """
    free = [name for name in system.names if not bounded(system.point[name], supports[name])]
    sizes = {name: int(system.point[name].numel()) for name in free}
    if all(affine):
        points = 0
    else:
        points = 2 * len(FAR) * sum(sizes.values())
    work = PRICE * system.forward_s * (1 + points)
    if not free or len(system.labels) > FUNCTIONS or work > SHARE * meter.left:
        return {}
    meter.spend(work)
    high = {
        name: np.array([_reach(system, name, e, supports[name]) for e in np.eye(sizes[name])])
        for name in free
    }
    low = {
        name: -np.array([_reach(system, name, -e, supports[name]) for e in np.eye(sizes[name])])
        for name in free
    }
    flat = list(_planes(system, next(_besides(system, 0)), level, affine))
    curved = [not one for one in affine]
    cuts = {
        (name, k): [*flat, *(_cuts(system, name, k, level, curved, meter) if any(curved) else ())]
        for name in free
        for k in range(sizes[name])
    }
    for _ in range(ROUNDS):
        known: dict[str, Sequence[Support]] = {**supports}
        known |= {name: [*supports[name], partial(_interval, low[name], high[name])] for name in free}
        for (name, k), planes in cuts.items():
            for slopes, most in planes:
                _tighten(system, slopes, most, name, k, known, low, high)
    return {name: [*supports[name], partial(_interval, low[name], high[name])] for name in free}


def bounded(value: torch.Tensor, supports: Sequence[Support]) -> bool:
    """In every direction, as those show that go along all entries."""
    ones = torch.ones_like(value)
    return all(min((h(s) for h in supports), default=math.inf) < math.inf for s in (ones, -ones))


def _reach(system: System, name: str, s: Array, supports: Sequence[Support]) -> float:
    """The most that s.x is for a variable."""
    shaped = torch.from_numpy(np.ascontiguousarray(s)).reshape(system.point[name].shape)
    return min((h(shaped) for h in supports), default=math.inf)


def _tighten(
    system: System,
    slopes: Mapping[str, Array],
    most: float,
    name: str,
    k: int,
    known: Mapping[str, Sequence[Support]],
    low: Mapping[str, Array],
    high: Mapping[str, Array],
) -> None:
    """By a plane s.x <= most: an entry's end, where the others cannot make up for it."""
    slope, rest = float(slopes[name][k]), {other: part.copy() for other, part in slopes.items()}
    rest[name][k] = 0.0
    if not slope:
        return
    for other, part in rest.items():
        if part.any():
            most += _reach(system, other, -part, known[other])
    if not math.isfinite(most):
        return
    if slope > 0:
        high[name][k] = min(high[name][k], most / slope)
    else:
        low[name][k] = max(low[name][k], most / slope)


def _interval(low: Array, high: Array, s: torch.Tensor) -> float:
    """The most that s.x is over a box; entries of s that are 0 have no part in it."""
    flat = s.detach().numpy().ravel()
    ends = np.where(flat > 0, high, low)[flat != 0]
    return float((flat[flat != 0] * ends).sum())


def _cuts(
    system: System, name: str, k: int, level: bool, which: Sequence[bool], meter: Meter
) -> Iterator[tuple[dict[str, Array], float]]:
    """Planes s.x <= most by points on both sides of an entry, as long as there is time: each holds by
    itself."""
    here = float(system.point[name].reshape(-1)[k])
    points = _besides(system, k)
    for far in (sign * far * max(1.0, abs(here)) for far in FAR for sign in (1.0, -1.0)):
        if meter.late:
            return
        point = next(points)
        point[name].view(-1)[k] += far
        yield from _planes(system, point, level, which)


def _besides(system: System, seed: int) -> Iterator[dict[str, torch.Tensor]]:
    """Points beside all kinks that the point itself is at."""
    aside = torch.Generator().manual_seed(seed)
    while True:
        noise = {
            name: torch.randn(value.shape, generator=aside, dtype=value.dtype)
            for name, value in system.point.items()
        }
        yield {
            name: (value.detach() + ASIDE * (1 + value.detach().abs()) * noise[name]).clone()
            for name, value in system.point.items()
        }


def _planes(
    system: System, point: Mapping[str, torch.Tensor], level: bool, which: Sequence[bool]
) -> Iterator[tuple[dict[str, Array], float]]:
    """Of the objective and of each constraint of these."""
    leaves = {name: value.requires_grad_(True) for name, value in point.items()}
    try:
        f, values, _, equal = functions(Evaluator(system.bound, leaves, seed=system.seed))
    except FccoError:
        return
    goal = system.level
    if level and which[0]:
        functions_of = [(system.sign * f, goal)]
    else:
        functions_of = []
    for c, both in (
        pair for pair, wanted in zip(zip(values, equal, strict=True), which[1:], strict=True) if wanted
    ):
        if both:
            functions_of += [(c, 0.0), (-c, 0.0)]
        else:
            functions_of += [(c, 0.0)]
    for h, most in functions_of:
        if not h.requires_grad or not bool(torch.isfinite(h)):
            continue
        found = torch.autograd.grad(h, [*leaves.values()], retain_graph=True, allow_unused=True)
        slopes = {
            name: np.zeros(leaf.numel()) if g is None else g.numpy().ravel()
            for (name, leaf), g in zip(leaves.items(), found, strict=True)
        }
        if not all(np.isfinite(s).all() for s in slopes.values()):
            continue
        products = [s * leaves[name].detach().numpy().ravel() for name, s in slopes.items()]
        value = float(h.detach())
        size = abs(value) + abs(most) + sum(float(np.abs(p).sum()) for p in products)
        yield slopes, most - value + sum(float(p.sum()) for p in products) + ROUNDING * size
