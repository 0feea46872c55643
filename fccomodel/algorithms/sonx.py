"""SONX: MSVR estimates, subgradients of f, plain steps; constraints by the hinge penalty
(sonex-alexr2-2025, [6] and [8])."""

from math import inf

from fccomodel.algorithms import grids
from fccomodel.algorithms._practice import NESTED, PROXIMAL
from fccomodel.algorithms.base import Algorithm
from fccomodel.algorithms.estimators import msvr
from fccomodel.algorithms.runtime.loops import steps
from fccomodel.algorithms.runtime.loops.steps import slow_down, weigh


def begin(state, h):
    """Judge points by the minimised function: the objective plus rho times the violation."""
    h.weight = h.rho


def step_sizes(h, inverse):
    """Choose eta = 1 / L, with L the Lipschitz constant of the gradient, but a smaller step if the first
    one does not lower the function: on a small batch a kink may be nearer than on all rows."""
    if h.eta <= 0:
        h.eta = inverse(jumps=True)


def falling(h, share):
    """Let steps fall as the square of the remaining share of the stage.

    Subgradients do not vanish near a kink, so that the last iterate is a step's length away from it.
    """
    now = h.copy()
    now.eta = share**2 * h.peak
    weigh(now, max(share, 0.1))
    return now


def next_stage(h, gained, worst):
    """Shrink steps from stage to stage, and increase rho if constraints stay violated.

    The hinge penalty is exact if rho is above the multipliers. So if a stage brought no improvement, and
    its violation did not fall with its steps, rho becomes larger, and steps shorter by this factor.
    """
    h.peak *= 0.85
    if not gained and worst > 1e-3 and worst > 0.9 * h.violated:
        h.rho, h.peak = 4 * h.rho, 0.25 * h.peak
        h.weight = h.rho
    h.violated = worst
    slow_down(h, gained)


algorithm = Algorithm(
    name="sonx",
    title="SONX",
    requires={
        "two levels": "sonex-alexr2-2025, problem (1)",
        "tracked blocks": "sonex-alexr2-2025, problem (1)",
        "outer weakly convex": "sonex-alexr2-2025, Table 1",
        "outer Lipschitz": "sonex-alexr2-2025, Table 1",
        "outer monotone": "sonex-alexr2-2025, Table 1",
        "inner weakly convex": "sonex-alexr2-2025, Table 1",
        "inner Lipschitz": "sonex-alexr2-2025, Assumption 4.6",
        "bounded variance": "sonex-alexr2-2025, Assumption 4.5",
        "regular constraints": "sonex-alexr2-2025, section 5 and reference [8]",
        "heavy penalty": "sonex-alexr2-2025, section 5 and reference [8]",
        "unregularised": "sonex-alexr2-2025, problem (1)",
        "whole space": "sonex-alexr2-2025, problem (1)",
    },
    beyond={**NESTED, **PROXIMAL},
    practice=(
        "penalty: rho grows where constraints stay violated, where the theorem has one above the multipliers",
    ),
    outer="subgradient",
    penalty="hinge",
    estimator=msvr,
    begin=begin,
    step_sizes=step_sizes,
    falling=falling,
    next_stage=next_stage,
    steps={"plain": steps.plain_step},
    rate="n / (B1 sqrt(B2) eps^6)",
    theorem="sonex-alexr2-2025, Tables 1 and 2",
    cite="Hu, Zhu and Yang, Non-smooth weakly-convex finite-sum coupled compositional optimization, "
    "NeurIPS 2023",
    own={"violated": inf},
    hyper={"gamma": 0.8, "gamma_prime": 0.1},
    grid=grids.SONX,
)
