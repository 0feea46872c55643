"""Sets that the variables of an optimum lie in, by their support functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import torch

from fccomodel.library.sets import SimpleSet
from fccomodel.report.point.system import System, norm
from fccomodel.report.quadratic_parts import NormBound, sizes
from fccomodel.structure import Analysis

Array = np.ndarray
#: The largest ``s.x`` over a set, as a function of s.
Support = Callable[[torch.Tensor], float]
#: Entries of a variable up to which the interval of each is asked for.
ENTRIES = 500
#: The support function of a norm's unit ball, by the shape of the dual norm's ball.
SUPPORTS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "box": lambda s: s.abs().max(),
    "ball": lambda s: s.norm(),
    "cross": lambda s: s.abs().sum(),
    "spectral": lambda s: torch.linalg.matrix_norm(s, 2),
    "nuclear": lambda s: torch.linalg.matrix_norm(s, "nuc"),
}


def supports_of(system: System, analysis: Analysis, *, level: bool) -> dict[str, list[Support]]:
    """Support functions of sets that hold each variable of an optimum: its own sets, and balls of norms
    that a constraint bounds or, with ``level``, the objective of a point no worse than w."""
    supports: dict[str, list[Support]] = {name: [] for name in system.names}
    for name in system.names:
        for simple, args in system.sets_of(name):
            supports[name].append(partial(_support, simple, args))
    levels = []
    if level:
        levels.append((system.problem.objective.expr, system.sign, system.level))
    for constraint in system.problem.constraints:
        if not constraint.binders:
            signs = (1.0,) if constraint.kind == "le" else (1.0, -1.0)
            levels += [(constraint.body, sign, 0.0) for sign in signs]
    for expr, sign, value in levels:
        for size in sizes(expr, sign, value, analysis.see):
            if size.radius < math.inf:
                supports[size.variable].append(partial(_norm_ball, size))
    return supports


def around(system: System, supports: Mapping[str, list[Support]], radius: float) -> dict[str, list[Support]]:
    """The supports and, for each variable, a ball around its value in w."""
    if radius == math.inf:
        return dict(supports)
    return {name: [*supports[name], partial(_ball, system.point[name], radius)] for name in system.names}


def _ball(centre: torch.Tensor, radius: float, s: torch.Tensor) -> float:
    return float((s * centre).sum()) + radius * float(s.norm())


def _support(simple: SimpleSet, args: tuple, s: torch.Tensor) -> float:
    return float(simple.support(s, *args))


def _norm_ball(size: NormBound, s: torch.Tensor) -> float:
    return size.radius * float(SUPPORTS[size.ball](s))


def reach(system: System, gradient: Array, supports: Mapping[str, list[Support]]) -> float:
    """The largest ``gradient . (w - x)`` over all x in the sets."""
    total = 0.0
    for name, part in system.split(gradient).items():
        if bool(part.any()):
            furthest = min((h(-part) for h in supports[name]), default=math.inf)
            total += max(0.0, furthest + float((part * system.point[name]).sum()))
    return total


def furthest(system: System, supports: Mapping[str, list[Support]]) -> float:
    """A bound of |x - w| over all x in the sets, from the interval of each entry; inf if none is known."""
    return norm(np.maximum(*spans(system, supports)))


def spans(system: System, supports: Mapping[str, list[Support]]) -> tuple[Array, Array]:
    """The largest w_j - x_j and x_j - w_j over all x in the sets, entry by entry; inf if no bound is
    known, and for variables with more than ``ENTRIES`` entries."""
    low, high = np.full(system.d, math.inf), np.full(system.d, math.inf)
    place = 0
    for name, value in system.point.items():
        if value.numel() <= ENTRIES:
            known = supports[name]
        else:
            known = []
        for k, here in enumerate(value.reshape(-1).tolist() if known else ()):
            unit = torch.zeros(value.numel(), dtype=torch.float64)
            unit[k] = 1.0
            along = unit.reshape(value.shape)
            high[place + k] = max(min(h(along) for h in known) - here, 0.0)
            low[place + k] = max(min(h(-along) for h in known) + here, 0.0)
        place += value.numel()
    return low, high


def past(system: System, name: str, normals: list[torch.Tensor]) -> float:
    """The distance of given vectors n from the normal cone at w: the largest n.(x - w) over the sets."""
    pairs = zip(system.sets_of(name), normals, strict=True)
    point = system.point[name]
    misses = [float(simple.support(n, *args)) - float((n * point).sum()) for (simple, args), n in pairs]
    return sum(max(0.0, miss) for miss in misses)
