"""MOAP: all estimates shrink, sampled ones add scaled values; momentum (Wang et al., 2021; sox-2022,
equation (3))."""

from fccomodel.algorithms import grids
from fccomodel.algorithms._practice import NESTED, PROXIMAL
from fccomodel.algorithms.base import Algorithm
from fccomodel.algorithms.estimators import sparsified
from fccomodel.algorithms.runtime.loops import steps

algorithm = Algorithm(
    name="moap",
    title="MOAP",
    requires={
        "two levels": "sox-2022, problem (1)",
        "tracked blocks": "sox-2022, problem (1)",
        "outer smooth": "sox-2022, Assumption 1 (i)",
        "outer Lipschitz": "sox-2022, Assumption 1 (i)",
        "inner smooth": "sox-2022, Assumption 1 (ii)",
        "inner Lipschitz": "sox-2022, Assumption 1 (ii)",
        "bounded variance": "sox-2022, Assumption 2",
        "unconstrained": "sox-2022, section 2",
        "unregularised": "sox-2022, section 3.1",
        "whole space": "sox-2022, section 3.1",
    },
    beyond={**NESTED, **PROXIMAL},
    outer="smooth",
    estimator=sparsified,
    steps={"adam": steps.adam_step, "momentum": steps.momentum_step},
    rate="n / (B1 eps^4)",
    theorem="sox-2022, Table 1",
    cite="Wang, Yang, Zhang and Yang, Momentum accelerates the convergence of stochastic AUPRC "
    "maximization, AISTATS 2022",
    hyper={"gamma": 0.1, "beta": 0.1, "beta_prime": 0.01, "eps": 1e-8},
    grid=grids.SOX,
)
