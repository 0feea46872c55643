"""SOX: moving-average estimates of the inner expectations, momentum on the gradient (sox-2022, Algorithm 1)."""

from fccomodel.algorithms import _steps
from fccomodel.algorithms._base import Algorithm
from fccomodel.estimators import moving_average

algorithm = Algorithm(
    name="sox",
    title="SOX",
    requires={
        "outer smooth": "sox-2022, Assumption 1 (i)",
        "inner smooth": "sox-2022, Assumption 1 (ii)",
        "unconstrained": "sox-2022, section 2",
    },
    outer="smooth",
    estimator=moving_average,
    steps={"adam": _steps.adam_step, "momentum": _steps.momentum_step},
    rate="n / (B1 B2 eps^4)",
    theorem="sox-2022, Theorem 1",
    cite="Wang and Yang, Finite-sum coupled compositional stochastic optimization, ICML 2022",
    hyper={"gamma": 0.2, "beta": 0.1, "beta_prime": 0.01, "eps": 1e-8},
    preference=(4.0, 0.0),
)
