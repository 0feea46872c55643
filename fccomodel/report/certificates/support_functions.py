"""Sets that the variables of an optimum lie in, by their support functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import torch

from fccomodel.library.sets import SimpleSet
from fccomodel.report.point.system import System, norm
from fccomodel.report.quadratic_parts import Size, sizes
from fccomodel.structure import Analysis

Array = np.ndarray
#: The largest ``s.x`` over a set, given s
Support = Callable[[torch.Tensor], float]
#: Entries of a variable up to which the interval of each is asked for.
ENTRIES = 500
#: The support function of a norm's unit ball, by the shape of its dual's
SUPPORTS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "box": lambda s: s.abs().max(),
    "ball": lambda s: s.norm(),
    "cross": lambda s: s.abs().sum(),
    "spectral": lambda s: torch.linalg.matrix_norm(s, 2),
}


def supports_of(system: System, analysis: Analysis, *, level: bool) -> dict[str, list[Support]]:
    """Of sets that each variable of an optimum lies in: its own, and norms that a constraint or, with
    ``level``, the objective of a point no worse than w bounds."""
    supports: dict[str, list[Support]] = {name: [] for name in system.names}
    for name in system.names:
        for simple, args in system.sets_of(name):
            supports[name].append(partial(_support, simple, args))
    if level:
        levels = [(system.problem.objective.expr, system.sign, system.level)]
    else:
        levels = []
    for c in system.problem.constraints:
        if c.binders:
            levels += []
        else:
            levels += [(c.body, sign, 0.0) for sign in ((1.0,) if c.kind == "le" else (1.0, -1.0))]
    for expr, sign, value in levels:
        for size in sizes(expr, sign, value, analysis.see):
            if size.radius < math.inf:
                supports[size.variable].append(partial(_norm_ball, size))
    return supports


def around(system: System, supports: Mapping[str, list[Support]], radius: float) -> dict[str, list[Support]]:
    """With a ball around w for each variable."""
    if radius == math.inf:
        return dict(supports)
    return {name: [*supports[name], partial(_ball, system.point[name], radius)] for name in system.names}


def _ball(centre: torch.Tensor, radius: float, s: torch.Tensor) -> float:
    return float((s * centre).sum()) + radius * float(s.norm())


def _support(simple: SimpleSet, args: tuple, s: torch.Tensor) -> float:
    return float(simple.support(s, *args))


def _norm_ball(size: Size, s: torch.Tensor) -> float:
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
    """A bound of |x - w| over all x in the sets, from the interval of each entry; inf where none is known."""
    return norm(np.maximum(*spans(system, supports)))


def spans(system: System, supports: Mapping[str, list[Support]]) -> tuple[Array, Array]:
    """How far x_j may be below w_j and above it over all x in the sets, entry by entry; inf where no
    bound is known, and where entries are many."""
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
    """By how much normals at w miss to be normals: the largest n.(x - w) over the sets."""
    pairs = zip(system.sets_of(name), normals, strict=True)
    return sum(
        max(0.0, float(simple.support(n, *args)) - float((n * system.point[name]).sum()))
        for (simple, args), n in pairs
    )
