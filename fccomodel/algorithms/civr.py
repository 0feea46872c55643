"""CIVR: recursive (SARAH) estimates of values and Jacobians, an exact one at the start of each epoch
(Zhang and Xiao 2019)."""

import math

from fccomodel.algorithms import grids
from fccomodel.algorithms.base import Algorithm, Constants
from fccomodel.algorithms.runtime.loops import vector_loop
from fccomodel.algorithms.runtime.loops.vector_estimates import begin_with, hybrid


def begin(state, F, h):
    """Evaluate F and its Jacobian exactly, and take the first step of the epoch."""
    eta = 0.5 * h.eta
    state.w = F.prox(state.w - eta * begin_with(state, F, F.whole(state.w)), eta)


def recursive_step(state, F, h):
    """u <- u + F(w; B) - F(w_prev; B), J likewise;  w <- prox_{eta R}(w - eta J' grad phi(u))."""
    v, eta = hybrid(state, F, 1.0), 0.5 * h.eta
    state.w_prev = state.w
    state.w = F.prox(state.w - eta * v, eta)


def theory(k: Constants) -> dict[str, float]:
    """eta = 4 / (L + sqrt(L^2 + 12 G_0)), G_0 = 2 (C_g^4 L_f^2 + C_f^2 L_g^2); epochs of sqrt(n) steps."""
    L, G = k.smoothness(), 2 * (k.C_g**4 * k.L_f**2 + (k.C_f * k.L_g) ** 2)
    length = math.ceil(math.sqrt(k.rows))
    return {"eta": 8 / (L + math.sqrt(L**2 + 12 * G)), "stage": length, "longest": length}


algorithm = Algorithm(
    name="civr",
    title="CIVR",
    requires={
        "unconstrained": "Zhang and Xiao 2019, problem (1)",
        "shared inner": "Zhang and Xiao 2019, problem (1)",
        "two levels": "Zhang and Xiao 2019, problem (1)",
        "finite sum": "Zhang and Xiao 2019, Theorem 3",
        "prox regulariser": "Zhang and Xiao 2019, problem (1)",
        "outer smooth": "Zhang and Xiao 2019, Assumption 1",
        "outer Lipschitz": "Zhang and Xiao 2019, Assumption 1",
        "inner smooth": "Zhang and Xiao 2019, Assumption 1",
        "smooth samples": "Zhang and Xiao 2019, Assumption 1",
        "inner Lipschitz": "Zhang and Xiao 2019, Assumption 1",
        "bounded variance": "Zhang and Xiao 2019, Assumption 2",
    },
    oracle="vector",
    outer="smooth",
    loop=vector_loop,
    begin=begin,
    steps={"recursive": recursive_step},
    counts="oracle calls",
    rate="N + sqrt(N) / eps^2",
    theorem="Zhang and Xiao 2019, Theorem 3",
    cite="Zhang and Xiao, A stochastic composite gradient method with incremental variance reduction, "
    "NeurIPS 2019",
    hyper={**vector_loop.DEFAULTS, "stage": 100, "longest": 100},
    grid=grids.VECTOR,
    theory=theory,
)
