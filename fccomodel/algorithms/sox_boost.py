"""SOX-boost: SOX in stages, each with half the step, beta and gamma and twice the steps (sox-2022, Algorithm 2)."""

from fccomodel.algorithms import _steps
from fccomodel.algorithms._base import Algorithm
from fccomodel.estimators import moving_average


def next_stage(h, gained, worst):
    """eta_k, beta_k, gamma_k proportional to eps_k and T_k to 1 / eps_k, with eps_{k+1} = eps_k / 2 (Theorem 2).

    By the theorem's constants after every stage; else once a stage gains nothing, that is, has reached its eps_k.
    """
    if h.theory or not gained:
        h.peak, h.beta, h.gamma = 0.5 * h.peak, 0.5 * h.beta, 0.5 * h.gamma
        h.stage = 2 * h.stage if h.theory else min(2 * h.stage, h.longest)


algorithm = Algorithm(
    name="sox_boost",
    title="SOX-boost",
    requires={
        "outer smooth": "sox-2022, Assumption 1 (i)",
        "outer Lipschitz": "sox-2022, Assumption 1 (i)",
        "inner smooth": "sox-2022, Assumption 1 (ii)",
        "inner Lipschitz": "sox-2022, Assumption 1 (ii)",
        "bounded variance": "sox-2022, Assumption 2",
        "convex": "sox-2022, Theorem 2 (PL condition) and Corollary 1",
        "unconstrained": "sox-2022, section 2",
    },
    outer="smooth",
    estimator=moving_average,
    next_stage=next_stage,
    steps={"adam": _steps.adam_step, "momentum": _steps.momentum_step},
    rate="n / (mu^2 B1 B2 eps)",
    theorem="sox-2022, Theorem 2 and Corollary 1",
    cite="Wang and Yang, Finite-sum coupled compositional stochastic optimization, ICML 2022",
    hyper={"gamma": 0.2, "beta": 0.1, "beta_prime": 0.01, "eps": 1e-8, "longest": 20000},
    grid={"eta": (1e-4, 1e-3, 1e-2, 1e-1), "gamma": (0.1, 0.5, 0.9)},  # sox-2022, section 4
    preference=(1.0,),
)
