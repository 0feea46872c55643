"""SOX-boost: SOX in stages. Each stage halves step, beta and gamma, and takes twice as many steps
(sox-2022, Algorithm 2)."""

from math import ceil, log2

from fccomodel.algorithms import grids
from fccomodel.algorithms._practice import NESTED, PROXIMAL
from fccomodel.algorithms.base import Algorithm, Constants, Theorem, Variant
from fccomodel.algorithms.estimators import moving_average
from fccomodel.algorithms.runtime.loops.steps import adam_step, momentum_step


def curved_momentum_step(state, G, h):
    """A momentum step for F + mu |w|^2 / 2 (Corollary 1), with G + mu w in place of G."""
    return momentum_step(state, G.add(state.w, alpha=h.mu), h)


def curved_adam_step(state, G, h):
    """An Adam-type step for F + mu |w|^2 / 2, with G + mu w in place of G."""
    return adam_step(state, G.add(state.w, alpha=h.mu), h)


def next_stage(h, gained, worst):
    """Halve after a stage without improvement: it has reached its eps_k."""
    if not gained:
        halve(h, gained, worst)
        h.stage = min(h.stage, h.longest)


def halve(h, gained, worst):
    """Halve eta_k, beta_k and gamma_k, which are proportional to eps_k, and double T_k, proportional to
    1 / eps_k: eps_{k+1} = eps_k / 2 (Theorem 2)."""
    h.peak, h.beta, h.gamma = 0.5 * h.peak, 0.5 * h.beta, 0.5 * h.gamma
    h.stage = 2 * h.stage


def theory(k: Constants) -> dict[str, float]:
    """The first stage of sox-2022, Lemma 6; the later stages follow by halving.

    If F is convex but not strongly convex, mu |w|^2 / 2 is added with mu = eps / |w_0 - w*|^2, and the sum
    is minimised to eps / 2. The total error is then eps (proof of Corollary 1).
    """
    if k.mu:
        ridge, eps = 0.0, k.eps
    else:
        ridge, eps = k.eps / k.diameter**2, k.eps / 2
    mu = k.mu or ridge
    L_F = k.smoothness() + ridge
    C_3 = 40 * (k.L_f * k.C_1 * k.sigma) ** 2
    if k.L_f * k.C_g:
        C_4 = min(1 / (4 * L_F), 1 / (9 * k.L_f * k.C_1 * k.C_g))
    else:
        C_4 = 1 / (4 * (L_F or 1.0))
    eps_1 = max(k.delta0, C_4 * ((k.C_f * k.C_g) ** 2 + 12 * (k.L_f * k.C_1 * k.sigma) ** 2 / k.B2))
    bounds = [3 * k.B1 * C_4 / (50 * k.n), 2 * C_4 / 7]
    if k.spread:
        bounds += [mu * C_4 * eps_1 / (12 * k.spread), eps_1 / (120 * k.spread)]
    if C_3:
        bounds += [
            mu * C_4 * k.B1 * k.B2 * eps_1 / (20 * k.n * C_3),
            k.B1 * k.B2 * C_4 * eps_1 / (200 * k.n * C_3),
        ]
    eta = min(bounds)
    beta = eta / C_4
    gamma = min(10 * k.n * beta / (3 * k.B1), 1 / 5)
    stage = ceil(max(12 / mu, 96 * C_4) / eta)
    doublings = ceil(log2(max(eps_1 / eps, 1.0))) + 1
    values = {"eta": eta, "beta": beta, "gamma": gamma, "mu": ridge, "stage": stage}
    return {**values, "iterations": stage * (2.0**doublings - 1)}


algorithm = Algorithm(
    name="sox_boost",
    title="SOX-boost",
    requires={
        "two levels": "sox-2022, problem (1)",
        "tracked blocks": "sox-2022, problem (1)",
        "outer smooth": "sox-2022, Assumption 1 (i)",
        "outer Lipschitz": "sox-2022, Assumption 1 (i)",
        "inner smooth": "sox-2022, Assumption 1 (ii)",
        "inner Lipschitz": "sox-2022, Assumption 1 (ii)",
        "bounded variance": "sox-2022, Assumption 2",
        "convex": "sox-2022, Theorem 2 (PL condition) and Corollary 1",
        "unconstrained": "sox-2022, section 2",
        "unregularised": "sox-2022, Algorithm 1, line 7",
        "whole space": "sox-2022, Algorithm 1, line 7",
    },
    beyond={**NESTED, **PROXIMAL},
    outer="smooth",
    estimator=moving_average,
    next_stage=next_stage,
    in_theory={"next_stage": halve},
    variants=(
        Variant(
            "stages that halve", "sox-2022, Algorithm 2 and Theorem 2", "as in the paper (schedule = theory)"
        ),
        Variant(
            "convex F, with mu |w|^2 / 2", "sox-2022, Corollary 1", "as in the paper (schedule = theory)"
        ),
    ),
    steps={"adam": curved_adam_step, "momentum": curved_momentum_step},
    rate="max(n / (B1 B2), 1 / min(B1, B2)) / eps^3",
    gives="optimum",
    theorem="sox-2022, Corollary 1 (of F + mu |w|^2 / 2)",
    better=(
        Theorem(
            name="sox-2022, Theorem 2",
            rate="max(n / (B1 B2), 1 / min(B1, B2)) / (mu^2 eps)",
            where={"strongly convex": "sox-2022, section 3.3"},
            gives="optimum",
        ),
    ),
    practice=("where F is merely convex no mu |w|^2 / 2 is added to it (mu = 0)",),
    cite="Wang and Yang, Finite-sum coupled compositional stochastic optimization, ICML 2022",
    theory=theory,
    hyper={"gamma": 0.2, "beta": 0.1, "beta_prime": 0.01, "eps": 1e-8, "longest": 20000, "mu": 0.0},
    grid=grids.SOX,
)
