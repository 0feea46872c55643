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
    """Points are judged by the function that is minimised: the objective plus rho times the violation."""
    h.weight = h.rho


def step_sizes(h, inverse):
    """The inverse of the gradient's Lipschitz constant, no further than a first step lowers the
    function itself: in a small batch a kink may be nearer than it is on all rows."""
    if h.eta <= 0:
        h.eta = inverse(jumps=True)


def falling(h, share):
    """Subgradients do not vanish beside a kink, so that the last iterate is as far from it as its step
    is long: steps fall as the square of what is left of the stage."""
    now = h.copy()
    now.eta = share**2 * h.peak
    weigh(now, max(share, 0.1))
    return now


def next_stage(h, gained, worst):
    """Steps shrink from stage to stage. The hinge is exact where rho is above the multipliers: where a
    stage gained nothing and its violation did not fall as its steps did, rho is larger, and steps
    as much shorter."""
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
