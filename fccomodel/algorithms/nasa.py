"""NASA: averages of the gradient and of the values, one time scale (Ghadimi, Ruszczynski and Wang
2020, Algorithm 1)."""

from fccomodel.algorithms import grids
from fccomodel.algorithms._practice import PROXIMAL
from fccomodel.algorithms.base import Algorithm
from fccomodel.algorithms.runtime.loops import vector_loop
from fccomodel.algorithms.runtime.loops.vector_estimates import decayed


def begin(state, F, h):
    """u and v start at the first minibatch's values."""
    if state.epoch == 0:
        at = F.sample(state.w, F.batch())
        state.u = at.value
        s, direct = F.slope(state.w, state.u)
        state.v = at.pull(s) + direct


def averaged_step(state, F, h):
    """w <- w + tau (prox_{eta R}(w - eta v) - w);  then at the new w, with grad phi at the old u:
    v <- (1 - tau) v + tau J(w; B)' grad phi(u);  u <- (1 - tau) u + tau F(w; B) (a = b = 1)."""
    tau = h.tau * decayed(state, h, 0.5)
    state.w = state.w + tau * (F.prox(state.w - h.eta * state.v, h.eta) - state.w)
    at = F.sample(state.w, F.batch())
    s, direct = F.slope(state.w, state.u)
    state.v = state.v + tau * (at.pull(s) + direct - state.v)
    state.u = state.u + tau * (at.value - state.u)


algorithm = Algorithm(
    name="nasa",
    title="NASA",
    requires={
        "unconstrained": "Ghadimi, Ruszczynski and Wang 2020, problem (1.1)",
        "shared inner": "Ghadimi, Ruszczynski and Wang 2020, problem (1.1)",
        "two levels": "Ghadimi, Ruszczynski and Wang 2020, problem (1.1)",
        "outer smooth": "Ghadimi, Ruszczynski and Wang 2020, Assumption 1",
        "outer Lipschitz": "Ghadimi, Ruszczynski and Wang 2020, Assumption 1",
        "inner smooth": "Ghadimi, Ruszczynski and Wang 2020, Assumption 1",
        "inner Lipschitz": "Ghadimi, Ruszczynski and Wang 2020, Assumption 1",
        "bounded variance": "Ghadimi, Ruszczynski and Wang 2020, Assumption 2",
        "unregularised": "Ghadimi, Ruszczynski and Wang 2020, problem (1.1)",
    },
    beyond={"unregularised": PROXIMAL["unregularised"]},
    oracle="vector",
    outer="smooth",
    loop=vector_loop,
    begin=begin,
    steps={"averaged": averaged_step},
    rate="1 / eps^4",
    theorem="Ghadimi, Ruszczynski and Wang 2020, Theorem 1",
    cite="Ghadimi, Ruszczynski and Wang, A single timescale stochastic approximation method for nested "
    "stochastic optimization, "
    "SIAM Journal on Optimization 30, 2020",
    hyper={**vector_loop.DEFAULTS, **vector_loop.NOISY, "tau": 0.5},
    grid=grids.VECTOR,
)
