"""SONEX: variance-reduced estimates, outer smoothing, momentum or Adam-type steps (sonex-alexr2-2025,
Algorithm 1)."""

from math import sqrt

from fccomodel.algorithms import grids
from fccomodel.algorithms._practice import NESTED, PROXIMAL
from fccomodel.algorithms.base import Algorithm, Constants, Variant
from fccomodel.algorithms.estimators import msvr
from fccomodel.algorithms.runtime.loops import steps


def theory(k: Constants) -> dict[str, float]:
    """The schedule of sonex-alexr2-2025, Theorem 4.7. First estimates come from eps^-3 samples in the
    theorem (E U_1 = O(eps^3)).
    """
    return bounded_steps(k, 1.0, 1.0)


def adam_theory(k: Constants) -> dict[str, float]:
    """The schedule of Theorem E.6 for steps eta c_l <= eta / (sqrt(s) + eps) <= eta c_u.

    Gradients G are at most C_f C_g long, and so is sqrt(s): with eps of this size, c_u = 2 c_l.
    """
    eps = k.C_f * k.C_g
    return {**bounded_steps(k, 1 / (2 * eps), 1 / eps), "eps": eps}


def bounded_steps(k: Constants, c_l: float, c_u: float) -> dict[str, float]:
    """The schedule of the proofs of Theorems 4.7 (c_l = c_u = 1) and E.6, for steps between eta c_l and
    eta c_u.

    The noise terms and the initial error in (23), or (52), are at most eps^2 / 3 each, and the terms of
    (22), or (51), at most c_l / (12 c_u).
    """
    ratio = c_u / c_l
    lam = k.eps / k.C_f
    if k.rho_f:
        lam = min(lam, 1 / (2 * k.rho_f))
    L_f = k.smoothed(lam)
    L_F = k.smoothness(L_f)
    wanted = k.eps**2 / ratio
    beta = min(wanted / (12 * k.spread) if k.spread else 1.0, 2 / 7)
    noise = 60 * (L_f * k.C_1 * k.sigma) ** 2
    gamma = min(k.B2 * wanted / noise if noise else 1.0, 1 / 2)
    P = k.n / (gamma * k.B1) * (L_f * k.C_1) ** 2 * (5 + 12 * gamma**2 * k.B1 / (beta * k.n**2))
    descent = sqrt(c_l / c_u**3) * min(
        beta / (sqrt(24) * L_F),
        sqrt(k.B1 / (96 * k.n * P)) / k.C_g,
        sqrt(k.B1 * beta / (324 * k.n)) / (L_f * k.C_1 * k.C_g),
    )
    eta = min(descent, c_l / (2 * c_u**2 * L_F))  # Lemma E.2
    fall = (k.delta0 + lam * k.C_f**2 / 2) / (eta * c_u)
    start = fall + (k.C_f * k.C_g) ** 2 / beta + P * k.sigma**2 * k.eps**3
    gamma_prime = 1 - gamma + (k.n - k.B1) / (k.B1 * (1 - gamma))
    values = {"lam": lam, "beta": beta, "gamma": gamma, "gamma_prime": gamma_prime, "eta": eta}
    return {**values, "iterations": 6 * start / wanted}


algorithm = Algorithm(
    name="sonex",
    title="SONEX",
    requires={
        "two levels": "sonex-alexr2-2025, problem (1)",
        "tracked blocks": "sonex-alexr2-2025, problem (1)",
        "outer prox": "sonex-alexr2-2025, Assumption 3.2",
        "outer Lipschitz": "sonex-alexr2-2025, Assumption 3.2",
        "inner smooth": "sonex-alexr2-2025, Assumption 3.2 (A1)",
        "inner Lipschitz": "sonex-alexr2-2025, Assumptions 3.2 and 4.6",
        "bounded variance": "sonex-alexr2-2025, Assumption 4.5",
        "regular constraints": "sonex-alexr2-2025, Assumption 5.1",
        "heavy penalty": "sonex-alexr2-2025, Proposition 5.2 and Theorem 5.3",
        "unregularised": "sonex-alexr2-2025, problem (1)",
        "whole space": "sonex-alexr2-2025, problem (1)",
    },
    beyond={**NESTED, **PROXIMAL},
    adaptive="sonex-alexr2-2025, Theorem E.6, whose Assumption E.1 bounds them",
    penalty="smoothed_hinge",
    estimator=msvr,
    variants=(
        Variant(
            "momentum",
            "sonex-alexr2-2025, Algorithm 1 and Theorem 4.7",
            "as in the paper (step = momentum, schedule = theory), but for first estimates: by one "
            "batch, not by eps^-3 samples",
        ),
        Variant(
            "Adam-type steps",
            "sonex-alexr2-2025, appendix E and Theorem E.6",
            "as in the paper (step = adam, schedule = theory), with eps = C_f C_g; practice takes the "
            "second moment of this step",
        ),
        Variant(
            "constraints by the smoothed hinge",
            "sonex-alexr2-2025, section 5 and Theorem 5.3",
            "as in the paper; in practice centred, and its centres moved",
        ),
        Variant(
            "constraints, g_0 a composition",
            "sonex-alexr2-2025, appendix F.3",
            "as in the paper: g_0 is tracked too",
        ),
    ),
    steps={"adam": steps.adam_step, "momentum": steps.momentum_step},
    rate="max(n / (B1 sqrt(B2)), 1 / min(B1, B2)) / eps^5",
    theorem="sonex-alexr2-2025, Theorem 4.7 (unconstrained), Theorem 5.3 (constrained)",
    cite="sonex-alexr2-2025, Algorithm 1 and appendix E",
    hyper={"gamma": 0.8, "gamma_prime": 0.1, "beta": 0.1, "beta_prime": 0.01, "eps": 1e-8},
    theory=theory,
    theories={"adam": adam_theory},
    updates_in_theory={"adam": steps.adam_step_of_theorem},
    grid=grids.SONEX,
)
