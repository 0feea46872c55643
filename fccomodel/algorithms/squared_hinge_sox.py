"""The squared hinge penalty minimised by SOX (sonex-alexr2-2025, reference [7] and section 6)."""

from fccomodel.algorithms import grids
from fccomodel.algorithms._practice import NESTED, PROXIMAL
from fccomodel.algorithms.base import Algorithm
from fccomodel.algorithms.estimators import moving_average
from fccomodel.algorithms.runtime.loops import steps
from fccomodel.algorithms.runtime.loops.steps import slow_down


def next_stage(h, gained, worst):
    """rho grows until the constraints hold: at the minimiser they are violated by multiplier / rho."""
    if worst > 1e-4:
        h.weight = max(h.weight, 2 * h.rho * worst)
        h.rho *= 2
    slow_down(h, gained)


algorithm = Algorithm(
    name="squared_hinge_sox",
    title="SOX with the squared hinge penalty",
    requires={
        "constrained": "sonex-alexr2-2025, problem (7)",
        "two levels": "sox-2022, problem (1)",
        "tracked blocks": "sox-2022, problem (1)",
        "outer smooth": "sonex-alexr2-2025, section 6 and reference [7]",
        "outer Lipschitz": "sox-2022, Assumption 1 (i)",
        "inner smooth": "sox-2022, Assumption 1 (ii)",
        "inner Lipschitz": "sox-2022, Assumption 1 (ii)",
        "bounded variance": "sox-2022, Assumption 2",
        "regular constraints": "sonex-alexr2-2025, section 2 and reference [7]",
        "unregularised": "sox-2022, Algorithm 1, line 7",
        "whole space": "sox-2022, Algorithm 1, line 7",
    },
    beyond={**NESTED, **PROXIMAL},
    outer="smooth",
    penalty="squared_hinge",
    estimator=moving_average,
    next_stage=next_stage,
    steps={"adam": steps.adam_step, "momentum": steps.momentum_step},
    rate="1 / eps^7",
    theorem="sonex-alexr2-2025, Table 2 (Li et al.)",
    cite="Li, Yu, Lu, Wang and Yang, Model developmental safety: a safety-centric method and "
    "applications, 2024",
    hyper={"gamma": 0.2, "beta": 0.1, "beta_prime": 0.01, "eps": 1e-8},
    grid=grids.SQUARED_HINGE_SOX,
)
