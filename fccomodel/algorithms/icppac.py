"""ICPPAC: constrained proximal points, each by constraint extrapolation, ConEx (sonex-alexr2-2025,
reference [10])."""

from fccomodel.algorithms import grids
from fccomodel.algorithms._practice import NESTED
from fccomodel.algorithms.base import Algorithm
from fccomodel.algorithms.estimators import conex
from fccomodel.algorithms.runtime.loops.proximal_point import inner_gradient, inner_step


def begin(state, h):
    """The inner iterate z and the count of its steps; the multipliers go on across rounds."""
    state.z, state.z_prev, state.k = state.w.clone(), state.w.clone(), 0


def step_sizes(h, inverse):
    """Choose eta = 1 / L, with L the Lipschitz constant of the gradient, and nu = K eta for K inner steps."""
    if h.eta <= 0:
        h.eta = inverse()
    if h.nu <= 0:
        h.nu = h.inner_steps * h.eta


def advance(solver, data, state, u, c, batch, h):
    """An inner step of ConEx, which moves multipliers first; after the last one, the next round.

    In the subproblem |z - w|^2 / (2 nu) is added to the objective and to every constraint. So a
    multiplier follows the constraint's value plus this term, both extrapolated, and the pull towards w
    is that of the objective plus that of each multiplier. Values are taken at z and at the previous
    point, as in alexr-2025; the paper's linearisations differ from them by squares of steps.
    """
    z, h = state.w if state.k == 0 else state.z, h.copy()
    h.distance = (1 + h.theta) * distance(z, state, h) - h.theta * distance(state.z_prev, state, h)
    G = inner_gradient(solver, data, state, u, c, batch, h)
    if inner_step(solver, state, G, h.eta, weight(solver, c) / h.nu, h.inner_steps):
        state.w_prev.copy_(state.w)
        solver.update(state, state.z, h)


def distance(z, state, h):
    """|z - w|^2 / (2 nu)."""
    return (z - state.w).square().sum() / (2 * h.nu)


def weight(solver, c):
    """1 + the sum of the inequalities' multipliers: the factor of |z - w|^2 / (2 nu) in the subproblem's
    Lagrangian."""
    return 1.0 + sum(float(getattr(c, name).abs().sum()) for name in solver.inequalities)


def falling(h, share):
    """Within a stage, let primal and dual steps fall at one rate."""
    now = h.copy()
    now.eta, now.tau = share * h.peak, h.tau / share
    return now


def next_stage(h, gained, worst):
    """The next stage is longer. After a stage without improvement, primal and dual steps are smaller."""
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
        "constrained": "sonex-alexr2-2025, problem (7)",
        "plain expectations": "sonex-alexr2-2025, problem (7)",
        "two levels": "sonex-alexr2-2025, problem (7)",
        "tracked blocks": "sonex-alexr2-2025, problem (7)",
        "outer prox": "alexr-2025, section 3.1 (its dual step)",
        "outer convex": "alexr-2025, section 3.1 (its dual step)",
        "inner weakly convex": "sonex-alexr2-2025, Table 2",
        "inner Lipschitz": "sonex-alexr2-2025, Table 2",
        "bounded variance": "sonex-alexr2-2025, Table 2",
        "strictly feasible": "sonex-alexr2-2025, section 2 and reference [10]",
    },
    beyond={**NESTED, "plain expectations": "outer functions are kept by dual variables, as in ALEXR"},
    outer="dual",
    penalty="lagrangian",
    estimator=conex,
    step_sizes=step_sizes,
    begin=begin,
    advance=advance,
    falling=falling,
    next_stage=next_stage,
    steps={"proximal_point": next_centre},
    rate="1 / eps^6",
    theorem="sonex-alexr2-2025, Table 2",
    cite="Boob, Deng and Lan, Stochastic first-order methods for convex and nonconvex functional "
    "constrained optimization, 2023",
    own={"distance": 0.0},
    hyper={"tau": 30.0, "theta": 0.1, "nu": 0.0, "inner_steps": 10},
    grid=grids.ICPPAC,
)
