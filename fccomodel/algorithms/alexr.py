"""ALEXR: a primal-dual block-coordinate method with extrapolated estimates (alexr-2025, Algorithm 1)."""

from math import isfinite, log, sqrt

from fccomodel.algorithms import grids
from fccomodel.algorithms.base import Algorithm, Constants, Theorem, Variant
from fccomodel.algorithms.estimators import alexr as estimator
from fccomodel.algorithms.runtime.loops import steps


def next_stage(h, gained, worst):
    """The next stage is longer, and begins at the last or the average iterate, whichever is better.

    If neither improved, primal and dual steps become smaller. ``h.peak`` is the primal step, the inverse
    of the paper's eta; gamma = 1 / (1 + tau) stays above 0.05.
    """
    if not gained:
        h.peak *= 0.6
        h.tau = min(h.tau / 0.7, 19.0)
    h.stage = min(int(1.3 * h.stage), h.longest)


def theory(k: Constants, squares: bool = False) -> dict[str, float]:
    """The schedule of alexr-2025: Theorem 1 for smooth f and strongly convex F, else Theorem 3.

    squares   whether psi is a half square, and not f*

    Each noise term, and the remaining error of the start, is at most eps / 3, with Omega_y = n C_f^2 / 2
    (section F.1). ``eta`` is the primal step, the inverse of the paper's eta.

    - Theorem 1: tau = rho (B1 / (n (1 - theta)) - 1), where f* is rho-strongly convex relative to psi:
      rho = 1 for psi = f*, and rho = 1 / L_f for a half square.
    - Theorem 3, by (38), is about half squares. For psi = f* and smooth f, tau is in units of the
      curvature L_f. The theorem covers quadratic f, whose f* is a half square up to a factor.
    """
    smooth = isfinite(k.L_f) and k.L_f > 0
    curvature = k.L_f if smooth else 1.0
    # If g has kinks, the gradient's variance has this term in place of a bound on the step.
    rough = 0.0 if isfinite(k.L_g) else 4 * (k.C_f * k.C_g) ** 2
    if k.mu > 0 and isfinite(k.L_f):
        noise = 6 * k.n * k.L_f * k.sigma**2 / (k.B1 * k.B2) + (k.spread + rough) / k.mu
        bounds = [k.B1 / (2 * k.n), 1 / 2, k.eps / noise if noise else 1.0]  # of 1 - theta
        if not rough:
            bounds += [k.mu / (k.L_g * k.C_f)]
        if k.C_g * k.L_f:
            bounds += [sqrt(k.mu * k.B1 / (k.C_g**2 * k.L_f * k.n))]
        away = min(bounds)
        start = (k.mu + k.L_f * k.C_g**2) * k.diameter**2 / 2
        tau = (k.B1 / (k.n * away) - 1) / (curvature if squares else 1.0)
        values = {"theta": 1 - away, "tau": tau, "eta": away / (k.mu * (1 - away)), "lam": 1.0}
        return {**values, "iterations": log(max(3 * start / k.eps, 2.0)) / away}
    tau = max(27 * k.sigma**2 / (k.B2 * k.eps), k.C_g * sqrt(k.B1 / k.n))
    if not squares:
        tau *= curvature
    curvature_of_g = 0.0 if rough else k.L_g * k.C_f
    inverse = max(3 * (k.spread + rough) / k.eps, curvature_of_g + 2 * k.C_g * sqrt(k.n / k.B1))
    start = inverse * k.diameter**2 / 2 + 5 * tau * k.n * k.C_f**2 / (2 * k.B1)
    return {
        "theta": 1.0,
        "tau": tau,
        "eta": 1 / inverse if inverse else 1.0,
        "lam": 1.0,
        "iterations": 3 * start / k.eps,
    }


STRONGLY = {"strongly convex": "alexr-2025, Assumption 1", "outer smooth": "alexr-2025, Theorem 1"}
algorithm = Algorithm(
    name="alexr",
    title="ALEXR",
    requires={
        "outer prox": "alexr-2025, section 3.1",
        "outer convex": "alexr-2025, Assumption 3",
        "outer monotone": "alexr-2025, Assumption 3",
        "inner convex": "alexr-2025, Assumption 2",
        "inner Lipschitz": "alexr-2025, Assumption 2",
        "outer Lipschitz": "alexr-2025, Assumption 3",
        "quadratic dual": "alexr-2025, Theorems 2 and 3",
        "bounded variance": "alexr-2025, Assumption 4",
        "two levels": "alexr-2025, problem (1)",
        "tracked blocks": "alexr-2025, problem (1)",
        "unconstrained": "alexr-2025, problem (1)",
    },
    beyond={"quadratic dual": "its dual steps are by psi = f* all the same"},
    outer="dual",
    estimator=estimator,
    independent="alexr-2025, Algorithm 1, lines 5 and 10",
    next_stage=next_stage,
    variants=(
        Variant(
            "psi = f*, f smooth",
            "alexr-2025, Algorithm 1, Lemma 1 and Theorem 1",
            "as in the paper (schedule = theory)",
        ),
        Variant(
            "psi = f*, f quadratic", "alexr-2025, Theorem 3", "as in the paper, tau in units of f's curvature"
        ),
        Variant(
            "psi = entropy, y in a simplex",
            "alexr-2025, Algorithm 1, line 7, and Theorem 1",
            "as psi = f* of logsumexp, whose conjugate it is",
        ),
        Variant(
            "psi in general: strongly convex, and smooth where f has kinks",
            "alexr-2025, Algorithm 1, line 7, and appendix D",
            "by the two that section 3.1 names, for which line 7 has closed forms",
        ),
        Variant(
            "psi a half square, f with kinks",
            "alexr-2025, Theorems 2 and 3",
            "as in the paper (schedule = theory)",
        ),
        Variant(
            "theta = 0, no values at the point before", "alexr-2025, Theorem 2", "as in the paper (theta = 0)"
        ),
    ),
    steps={"plain": steps.plain_step},
    rate="max(1, n / (B1 B2)) / eps^2",
    gives="optimum",
    theorem="alexr-2025, Theorem 2",
    better=(
        Theorem(
            name="alexr-2025, Theorem 1 (i), up to logarithms",
            rate="max(1 / (mu min(B1, B2)), n / (B1 B2)) / eps",
            where={**STRONGLY, "kinkless inner": "alexr-2025, Theorem 1 (i)"},
            gives="optimum",
        ),
        Theorem(
            name="alexr-2025, Theorem 1 (ii), up to logarithms",
            rate="max(1 / mu, n / (B1 B2)) / eps",
            where=STRONGLY,
            gives="optimum",
        ),
        Theorem(
            name="alexr-2025, Theorem 3",
            rate="max(1 / B1, n / (B1 B2)) / eps^2",
            where={"kinkless inner": "alexr-2025, Theorem 3"},
            gives="optimum",
        ),
    ),
    cite="Wang and Yang, ALEXR: an optimal single-loop algorithm for convex FCCO, ICML 2025",
    theory=theory,
    hyper={"tau": 1.0, "theta": 1.0},
    grid=grids.ALEXR,
)
