"""CIVR: recursive (SARAH) estimates of values and Jacobians, an exact one at the start of each epoch (Zhang and Xiao 2019)."""

from fccomodel.algorithms import _vector
from fccomodel.algorithms._base import Algorithm
from fccomodel.algorithms._vector import begin_exactly, hybrid


def begin(state, F, h):
    """F and its Jacobian exactly, and the epoch's first step."""
    eta = 0.5 * h.eta
    state.w = F.prox(state.w - eta * begin_exactly(state, F), eta)


def recursive_step(state, F, h):
    """u <- u + F(w; B) - F(w_prev; B), J likewise;  w <- prox_{eta R}(w - eta J' grad phi(u))."""
    v, eta = hybrid(state, F, 1.0), 0.5 * h.eta
    state.w_prev = state.w
    state.w = F.prox(state.w - eta * v, eta)


algorithm = Algorithm(
    name="civr",
    title="CIVR",
    requires={
        "unconstrained": "Zhang and Xiao 2019, problem (1)",
        "outer smooth": "Zhang and Xiao 2019, Assumption 1",
        "inner smooth": "Zhang and Xiao 2019, Assumption 1",
    },
    oracle="vector",
    outer="smooth",
    loop=_vector,
    begin=begin,
    steps={"recursive": recursive_step},
    rate="n + sqrt(n) / eps^2",
    theorem="Zhang and Xiao 2019, Theorem 3",
    cite="Zhang and Xiao, A stochastic composite gradient method with incremental variance reduction, NeurIPS 2019",
    hyper={**_vector.DEFAULTS, "stage": 100, "longest": 100, "exact": 1.0},
    grid={"eta": _vector.TRIALS},  # hscg-2020, appendix D
    preference=(9.0, 3.0),
)
