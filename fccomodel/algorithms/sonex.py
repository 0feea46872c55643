"""SONEX: variance-reduced estimates, outer smoothing, momentum or Adam-type steps (sonex-alexr2-2025, Algorithm 1)."""

from fccomodel.algorithms import _steps
from fccomodel.algorithms._base import Algorithm
from fccomodel.estimators import msvr

algorithm = Algorithm(
    name="sonex",
    title="SONEX",
    requires={
        "outer prox": "sonex-alexr2-2025, Theorem 4.2",
        "inner smooth": "sonex-alexr2-2025, section 4.1",
    },
    penalty="smoothed_hinge",
    estimator=msvr,
    steps={"adam": _steps.adam_step, "momentum": _steps.momentum_step},
    rate="n / (B1 sqrt(B2) eps^5)",
    theorem="sonex-alexr2-2025, Theorem 4.7 (unconstrained), Theorem 5.3 (constrained)",
    cite="sonex-alexr2-2025, Algorithm 1 and appendix E",
    hyper={"gamma": 0.8, "gamma_prime": 0.1, "beta": 0.1, "beta_prime": 0.01, "eps": 1e-8},
    preference=(5.0, 0.5),
)
