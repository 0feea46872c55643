"""MSVR: variance-reduced estimates of inner expectations and gradient (Jiang et al., 2022; alexr-2025,
section 3.2)."""

from math import sqrt
from types import SimpleNamespace

from fccomodel.algorithms import grids
from fccomodel.algorithms._practice import NESTED, PROXIMAL
from fccomodel.algorithms.base import Algorithm, Constants
from fccomodel.algorithms.estimators import msvr_theory
from fccomodel.algorithms.runtime.loops.steps import shrink_gamma


def begin(state, h):
    """The gradient's estimate v starts at the first G; ``before`` will hold the previous estimates u."""
    state.v, state.before = None, None


def advance(solver, data, state, u, c, batch, h):
    """Compute G(w_t) with the estimates u_{t-1}, and G(w_{t-1}) on these samples with u_{t-2}.

    Between these estimates, sampled blocks have moved no more often than other blocks, so that v follows
    the mean over all blocks.
    """
    now = SimpleNamespace(**{name: value.clone() for name, value in vars(u).items()})
    G = solver.gradient(data, state.w, state.w_prev, u, c, batch, h)
    state.G_prev = solver.gradient(data, state.w_prev, state.w_prev, state.before or now, c, batch, h)
    state.before = now
    state.w_prev.copy_(state.w)
    solver.project(state.w, solver.update(state, G, h))


def falling(h, share):
    """Within a stage, let the step size fall alone: gamma must stay large enough to forget the errors of
    corrections, whose weights are n / B1 and more."""
    now = h.copy()
    now.eta = share * h.peak
    return now


def next_stage(h, gained, worst):
    """Make steps much smaller after a stage without improvement."""
    if not gained:
        h.peak *= 0.3
        shrink_gamma(h)
    h.stage = min(int(1.3 * h.stage), h.longest)


def storm_step(state, G, h):
    """v <- G(w_t) + (1 - beta) (v - G(w_{t-1}));  w <- w - eta v."""
    if state.v is None:
        state.v = G
    else:
        state.v = G + (1 - h.beta) * (state.v - state.G_prev)
    state.w.sub_(state.v, alpha=h.eta)
    return h.eta


def theory(k: Constants) -> dict[str, float]:
    """The schedule by the recursions of sonex-alexr2-2025, Lemmas B.1, B.3 and B.4, and STORM's for v.

    The noise terms and the error of the start are at most eps^2 / 2 in sum, and the terms of |v|^2 at
    most 1 / 2. First estimates come from 1 / eps samples.
    """
    L = k.L_f * k.C_1
    beta = min(k.eps**2 / (24 * k.spread) if k.spread else 1.0, 1.0)
    noise = 24 * (L * k.sigma) ** 2
    gamma = min(k.B2 * k.eps**2 / noise if noise else 1.0, beta * k.n / (12 * k.B1), 1 / 2)
    bounds = [1 / (2 * k.smoothness()), sqrt(beta / 48) / (k.C_f * k.L_g)]
    if L:
        bounds += [
            sqrt(beta * k.B1 / (432 * k.n)) / (L * k.C_g),
            k.B1 / k.n * sqrt(gamma / 162) / (L * k.C_g),
        ]
    eta = min(bounds)
    start = k.delta0 / eta + k.spread * k.eps / beta + 2 * L**2 * k.n * k.sigma**2 * k.eps / (gamma * k.B1)
    return {"beta": beta, "gamma": gamma, "eta": eta, "iterations": 4 * start / k.eps**2}


algorithm = Algorithm(
    name="msvr",
    title="MSVR",
    requires={
        "two levels": "alexr-2025, problem (1)",
        "tracked blocks": "alexr-2025, problem (1)",
        "outer smooth": "alexr-2025, Table 1",
        "outer Lipschitz": "sonex-alexr2-2025, section 4.1",
        "inner smooth": "alexr-2025, Table 1",
        "smooth samples": "sonex-alexr2-2025, section 4.1 (for STORM)",
        "inner Lipschitz": "sonex-alexr2-2025, Assumption 4.6",
        "bounded variance": "sonex-alexr2-2025, Assumption 4.5",
        "unconstrained": "alexr-2025, problem (1)",
        "unregularised": "Jiang et al. 2022, problem (1)",
        "whole space": "Jiang et al. 2022, problem (1)",
    },
    beyond={**NESTED, **PROXIMAL},
    outer="smooth",
    estimator=msvr_theory,
    begin=begin,
    advance=advance,
    falling=falling,
    next_stage=next_stage,
    points=2,
    steps={"storm": storm_step},
    rate="n / (B1 sqrt(B2) eps^3)",
    theorem="alexr-2025, Table 1 and section 3.2",
    cite="Jiang, Li, Wang, Yang and Yang, Multi-block-single-probe variance reduced estimator, NeurIPS 2022",
    hyper={"gamma": 0.5, "beta": 0.1},
    theory=theory,
    grid=grids.MSVR,
)
