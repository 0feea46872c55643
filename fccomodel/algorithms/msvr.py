"""MSVR: variance-reduced estimates of inner expectations and gradient (Jiang et al., 2022; alexr-2025, section 3.2)."""

from typing import TYPE_CHECKING, Any

from fccomodel.algorithms._base import Algorithm
from fccomodel.algorithms._steps import shrink_gamma
from fccomodel.estimators import msvr_theory

if TYPE_CHECKING:  # what the emitted program defines around this text
    gradient: Any = None
    update = project = gradient


def begin(state, h):
    """The gradient's estimate v starts at the first G."""
    state.v = None


def advance(data, state, u, c, batch, h):
    """The gradients at w_{t-1} and w_t by the same samples: the former by the estimates u as they are, the latter moves them."""
    gamma, h.gamma = h.gamma, 0.0
    state.G_prev = gradient(data, state.w_prev, state.w_prev, u, c, batch, h)
    h.gamma = gamma
    G = gradient(data, state.w, state.w_prev, u, c, batch, h)
    state.w_prev.copy_(state.w)
    project(state.w, update(state, G, h), h)


def next_stage(h, gained, worst):
    """Corrections weigh n / B1 and more: where a stage gained nothing, steps were far too long for the estimates to follow."""
    if h.theory:
        return
    if not gained:
        h.peak *= 0.3
        shrink_gamma(h)
    h.stage = min(int(1.3 * h.stage), h.longest)


def storm_step(state, G, h):
    """v <- G(w_t) + (1 - beta) (v - G(w_{t-1}));  w <- w - eta v."""
    state.v = G if state.v is None else G + (1 - h.beta) * (state.v - state.G_prev)
    state.w.sub_(state.v, alpha=h.eta)
    return h.eta


algorithm = Algorithm(
    name="msvr",
    title="MSVR",
    requires={
        "outer smooth": "alexr-2025, Table 1",
        "outer Lipschitz": "sonex-alexr2-2025, section 4.1",
        "inner smooth": "alexr-2025, Table 1; of samples, for STORM: sonex-alexr2-2025, section 4.1",
        "inner Lipschitz": "sonex-alexr2-2025, Assumption 4.6",
        "bounded variance": "sonex-alexr2-2025, Assumption 4.5",
        "unconstrained": "alexr-2025, problem (1)",
    },
    outer="smooth",
    estimator=msvr_theory,
    begin=begin,
    advance=advance,
    next_stage=next_stage,
    points=2,
    steps={"storm": storm_step},
    rate="n / (B1 sqrt(B2) eps^3)",
    theorem="alexr-2025, Table 1 and section 3.2",
    cite="Jiang, Li, Wang, Yang and Yang, Multi-block-single-probe variance reduced estimator, NeurIPS 2022",
    hyper={"gamma": 0.5, "beta": 0.1},
    grid={"eta": (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0), "gamma": (0.1, 0.5, 0.9)},  # alexr-2025, section 5.1
    preference=(1.0,),
)
