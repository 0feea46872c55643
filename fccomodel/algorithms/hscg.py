"""HSCG: hybrid estimates of values and Jacobians, dual smoothing of phi (hscg-2020, Algorithms 1 and 2)."""

import math

from fccomodel.algorithms import _vector
from fccomodel.algorithms._base import Algorithm
from fccomodel.algorithms._vector import begin_exactly, hybrid


def begin(state, F, h):
    """Equation (15) with all samples, and the first step; every epoch restarts so (Algorithm 2)."""
    v = begin_exactly(state, F)
    averaged_move(state, F, v, 2 * h.eta / (3 + h.theta), h.theta)


def averaged_move(state, F, v, eta, theta):
    """x = prox_{eta R}(w - eta v);  w <- (1 - theta) w + theta x."""
    state.w_prev = state.w
    state.w = state.w + theta * (F.prox(state.w - eta * v, eta) - state.w)


def constant_step(state, F, h):
    """beta = 1 - sqrt(b / (b0 (T + 1))), eta = 2 / (L (3 + theta)) (Theorems 3.1, 3.3 and 4.1, 4.2)."""
    v = hybrid(state, F, 1 - math.sqrt(h.fresh / (state.length + 1)))
    averaged_move(state, F, v, 2 * h.eta / (3 + h.theta), h.theta)


def diminishing_step(state, F, h):
    """gamma_t, theta_t ~ (t + 2)^-1/3, beta_t = 1 - (t + 2)^-2/3, eta_t = 2 / (L_t (3 + theta_t)), where L_t <= L / gamma_t
    (Theorems 3.2 and 3.4)."""
    falling = (2 / (state.t + 2)) ** (1 / 3)
    gamma, theta = falling if F.smoothing else 1.0, h.theta * falling
    v = hybrid(state, F, 1 - (state.t + 2) ** (-2 / 3), gamma)
    averaged_move(state, F, v, 2 * gamma * h.eta / (3 + theta), theta)


algorithm = Algorithm(
    name="hscg",
    title="HSCG",
    requires={
        "outer prox": "hscg-2020, equation (9) and Assumption 2.2",
        "inner smooth": "hscg-2020, Assumption 2.1 (a)",
    },
    oracle="vector",
    penalty="smoothed_hinge",
    loop=_vector,
    begin=begin,
    steps={"constant": constant_step, "diminishing": diminishing_step},
    rate="1 / (b eps^3)",
    theorem="hscg-2020, Theorems 3.1 to 3.4 (Algorithm 1), 4.1 and 4.2 (restarts)",
    cite="Tran-Dinh, Liu and Nguyen, Hybrid variance-reduced SGD algorithms for nonconvex-concave minimax problems, NeurIPS 2020",
    hyper={
        **_vector.DEFAULTS,
        "stage": 100,
        "longest": 400,
        "growth": 1.3,
        "theta": 1.0,
        "fresh": 1.0,
        "exact": 1.0,
        "tol": 1e-5,
    },  # fmt: skip
    grid={"eta": _vector.TRIALS, "theta": (0.1, 0.5, 1.0)},  # hscg-2020, appendix D
    preference=(9.0, 0.0),
)
