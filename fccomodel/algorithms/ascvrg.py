"""ASCVRG: values and Jacobians corrected at a reference point, epochs that double (ascvrg-2021,
Algorithm 1)."""

import math

from fccomodel.algorithms import grids
from fccomodel.algorithms.base import Algorithm, Constants, Variant
from fccomodel.algorithms.runtime.loops import vector_loop
from fccomodel.algorithms.runtime.loops.vector_estimates import corrected, corrected_by_samples, refer


def begin(state, F, h):
    """The reference point is the average of the last epoch's iterates. The epoch starts at the last one."""
    if state.epoch == 0:
        state.average, state.total = state.w, h.stage * (2.0**h.epochs - 1)
    refer(state, F, state.average)
    if F.partial:
        state.direct_ref = F.slope(state.reference, state.u_ref)[1]
    state.average, state.count = state.w.clone(), 0


def doubling_step(state, F, h):
    """w <- prox_{eta_t R}(w - eta_t v), eta_t = eta sqrt(T / (2T - l)), after l of T planned steps
    (equation (6))."""
    state.count += 1
    state.average.lerp_(state.w, 1.0 / state.count)
    if F.partial:
        v = corrected_by_samples(state, F)
    else:
        v = corrected(state, F)
    steps_so_far = min(state.t + 1, state.total)
    eta = 0.5 * h.eta * math.sqrt(state.total / (2 * state.total - steps_so_far))
    state.w = F.prox(state.w - eta * v, eta)


def theory(k: Constants) -> dict[str, float]:
    """Theorem 3.5 in the limit of Remark 3.7: eta = 1 / (2 L), D_x = diameter^2, D_phi = delta0."""
    L = k.smoothness()
    stage = math.floor(k.diameter**2 * L / k.delta0) + 1
    epochs = math.floor(math.log2(max(6 * k.delta0 / k.eps, 1.0))) + 1
    return {"eta": 1 / L, "stage": stage, "epochs": epochs, "iterations": stage * (2.0**epochs - 1)}


algorithm = Algorithm(
    name="ascvrg",
    title="ASCVRG",
    requires={
        "unconstrained": "ascvrg-2021, equation (1)",
        "shared inner": "ascvrg-2021, equation (1)",
        "two levels": "ascvrg-2021, equation (1)",
        "finite sum": "ascvrg-2021, equation (1)",
        "convex": "ascvrg-2021, Assumption 3.1",
        "prox regulariser": "ascvrg-2021, Assumption 3.2",
        "outer smooth": "ascvrg-2021, Assumption 3.3",
        "inner smooth": "ascvrg-2021, Assumption 3.3",
        "smooth samples": "ascvrg-2021, Assumption 3.3",
        "outer Lipschitz": "ascvrg-2021, Assumption 3.4",
        "inner Lipschitz": "ascvrg-2021, Assumption 3.4",
    },
    oracle="vector",
    samples_outer=True,
    outer="smooth",
    loop=vector_loop,
    begin=begin,
    variants=(
        Variant(
            "epochs that double, samples of the outer index",
            "ascvrg-2021, Algorithm 1 and Theorem 3.5",
            "as in the paper; g_j and f_i by one minibatch, those of one step together",
        ),
    ),
    steps={"doubling": doubling_step},
    counts="oracle calls",
    rate="(m + n) log(1/eps) + 1/eps^3",
    gives="optimum",
    theorem="ascvrg-2021, Theorem 3.5",
    cite="Lin, Fan, Wang and Jordan, Improved oracle complexity for stochastic compositional variance "
    "reduced gradient, 2021",
    hyper={
        **vector_loop.DEFAULTS,
        "stage": 16,
        "growth": 2.0,
        "longest": 1 << 16,
        "epochs": 12,
        "inner_batch": 32,
    },
    theory=theory,
    grid=grids.VECTOR,
)
