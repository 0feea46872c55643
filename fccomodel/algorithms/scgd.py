"""SCGD: a moving average of the values, plain steps of two time scales (Wang, Fang and Liu 2017,
Algorithm 1)."""

from fccomodel.algorithms import grids
from fccomodel.algorithms._practice import PROXIMAL
from fccomodel.algorithms.base import Algorithm, Constants
from fccomodel.algorithms.runtime.loops import vector_loop
from fccomodel.algorithms.runtime.loops.vector_estimates import decayed


def begin(state, F, h):
    """u starts at the first minibatch's value."""
    if state.epoch == 0:
        state.u = F.sample(state.w, F.batch()).value


def two_scale_step(state, F, h):
    """u <- (1 - beta_k) u + beta_k F(w; B);  w <- prox(w - alpha_k J(w; B)' grad phi(u)).

    alpha_k ~ k^-3/4, beta_k ~ k^-1/2.
    """
    at = F.sample(state.w, F.batch())
    alpha, beta = h.eta * decayed(state, h, h.alpha_power), decayed(state, h, h.beta_power)
    state.u = state.u + beta * (at.value - state.u)
    s, direct = F.slope(state.w, state.u)
    state.w = F.prox(state.w - alpha * (at.pull(s) + direct), alpha)


def theory(k: Constants) -> dict[str, float]:
    """alpha_k = k^-3/4 / L, beta_k = k^-1/2."""
    return {"eta": 1 / k.smoothness(), "alpha_power": 3 / 4, "beta_power": 1 / 2, "warm": 1.0}


algorithm = Algorithm(
    name="scgd",
    title="SCGD",
    requires={
        "unconstrained": "Wang, Fang and Liu 2017, problem (1)",
        "shared inner": "Wang, Fang and Liu 2017, problem (1)",
        "two levels": "Wang, Fang and Liu 2017, problem (1)",
        "outer smooth": "Wang, Fang and Liu 2017, Assumption 1 (iv)",
        "outer Lipschitz": "Wang, Fang and Liu 2017, Assumption 1",
        "inner smooth": "Wang, Fang and Liu 2017, Theorem 8",
        "inner Lipschitz": "Wang, Fang and Liu 2017, Assumption 1",
        "bounded variance": "Wang, Fang and Liu 2017, Assumption 1",
        "unregularised": "Wang, Fang and Liu 2017, problem (1)",
        "whole space": "Wang, Fang and Liu 2017, Theorem 8",
    },
    beyond=PROXIMAL,
    oracle="vector",
    outer="smooth",
    loop=vector_loop,
    begin=begin,
    steps={"two_scale": two_scale_step},
    rate="1 / eps^8",
    theorem="Wang, Fang and Liu 2017, Theorems 5 (iii), 6 and 8",
    cite="Wang, Fang and Liu, Stochastic compositional gradient descent, Mathematical Programming 161, 2017",
    hyper={**vector_loop.DEFAULTS, **vector_loop.NOISY, "alpha_power": 0.75, "beta_power": 0.5},
    grid=grids.VECTOR,
    theory=theory,
)
