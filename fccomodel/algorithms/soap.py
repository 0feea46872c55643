"""SOAP: gradients use the updated moving averages, without momentum (Qi et al., 2021; sox-2022, section
3.1)."""

from fccomodel.algorithms import grids
from fccomodel.algorithms._practice import NESTED, PROXIMAL
from fccomodel.algorithms.base import Algorithm
from fccomodel.algorithms.estimators import moving_average_current
from fccomodel.algorithms.runtime.loops import steps

algorithm = Algorithm(
    name="soap",
    title="SOAP",
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
    estimator=moving_average_current,
    steps={"plain": steps.plain_step},
    rate="n / eps^5",
    theorem="sox-2022, Table 1",
    cite="Qi, Luo, Xu, Ji and Yang, Stochastic optimization of areas under precision-recall curves, "
    "NeurIPS 2021",
    hyper={"gamma": 0.2},
    grid=grids.SOX,
)
