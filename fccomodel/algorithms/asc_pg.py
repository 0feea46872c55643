"""ASC-PG: values averaged at extrapolated points, proximal steps (Wang, Liu and Fang 2017, Algorithm 1)."""

from fccomodel.algorithms import grids
from fccomodel.algorithms._practice import PROXIMAL
from fccomodel.algorithms.base import Algorithm, Constants
from fccomodel.algorithms.runtime.loops import vector_loop
from fccomodel.algorithms.runtime.loops.vector_estimates import decayed


def begin(state, F, h):
    """u starts at the first minibatch's value."""
    if state.epoch == 0:
        state.u = F.sample(state.w, F.batch()).value


def extrapolated_step(state, F, h):
    """w+ = prox_{alpha R}(w - alpha J(w; B)' grad phi(u));  z = (1 - 1/beta) w + w+ / beta;
    u <- (1 - beta) u + beta F(z; B')."""
    at = F.sample(state.w, F.batch())
    alpha, beta = h.eta * decayed(state, h, h.alpha_power), decayed(state, h, h.beta_power)
    s, direct = F.slope(state.w, state.u)
    new = F.prox(state.w - alpha * (at.pull(s) + direct), alpha)
    ahead = F.sample(state.w + (new - state.w) / beta, F.batch())
    state.u = state.u + beta * (ahead.value - state.u)
    state.w = new


def theory(k: Constants) -> dict[str, float]:
    """alpha_k = k^-5/9 / L, beta_k = k^-4/9."""
    return {"eta": 1 / k.smoothness(), "alpha_power": 5 / 9, "beta_power": 4 / 9, "warm": 1.0}


algorithm = Algorithm(
    name="asc_pg",
    title="ASC-PG",
    requires={
        "unconstrained": "Wang, Liu and Fang 2017, problem (1)",
        "shared inner": "Wang, Liu and Fang 2017, problem (1)",
        "two levels": "Wang, Liu and Fang 2017, problem (1)",
        "prox regulariser": "Wang, Liu and Fang 2017, Assumption 1",
        "outer smooth": "Wang, Liu and Fang 2017, Assumption 3",
        "outer Lipschitz": "Wang, Liu and Fang 2017, Assumption 3",
        "inner smooth": "Wang, Liu and Fang 2017, Assumption 3",
        "inner Lipschitz": "Wang, Liu and Fang 2017, Assumption 3",
        "bounded variance": "Wang, Liu and Fang 2017, Assumption 2",
        "unregularised": "Wang, Liu and Fang 2017, Theorem 1",
        "whole space": "Wang, Liu and Fang 2017, Theorem 1",
    },
    beyond=PROXIMAL,
    oracle="vector",
    outer="smooth",
    loop=vector_loop,
    begin=begin,
    steps={"extrapolated": extrapolated_step},
    rate="1 / eps^4.5",
    theorem="Wang, Liu and Fang 2017, Theorems 1 to 3",
    cite="Wang, Liu and Fang, Accelerating stochastic composition optimization, JMLR 18, 2017",
    hyper={**vector_loop.DEFAULTS, **vector_loop.NOISY, "alpha_power": 5 / 9, "beta_power": 4 / 9},
    grid=grids.VECTOR,
    theory=theory,
)
