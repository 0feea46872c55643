"""ASCVRG: values and Jacobians corrected at a reference point, epochs that double (ascvrg-2021,
Algorithm 1)."""

import math
from dataclasses import dataclass

from fccomodel.algorithms import grids
from fccomodel.algorithms.base import Algorithm, Constants, Variant
from fccomodel.algorithms.runtime.loops import vector_loop
from fccomodel.algorithms.runtime.loops.vector_estimates import corrected, corrected_by_samples, refer

#: The largest logarithm of a number of samples.
LARGEST = 600.0
#: The least D_x, a bound of |w_0 - w*|^2 that formulas divide by.
LEAST_DISTANCE = 1e-24
#: The values of alpha > 1 that Theorem 3.5 leaves open and that are tried.
ALPHAS = (1.01, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0)


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


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What Theorem 3.5 asks for with one value of alpha.

    eta      the step size
    samples  A, B and C: one minibatch serves all three; at most all rows, which leave no noise
    stage    k_0, the steps of the first epoch
    steps    the steps of all epochs
    """

    eta: float
    samples: float
    stage: int
    steps: float


def sizes(k: Constants, alpha: float) -> Sizes:
    """The sizes of Theorem 3.5 for one alpha > 1, with D_x = diameter^2 and D_phi = delta0."""
    L, D_x, D_phi = k.smoothness(), max(k.diameter**2, LEAST_DISTANCE), k.delta0
    of_start = (2 * D_phi / (3 * L * D_x)) ** (1 / alpha)
    of_accuracy = (k.eps / (60 * math.sqrt(2) * L * (D_x + 2 * D_phi))) ** (1 / alpha)
    eta = min(1 / (2 * L), of_start, of_accuracy)
    of_A, of_B, of_C = (k.C_g**2 * k.L_f / L) ** 2, (k.C_f * k.L_g / L) ** 2, 1.0
    logarithm = math.log(12 * max(of_A, of_B, of_C)) - 2 * alpha * math.log(eta)
    return _of_step(k, eta, math.exp(min(logarithm, LARGEST)))


def sizes_of_all_rows(k: Constants) -> Sizes:
    """The limit of Remark 3.7, alpha -> infinity: eta = 1 / (2 L), and every row in each minibatch."""
    return _of_step(k, 1 / (2 * k.smoothness()), k.rows)


def _of_step(k: Constants, eta: float, samples: float) -> Sizes:
    """The sizes for a step size and the samples of a minibatch."""
    stage = math.floor(k.diameter**2 / (2 * eta * k.delta0)) + 1
    epochs = _epochs(k)
    return Sizes(
        eta=eta, samples=max(1.0, min(samples, k.rows)), stage=stage, steps=stage * (2.0**epochs - 1)
    )


def _epochs(k: Constants) -> int:
    """S = floor(log2(6 D_phi / eps)) + 1."""
    return math.floor(math.log2(max(6 * k.delta0 / k.eps, 1.0))) + 1


def theory(k: Constants) -> dict[str, float]:
    """Theorem 3.5, by the alpha for which all steps together take the fewest samples. Steps here are 2
    eta sqrt(T / (2T - l)) / 2.
    """
    tried = [sizes(k, alpha) for alpha in ALPHAS]
    if math.isfinite(k.rows):
        tried.append(sizes_of_all_rows(k))
    best = min(tried, key=lambda one: one.steps * one.samples)
    samples = math.ceil(best.samples)
    return {
        "eta": 2 * best.eta,
        "stage": best.stage,
        "epochs": _epochs(k),
        "inner_batch": samples,
        "outer_batch": samples,
        "iterations": best.steps,
    }


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
            "as in the paper (schedule = theory); g_j and f_i by one minibatch, those of one step together; "
            "by products, which the paper does not have, where the Jacobian is too large to keep",
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
