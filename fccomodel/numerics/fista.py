"""Least squares over a convex set by accelerated projected gradients with restarts.

FISTA: A. Beck, M. Teboulle, 2009.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fccomodel.core.work import Meter

Array = np.ndarray

#: Without progress for this many iterations, the method stops.
ITERATIONS_WITHOUT_PROGRESS = 400
#: Iterations between two looks at the residual.
LOOK_EVERY = 20
#: Relative decrease of the residual between two looks that counts as progress.
PROGRESS = 1e-5
#: Norm of the projected gradient, relative to the residual, at which the residual is the least.
STILL = 1e-9
#: Residual that counts as 0, relative to the residual at 0.
ZERO_RESIDUAL = 1e-12


class Minimiser(NamedTuple):
    """Unknowns, and whether they are known to be the best."""

    z: Array
    exact: bool


def least_squares(
    residual: Callable[[Array], Array],
    pulled: Callable[[Array], Array],
    project: Callable[[Array], Array],
    start: Array,
    *,
    lipschitz: float,
    price: float,
    meter: Meter,
    iterations: int,
) -> Minimiser:
    """The z of the set with the least 1/2 |residual(z)|^2, or the best found with the work left.

    residual   what is squared, an affine function of z
    pulled     gradient in z, as a function of the residual
    project    projection on the set
    start      first iterate, a point of the set
    lipschitz  constant of the gradient, positive
    price      counted seconds of an iteration
    """
    z = ahead = start
    momentum = 1.0
    best, record, since = z, np.inf, 0
    residual_at_0 = residual(np.zeros(len(z)))
    nothing = ZERO_RESIDUAL * float(np.linalg.norm(residual_at_0))
    for iteration in range(iterations):
        rest = residual(ahead)
        new = project(ahead - pulled(rest) / lipschitz)
        size = float(np.linalg.norm(rest))
        step = np.sqrt(lipschitz) * np.linalg.norm(new - ahead)
        if size <= nothing or step <= STILL * size:
            return Minimiser(new, True)
        if iteration % LOOK_EVERY == 0:
            meter.spend((LOOK_EVERY + 1) * price)
            size = float(np.linalg.norm(residual(new)))
            since = 0 if size < record * (1 - PROGRESS) else since + LOOK_EVERY
            if size < record:
                best, record = new, size
            if since >= ITERATIONS_WITHOUT_PROGRESS or meter.over:
                break
        elif meter.late:
            break
        if (ahead - new) @ (new - z) > 0:  # the momentum points uphill: restart
            ahead, momentum = z, 1.0
            continue
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / following * (new - z)
        z, momentum = new, following
    return Minimiser(project(best), False)
