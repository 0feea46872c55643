"""Intervals, by cutting planes, for entries of variables that no set and no norm bounds, such as
intercepts.

Every feasible x has c(x) <= 0, and every x that is no worse than w has f(x) <= f(w). For such a
convex h <= level, and any point p,

    h(p) + s.(x - p) <= level,      s a subgradient of h at p.

This bounds entry k if s_k is not 0 and s.x is bounded over the other entries (J. Kelley, The
cutting-plane method, 1960). Logistic and hinge losses of a class grow in the intercept on one side
only, so the points p go far along each entry on both sides.
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
from fccomodel.evaluation.values import functions
from fccomodel.report.certificates.support_functions import Support
from fccomodel.report.point.system import Array, System

#: Constraints up to which cuts are made.
MOST_CONSTRAINTS = 32
#: Passes over all entries.
ROUNDS = 2
#: Evaluations that the cuts at one point take.
PASSES_PER_POINT = 4
#: Share of the work left that all cuts may take.
WORK_SHARE = 0.2
#: Distances along an entry at which cuts are made, relative to its size.
DISTANCES = (0.618, 3.303, 10.76, 37.07, 117.2)
#: Random shift of the points away from kinks, relative to 1 + the entries' sizes.
ASIDE = 1e-7
#: Rounding of a plane's right side, relative to its terms' sizes.
ROUNDING = 1e-9


def boxes(
    system: System,
    supports: Mapping[str, Sequence[Support]],
    meter: Meter,
    *,
    level: bool,
    affine: Sequence[bool],
) -> dict[str, list[Support]]:
    """The supports with an interval for each variable that they do not bound, over the points that are
    feasible and, with ``level``, no worse than w.

    affine   whether the objective and each constraint are affine: their planes are the same at all
             points
    """
    free = [name for name in system.names if not bounded(system.point[name], supports[name])]
    sizes = {name: int(system.point[name].numel()) for name in free}
    if all(affine):
        points = 0
    else:
        points = 2 * len(DISTANCES) * sum(sizes.values())
    work = PASSES_PER_POINT * system.forward_s * (1 + points)
    if not free or len(system.labels) > MOST_CONSTRAINTS or work > WORK_SHARE * meter.left:
        return {}
    meter.spend(work)
    high: dict[str, Array] = {}
    low: dict[str, Array] = {}
    for name in free:
        units = np.eye(sizes[name])
        high[name] = np.array([_reach(system, name, unit, supports[name]) for unit in units])
        low[name] = -np.array([_reach(system, name, -unit, supports[name]) for unit in units])
    flat = list(_planes(system, next(_besides(system, 0)), level, affine))
    curved = [not straight for straight in affine]
    cuts = {(name, k): [*flat] for name in free for k in range(sizes[name])}
    if any(curved):
        for (name, k), planes in cuts.items():
            planes.extend(_cuts(system, name, k, level, curved, meter))
    for _ in range(ROUNDS):
        known: dict[str, Sequence[Support]] = {**supports}
        known |= {name: [*supports[name], partial(_interval, low[name], high[name])] for name in free}
        for (name, k), planes in cuts.items():
            for slopes, most in planes:
                _tighten(system, slopes, most, name, k, known, low, high)
    return {name: [*supports[name], partial(_interval, low[name], high[name])] for name in free}


def bounded(value: torch.Tensor, supports: Sequence[Support]) -> bool:
    """Whether the supports bound a variable in every direction; the directions along all entries tell."""
    ones = torch.ones_like(value)
    return all(min((h(s) for h in supports), default=math.inf) < math.inf for s in (ones, -ones))


def _reach(system: System, name: str, s: Array, supports: Sequence[Support]) -> float:
    """The largest s.x over a variable's supports."""
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
    """Tighten the interval of entry k by a plane s.x <= most, if the other entries are bounded."""
    slope = float(slopes[name][k])
    rest = {other: part.copy() for other, part in slopes.items()}
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
    """The largest s.x over a box, which may be infinite along entries where s is 0."""
    flat = s.detach().numpy().ravel()
    ends = np.where(flat > 0, high, low)[flat != 0]
    return float((flat[flat != 0] * ends).sum())


def _cuts(
    system: System, name: str, k: int, level: bool, which: Sequence[bool], meter: Meter
) -> Iterator[tuple[dict[str, Array], float]]:
    """Planes s.x <= most from points on both sides of an entry, as long as there is time. Each plane
    holds by itself."""
    here = float(system.point[name].reshape(-1)[k])
    points = _besides(system, k)
    for far in (sign * far * max(1.0, abs(here)) for far in DISTANCES for sign in (1.0, -1.0)):
        if meter.late:
            return
        point = next(points)
        point[name].view(-1)[k] += far
        yield from _planes(system, point, level, which)


def _besides(system: System, seed: int) -> Iterator[dict[str, torch.Tensor]]:
    """Points near the system's own, away from the kinks that it is at."""
    aside = torch.Generator().manual_seed(seed)
    while True:
        noise = {
            name: torch.randn(value.shape, generator=aside, dtype=value.dtype)
            for name, value in system.point.items()
        }
        here = {name: value.detach() for name, value in system.point.items()}
        sizes = {name: ASIDE * (1 + value.abs()) for name, value in here.items()}
        yield {name: (value + sizes[name] * noise[name]).clone() for name, value in here.items()}


def _planes(
    system: System, point: Mapping[str, torch.Tensor], level: bool, which: Sequence[bool]
) -> Iterator[tuple[dict[str, Array], float]]:
    """The planes of the objective and of the constraints, for those that ``which`` marks."""
    leaves = {name: value.requires_grad_(True) for name, value in point.items()}
    try:
        f, values, _, equal = functions(Evaluator(system.bound, leaves, seed=system.seed))
    except FccoError:
        return
    limits: list[tuple[torch.Tensor, float]] = []
    if level and which[0]:
        limits.append((system.sign * f, system.level))
    for c, equation, is_active in zip(values, equal, which[1:], strict=True):
        if is_active:
            limits.append((c, 0.0))
        if is_active and equation:
            limits.append((-c, 0.0))
    for h, most in limits:
        if not h.requires_grad or not bool(torch.isfinite(h)):
            continue
        gradients = torch.autograd.grad(h, [*leaves.values()], retain_graph=True, allow_unused=True)
        slopes = {
            name: np.zeros(leaf.numel()) if g is None else g.numpy().ravel()
            for (name, leaf), g in zip(leaves.items(), gradients, strict=True)
        }
        if not all(np.isfinite(s).all() for s in slopes.values()):
            continue
        products = [s * leaves[name].detach().numpy().ravel() for name, s in slopes.items()]
        value = float(h.detach())
        size_of_products = sum(float(np.abs(p).sum()) for p in products)
        size = abs(value) + abs(most) + size_of_products
        yield slopes, most - value + sum(float(p.sum()) for p in products) + ROUNDING * size
