"""Accelerated proximal gradient on full passes, with backtracking and restarts: FISTA."""

import math

from fccomodel.algorithms import grids
from fccomodel.algorithms.base import Algorithm, Constants
from fccomodel.algorithms.runtime.loops import vector_loop


def begin(state, F, h):
    """The momentum starts at rest."""
    if state.epoch == 0:
        state.ahead, state.momentum, state.step = state.w, 1.0, h.eta


def accelerated_step(state, F, h):
    """w+ = prox_{R/L}(y - grad(y)/L);  y = w+ + momentum (w+ - w).

    L is doubled until phi(F(w+)) is below its quadratic model at y. The momentum is reset if it points
    uphill (O'Donoghue and Candes 2015).
    """
    y = state.ahead
    at = F.whole(y)
    s, direct = F.slope(y, at.value)
    gradient, value = at.pull(s) + direct, float(F.phi(y, at.value))
    while True:
        new = F.prox(y - state.step * gradient, state.step)
        move = new - y
        model = value + float(gradient @ move) + 0.5 * float(move @ move) / state.step
        if float(F.phi(new, F.value(new))) <= model + 1e-7 * abs(value) or state.step < 1e-12:
            break
        state.step *= 0.5
    if float(move @ (new - state.w)) < 0:
        state.momentum = 1.0
    later = 0.5 * (1 + math.sqrt(1 + 4 * state.momentum**2))
    state.ahead = new + (state.momentum - 1) / later * (new - state.w)
    state.w, state.momentum = new, later


def theory(k: Constants) -> dict[str, float]:
    """The step 1 / L; the gap after T steps is at most 2 L |w_0 - w*|^2 / (T + 1)^2."""
    L = k.smoothness()
    return {"eta": 1 / L, "iterations": k.diameter * math.sqrt(2 * L / k.eps)}


algorithm = Algorithm(
    name="apg",
    title="accelerated proximal gradient",
    requires={
        "unconstrained": "Beck and Teboulle 2009, problem (P)",
        "convex": "Beck and Teboulle 2009, section 2",
        "shared inner": "a full pass is F as a vector",
        "two levels": "a full pass is F as a vector",
        "finite sum": "a full pass is F as a vector",
        "prox regulariser": "Beck and Teboulle 2009, section 2",
        "outer smooth": "Beck and Teboulle 2009, section 2",
        "inner smooth": "Beck and Teboulle 2009, section 2",
    },
    oracle="vector",
    outer="smooth",
    loop=vector_loop,
    begin=begin,
    steps={"accelerated": accelerated_step},
    counts="oracle calls",
    rate="N / sqrt(eps)",
    gives="optimum",
    theorem="Beck and Teboulle 2009, Theorem 4.4",
    cite="Beck and Teboulle, A fast iterative shrinkage-thresholding algorithm, SIAM Journal on Imaging "
    "Sciences 2, 2009",
    hyper={**vector_loop.DEFAULTS, "stage": 10, "longest": 100, "growth": 1.3},
    theory=theory,
    grid=grids.VECTOR,
)
