"""ALEXR2: momentum on the nested Moreau envelope, whose proximal points ALEXR finds
(sonex-alexr2-2025, Algorithm 2)."""

from dataclasses import dataclass
from math import ceil, isfinite, log, sqrt

from fccomodel.algorithms import grids
from fccomodel.algorithms._practice import NESTED, PROXIMAL
from fccomodel.algorithms.base import Algorithm, Constants, Theorem, Variant
from fccomodel.algorithms.estimators import msvr_current
from fccomodel.algorithms.runtime.loops import steps
from fccomodel.algorithms.runtime.loops.proximal_point import inner_gradient, inner_step
from fccomodel.algorithms.runtime.loops.steps import shrink_gamma
from fccomodel.core.lazy import torch


def begin(state, h):
    """The inner iterate z and the count of its steps; v and s of the outer update. The estimates u go
    on across rounds."""
    state.z, state.z_prev, state.k = state.w.clone(), state.w.clone(), 0
    state.v, state.s = torch.zeros_like(state.w), torch.zeros_like(state.w)


def step_sizes(h, inverse):
    """Choose nu = K x inner step, or 1 / L if no inner step is given, and inner steps of nu / K.

    L is the Lipschitz constant of the gradient. alpha (``h.eta``) is nu, since 1 / nu is the Lipschitz
    constant of the nested envelope's gradient (Lemma C.2).
    """
    if h.nu <= 0:
        h.nu = h.inner_steps * h.inner_eta or inverse()
    if h.inner_eta <= 0:
        h.inner_eta = h.nu / h.inner_steps
    if h.eta <= 0:
        h.eta = h.nu


def advance(solver, data, state, u, c, batch, h):
    """An inner step; after K inner steps an outer step with G_t = (w_t - z_K) / nu.

    The additional beta in line 13 of the paper is a misprint.
    """
    G = inner_gradient(solver, data, state, u, c, batch, h)
    if inner_step(solver, state, G, h.inner_eta, 1.0 / h.nu, h.inner_steps):
        state.w_prev.copy_(state.w)
        solver.update(state, (state.w - state.z) / h.nu, h)
        solver.project(state.w, 0.0)


def next_stage(h, gained, worst):
    """The next stage is longer. After a stage without improvement, inner and outer steps are smaller, and
    estimates average over more steps."""
    if not gained:
        h.peak *= 0.6
        h.inner_eta *= 0.6
        shrink_gamma(h)
    h.stage = min(int(1.3 * h.stage), h.longest)


@dataclass(frozen=True, kw_only=True)
class InnerLoop:
    """The schedule of the inner loop.

    lam    the smoothing of the outer functions
    rho_F  the weak convexity of F
    nu     the parameter of the proximal point
    away   1 - theta, bounded by the noise and by (30)
    steps  the steps after which the error of the start is small enough
    """

    lam: float
    rho_F: float
    nu: float
    away: float
    steps: int


def inner_loop(k: Constants, share: float) -> InnerLoop:
    """The schedule of the inner loop, by the proof of Theorem C.1.

    share   accuracy as a share of that of Theorem 4.10, mu/2 |z_K - prox|^2 <= mu nu^2 eps^2 / 36
    """
    lam = k.eps / k.C_f
    rho_F = sqrt(k.d1) * k.C_f * k.rho_g
    nu = 1 / (4 * rho_F) if rho_F else 1.0
    mu = 1 / nu - rho_F
    accuracy = share * mu * (nu * k.eps) ** 2 / 36
    noise = 6 * k.sigma**2 * k.n / (lam * k.B1 * k.B2) + k.spread / mu
    # A g with kinks adds this noise; a smooth g bounds the step instead (alexr-2025, Theorem 1).
    rough = 4 * (k.C_f * k.C_g) ** 2 / mu
    if isfinite(k.L_g):
        bounds = [mu / (k.L_g * k.C_f), accuracy / noise if noise else 1.0]
    else:
        bounds = [accuracy / (noise + rough)]
    away = min(k.B1 / (2 * k.n), 1 / 2, sqrt(k.B1 * lam * mu / k.n) / k.C_g, *bounds)
    start = mu * (nu * k.C_f * k.C_g) ** 2 + 4 * lam * k.C_f**2
    steps = ceil(log(max(2 * start / accuracy, 2.0)) / away)
    return InnerLoop(lam=lam, rho_F=rho_F, nu=nu, away=away, steps=steps)


def theory(k: Constants) -> dict[str, float]:
    """The schedule of sonex-alexr2-2025, proof of Theorem 4.10.

    alpha <= beta / (2 L), the number T of rounds from the last display of the proof, 1 / nu = 4 rho_F,
    and z_K at a distance of at most nu eps / sqrt(18) from the proximal point.
    """
    inner = inner_loop(k, 1.0)
    theta = 1 - inner.away
    gamma = k.n * inner.away / k.B1
    beta = 1 / 2
    L = max(1 / inner.nu, inner.rho_F / (1 - inner.nu * inner.rho_F))
    eta = beta / (2 * L)
    start = (k.delta0 + inner.lam * k.C_f**2 / 2) / eta + 1.5 * (k.C_f * k.C_g) ** 2
    rounds = 3 * start / k.eps**2
    return {
        "lam": inner.lam,
        "nu": inner.nu,
        "inner_eta": inner.away / (theta / inner.nu - inner.rho_F),
        "inner_steps": inner.steps,
        "gamma": gamma,
        "gamma_prime": gamma * theta,
        "beta": beta,
        "eta": eta,
        "iterations": rounds * inner.steps,
    }


THEOREM = "sonex-alexr2-2025, Theorem 4.10 (unconstrained), Theorem 5.3 (constrained)"
RATE = "max(n / (B1 B2), 1) / eps^5"
algorithm = Algorithm(
    name="alexr2",
    title="ALEXR2",
    requires={
        "two levels": "sonex-alexr2-2025, problem (1)",
        "tracked blocks": "sonex-alexr2-2025, problem (1)",
        "outer prox": "sonex-alexr2-2025, Assumption 3.2",
        "outer convex": "sonex-alexr2-2025, Assumption 3.2 (A2), (A3)",
        "outer Lipschitz": "sonex-alexr2-2025, Assumption 3.2",
        "weakly monotone": "sonex-alexr2-2025, Assumption 3.2 (A2), (A3)",
        "bounded divergence": "sonex-alexr2-2025, Assumption 4.9",
        "inner Lipschitz": "sonex-alexr2-2025, Assumption 3.2",
        "bounded variance": "sonex-alexr2-2025, Assumption 4.5",
        "regular constraints": "sonex-alexr2-2025, Assumption 5.1",
        "heavy penalty": "sonex-alexr2-2025, Proposition 5.2 and Theorem 5.3",
        "unregularised": "sonex-alexr2-2025, problem (1)",
        "whole space": "sonex-alexr2-2025, problem (1)",
    },
    beyond={**NESTED, **PROXIMAL},
    penalty="smoothed_hinge",
    estimator=msvr_current,
    independent="sonex-alexr2-2025, Algorithm 2, lines 5 and 10",
    step_sizes=step_sizes,
    begin=begin,
    advance=advance,
    next_stage=next_stage,
    variants=(
        Variant(
            "f convex, non-decreasing, g weakly convex (A3)",
            "sonex-alexr2-2025, Algorithm 2 and Theorem 4.10",
            "as in the paper (step = momentum, schedule = theory), but for z_{-1}, which is the last "
            "round's z_{K-1}",
        ),
        Variant("g smooth (A2)", "sonex-alexr2-2025, remark to Theorem 4.10", "as in the paper"),
        Variant(
            "Adam-type steps",
            "sonex-alexr2-2025, Algorithm 2, line 15",
            "by SONEX's formula with the second moment of this step, without a theorem (step = adam)",
        ),
        Variant(
            "constraints by the smoothed hinge",
            "sonex-alexr2-2025, section 5 and Theorem 5.3",
            "as in the paper; in practice centred, and its centres moved",
        ),
    ),
    steps={"adam": steps.adam_step, "momentum": steps.momentum_step},
    rate=RATE,
    theorem="sonex-alexr2-2025, Theorem 4.10 (A3): of F_lambda, not of the problem",
    gives="smoothed stationarity",
    better=(
        Theorem(
            name=THEOREM,
            rate=RATE,
            where={"inner smooth": "sonex-alexr2-2025, remark to Theorem 4.10 and Table 1"},
        ),
        Theorem(name=THEOREM, rate=RATE, where={"plain expectations": "sonex-alexr2-2025, Theorem 5.3"}),
        Theorem(
            name=THEOREM,
            rate=RATE,
            where={"outer smooth": "sonex-alexr2-2025, Theorem 4.10, where F_lambda is F"},
        ),
    ),
    cite="Chen, Wang, Yang, Lin and Yang, Stochastic momentum methods for non-smooth non-convex FCCO, 2025",
    hyper={
        "gamma": 0.8,
        "gamma_prime": 0.1,
        "beta": 0.1,
        "beta_prime": 0.01,
        "eps": 1e-8,
        "inner_eta": 0.0,
        "nu": 0.0,
        "inner_steps": 5,
    },
    theory=theory,
    grid=grids.ALEXR2,
)
