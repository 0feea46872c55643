"""SOX for convex F, without momentum, with projections; the answer is the average iterate (sox-2022,
section 3.4 and Theorem 3)."""

from math import sqrt

from fccomodel.algorithms import grids
from fccomodel.algorithms._practice import NESTED
from fccomodel.algorithms.base import Algorithm, Constants, Variant
from fccomodel.algorithms.estimators import moving_average
from fccomodel.algorithms.runtime.loops import steps


def theory(k: Constants) -> dict[str, float]:
    """The schedule of sox-2022, Theorem 5: each of nine terms is at most eps / 9, gamma = 1 / (1 + tau).

    C_Omega is the ``diameter``. The paper assumes a bound of f*; here it is C_f C_g C_Omega.
    """
    C = k.C_f * k.C_g * sqrt(k.C_f**2 * (k.C_g**2 + k.zeta**2 / k.B2))
    far = (k.C_g * k.diameter) ** 2
    eta = min(k.B1 * k.eps / (9 * k.n * C), k.eps / (9 * (k.C_f * k.C_g) ** 2))
    if k.spread:
        eta = min(eta, k.eps / (9 * k.spread))
    tau = max(
        9 * k.L_f * k.sigma**2 / (k.B2 * k.eps),
        9 * k.B1 / (k.n * k.B2 * k.eps),
        9 * k.B1 * k.L_f * far / (k.n * k.eps),
    )
    blocks = k.n / (k.B1 * k.eps)
    T = max(
        36 * blocks * k.C_f * k.C_g * k.diameter,
        9 * blocks * tau * k.L_f * far,
        9 * k.diameter**2 / (2 * eta * k.eps),
    )
    return {"eta": eta, "gamma": 1 / (1 + tau), "iterations": T}


algorithm = Algorithm(
    name="sox_convex",
    title="SOX (beta = 1)",
    requires={
        "two levels": "sox-2022, problem (1)",
        "tracked blocks": "sox-2022, problem (1)",
        "scalar inner": "sox-2022, Assumption 3",
        "outer smooth": "sox-2022, Theorem 3",
        "outer convex": "sox-2022, Assumption 3",
        "outer always monotone": "sox-2022, Assumption 3",
        "outer Lipschitz": "sox-2022, Theorem 3",
        "inner convex": "sox-2022, Assumption 3",
        "inner Lipschitz": "sox-2022, Theorem 3",
        "bounded variance": "sox-2022, Assumption 2",
        "bounded domain": "sox-2022, Assumption 3",
        "unconstrained": "sox-2022, section 3.4",
        "unregularised": "sox-2022, section 3.4",
    },
    beyond={
        **NESTED,
        "scalar inner": "every argument of f has its own estimate",
        "bounded domain": "iterates are taken to stay bounded",
        "unregularised": "each step is followed by the prox of the regulariser",
    },
    outer="smooth",
    estimator=moving_average,
    variants=(
        Variant(
            "beta = 1, projected, averaged",
            "sox-2022, section 3.4 and Theorem 3",
            "as in the paper (schedule = theory)",
        ),
    ),
    steps={"plain": steps.plain_step},
    rate="max(n / B1, n / (B1 B2), 1 / min(B1, B2)) / eps^2",
    gives="optimum",
    theorem="sox-2022, Theorem 3 (alexr-2025, Table 1, doubts its measure)",
    cite="Wang and Yang, Finite-sum coupled compositional stochastic optimization, ICML 2022",
    hyper={"gamma": 0.2},
    theory=theory,
    grid=grids.SOX,
)
