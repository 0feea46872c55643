"""ALEXR: a primal-dual block-coordinate method with extrapolated estimates (alexr-2025, Algorithm 1)."""

from fccomodel.algorithms import _steps
from fccomodel.algorithms._base import Algorithm
from fccomodel.estimators import alexr as estimator


def next_stage(h, gained, worst):
    """The next stage restarts from the better of last and average iterate; where neither gained, eta and tau grow.

    ``h.peak`` is the primal step, the inverse of the paper's eta; gamma = 1 / (1 + tau) stays above 0.05.
    """
    if h.theory:
        return
    if not gained:
        h.peak *= 0.6
        h.tau = min(h.tau / 0.7, 19.0)
    h.stage = min(int(1.3 * h.stage), h.longest)


algorithm = Algorithm(
    name="alexr",
    title="ALEXR",
    requires={
        "outer prox": "alexr-2025, section 3.1",
        "outer convex": "alexr-2025, Assumption 3",
        "outer monotone": "alexr-2025, Assumption 3",
        "inner convex": "alexr-2025, Assumption 2",
        "inner Lipschitz": "alexr-2025, Assumption 2",
        "outer Lipschitz": "alexr-2025, Assumption 3",
        "bounded variance": "alexr-2025, Assumption 4",
        "two levels": "alexr-2025, problem (1)",
        "unconstrained": "alexr-2025, problem (1)",
    },
    outer="dual",
    estimator=estimator,
    independent=True,
    next_stage=next_stage,
    steps={"plain": _steps.plain_step},
    rate="n / (B1 B2 eps^2)",
    theorem="alexr-2025, Theorem 1 (smooth f, strongly convex), Theorems 2 and 3",
    cite="Wang and Yang, ALEXR: an optimal single-loop algorithm for convex FCCO, ICML 2025",
    hyper={"tau": 1.0, "theta": 1.0},
    grid={"eta": (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0), "theta": (0.1, 1.0)},  # alexr-2025, section 5.1
    preference=(1.0,),
)
