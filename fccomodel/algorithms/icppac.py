"""ICPPAC: an inexact constrained proximal point, each by constraint extrapolation (ConEx; sonex-alexr2-2025, reference [10])."""

from typing import TYPE_CHECKING, Any

from fccomodel.algorithms import _grids
from fccomodel.algorithms._base import Algorithm
from fccomodel.algorithms._proximal_point import inner_step
from fccomodel.estimators import alexr as estimator

if TYPE_CHECKING:  # what the emitted program defines around this text
    update: Any = None


def begin(state, h):
    """The inner iterate z and the count of its steps; the multipliers go on across rounds."""
    state.z, state.z_prev, state.k = state.w.clone(), state.w.clone(), 0


def step_sizes(h, inverse):
    """eta is the inverse of the gradient's Lipschitz constant; nu as far as the inner steps reach."""
    if h.eta <= 0:
        h.eta = inverse()
    if h.nu <= 0:
        h.nu = h.inner_steps * h.eta


def advance(data, state, u, c, batch, h):
    """An inner step, with y <- [y + (g + theta (g - g_prev)) / tau]_+ of each constraint; after the last, the next round.

    The objective alone has the |z - w|^2 / (2 nu) of the subproblem, which the method has in the constraints too.
    """
    if inner_step(data, state, u, c, batch, h, h.eta):
        state.w_prev.copy_(state.w)
        update(state, state.z, h)


def next_stage(h, gained, worst):
    """The next stage is longer; after one that gained nothing, primal and dual steps are smaller."""
    if h.theory:
        return
    if not gained:
        h.peak *= 0.6
        h.tau /= 0.6
    h.stage = min(int(1.3 * h.stage), h.longest)


def next_centre(state, z, h):
    """w <- z_K, the centre of the next proximal point."""
    state.w.copy_(z)
    return 0.0


algorithm = Algorithm(
    name="icppac",
    title="ICPPAC",
    requires={
        "outer prox": "alexr-2025, section 3.1 (its dual step)",
        "outer convex": "alexr-2025, section 3.1 (its dual step)",
        "inner weakly convex": "sonex-alexr2-2025, Table 2",
        "inner Lipschitz": "sonex-alexr2-2025, Table 2",
        "bounded variance": "sonex-alexr2-2025, Table 2",
    },
    outer="dual",
    penalty="lagrangian",
    estimator=estimator,
    step_sizes=step_sizes,
    begin=begin,
    advance=advance,
    next_stage=next_stage,
    steps={"proximal_point": next_centre},
    rate="1 / eps^6",
    theorem="sonex-alexr2-2025, Table 2",
    cite="Boob, Deng and Lan, Stochastic first-order methods for convex and nonconvex functional constrained optimization, 2023",
    hyper={"tau": 10.0, "theta": 0.1, "nu": 0.0, "inner_steps": 10},
    grid=_grids.ICPPAC,
    preference=(1.0,),
)
