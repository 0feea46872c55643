"""SOX: moving-average estimates of the inner expectations, momentum on the gradient (sox-2022,
Algorithm 1)."""

from fccomodel.algorithms import grids
from fccomodel.algorithms._practice import NESTED, PROXIMAL
from fccomodel.algorithms.base import Algorithm, Constants, Variant
from fccomodel.algorithms.estimators import moving_average
from fccomodel.algorithms.runtime.loops import steps


def theory(k: Constants) -> dict[str, float]:
    """The schedule of sox-2022, proof of Theorem 1 (B.2), with beta <= 2/7 as Lemma 2 needs."""
    beta = min(k.eps**2 / (12 * k.spread) if k.spread else 1.0, 2 / 7)
    noise = 240 * (k.L_f * k.C_1 * k.sigma) ** 2
    gamma = min(k.B2 * k.eps**2 / noise if noise else 1.0, 1 / 5, 5 * k.n / (3 * k.B1) * beta)
    slow = 30 * k.L_f * k.n * k.C_1 * k.C_g
    eta = min(beta / (4 * k.smoothness()), gamma * k.B1 / slow if slow else 1.0)
    start = (
        k.delta0
        + (k.C_f * k.C_g) ** 2 / (4 * k.smoothness())
        + 2 * k.L_f * k.C_1 * k.sigma**2 / (3 * k.C_g * k.B2)
    )
    return {"beta": beta, "gamma": gamma, "eta": eta, "iterations": 6 * start / (eta * k.eps**2)}


algorithm = Algorithm(
    name="sox",
    title="SOX",
    requires={
        "two levels": "sox-2022, problem (1)",
        "tracked blocks": "sox-2022, problem (1)",
        "outer smooth": "sox-2022, Assumption 1 (i)",
        "outer Lipschitz": "sox-2022, Assumption 1 (i)",
        "inner smooth": "sox-2022, Assumption 1 (ii)",
        "inner Lipschitz": "sox-2022, Assumption 1 (ii)",
        "bounded variance": "sox-2022, Assumption 2",
        "unconstrained": "sox-2022, section 2",
        "unregularised": "sox-2022, Algorithm 1, line 7",
        "whole space": "sox-2022, Algorithm 1, line 7",
    },
    beyond={**NESTED, **PROXIMAL},
    outer="smooth",
    estimator=moving_average,
    variants=(
        Variant(
            "momentum",
            "sox-2022, Algorithm 1 and Theorem 1",
            "as in the paper (step = momentum, schedule = theory)",
        ),
        Variant(
            "Adam-type steps",
            "sonex-alexr2-2025, appendix E",
            "by SONEX's formula, without a theorem (step = adam)",
        ),
        Variant(
            "stochastic f_i",
            "sox-2022, appendix E",
            "as in the paper: an expectation around f draws its samples",
        ),
    ),
    steps={"adam": steps.adam_step, "momentum": steps.momentum_step},
    rate="max(n / (B1 B2), 1 / min(B1, B2)) / eps^4",
    theorem="sox-2022, Theorem 1",
    cite="Wang and Yang, Finite-sum coupled compositional stochastic optimization, ICML 2022",
    hyper={"gamma": 0.2, "beta": 0.1, "beta_prime": 0.01, "eps": 1e-8},
    theory=theory,
    grid=grids.SOX,
)
