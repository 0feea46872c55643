"""HSCG: hybrid estimates of values and Jacobians, dual smoothing of phi (hscg-2020, Algorithms 1 and 2)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from fccomodel.algorithms import grids
from fccomodel.algorithms.base import Algorithm, Constants, Theorem, Variant
from fccomodel.algorithms.runtime.loops import vector_loop
from fccomodel.algorithms.runtime.loops.vector_estimates import begin_with, hybrid
from fccomodel.core.searching import least

#: The most steps that the bound is searched for.
LONGEST = 1e130


def begin(state, F, h):
    """Start an epoch from exact estimates (Algorithm 2); without restarts only the first (Algorithm 1).

    The first epoch takes at most 20 passes and the next ones more, because centres of the smoothing move
    between epochs.
    """
    if state.epoch == 0 or h.restarts:
        state.length = min(state.length, math.ceil(20 * h.growth**state.epoch / F.share))
        first_move(state, F, h)


def begin_once(state, F, h):
    """Start the first epoch, and no other, from exact estimates (Algorithm 1)."""
    if state.epoch == 0:
        first_move(state, F, h)


def first_move(state, F, h):
    """Estimate by equation (15) with all samples, or with 100 minibatches, and take the first step."""
    v = begin_with(state, F, F.many(state.w))
    averaged_move(state, F, v, 2 * h.eta / (3 + h.theta), h.theta)


def averaged_move(state, F, v, eta, theta):
    """x = prox_{eta R}(w - eta v);  w <- (1 - theta) w + theta x."""
    state.w_prev = state.w
    state.w = state.w + theta * (F.prox(state.w - eta * v, eta) - state.w)


def constant_step(state, F, h):
    """beta = 1 - sqrt(b / (b0 (T + 1))), eta = 2 / (L (3 + theta)) (Theorems 3.1, 3.3 and 4.1, 4.2);
    b1 = ``values`` b."""
    beta = 1 - math.sqrt((h.fresh or F.share) / ((h.horizon or state.length) + 1))
    v = hybrid(state, F, beta, 1.0, h.values)
    averaged_move(state, F, v, 2 * h.eta / (3 + h.theta), h.theta)


def diminishing_step(state, F, h):
    """beta_t = 1 - (t + 2)^-2/3, eta_t = 2 / (L_t (3 + theta_t)) (Theorems 3.2 and 3.4).

    Without kinks L_t = L = 1 / eta and theta_t ~ (t + 2)^-1/3. With kinks the smoothing falls like (t +
    2)^-1/3, the part of L above ``flat`` grows as it falls, and values come from batches that grow like
    1 / smoothing^2. In both cases theta_t ~ L_t (t + 2)^-1/3.
    """
    falling = (2 / (state.t + 2)) ** (1 / 3)
    gamma = falling if F.smoothing else 1.0
    L = h.flat + (1 / h.eta - h.flat) / gamma
    theta = min(1.0, h.theta * falling * L * h.eta)
    v = hybrid(state, F, 1 - (state.t + 2) ** (-2 / 3), gamma, h.values / gamma**2)
    averaged_move(state, F, v, 2 / (L * (3 + theta)), theta)


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """The numbers of the proofs.

    L, P, Q  of (18) with c0 = 1
    fall     Psi(x_0) - Psi*
    kinks    the smoothing and the batches of values that functions with kinks need, by option
    """

    L: float
    P: float
    Q: float
    fall: float
    kinks: Mapping[str, float] = field(default_factory=dict)


def constants(k: Constants) -> Numbers:
    """The numbers of the proofs for a problem's constants.

    Without kinks |K|^2 = L_f. With kinks |K| = 1 and gamma = eps; values come from batches of b / gamma^2,
    so that P and Q do not depend on gamma, and B_psi = C_f^2 / 2 is added to the fall (Lemma A.1).
    """
    kinks = not math.isfinite(k.L_f)
    if kinks:
        K, gamma = 1.0, k.eps
    else:
        K, gamma = k.L_f, 1.0
    M = (k.C_1**2 * K) ** 2
    return Numbers(
        L=k.smoothness(K / gamma),
        P=math.sqrt(26) / 3 * math.sqrt(M + (k.L_g * k.C_f) ** 2),
        Q=26 / 9 * (M * k.sigma**2 + (k.C_f * k.zeta) ** 2),
        fall=k.delta0 + (k.C_f**2 / 2 if kinks else 0.0),
        kinks={"lam": gamma, "values": max(1.0, gamma**-2)} if kinks else {},
    )


def weights(k: Constants, c: Numbers, T: float, first: float) -> dict[str, float]:
    """eta = 1 / L, theta = L b^(3/4) / (P (b0 (T + 1))^(1/4)) of (19) and (23), and the numbers in beta."""
    theta = 1.0
    if c.P:
        theta = min(1.0, c.L * k.B2**0.75 / (c.P * (first * (T + 1)) ** 0.25))
    return {"eta": 1 / c.L, "theta": theta, "fresh": min(1.0, k.B2 / first), "horizon": T, **c.kinks}


def theory(k: Constants) -> dict[str, float]:
    """Theorems 3.1 and 3.3 with c0 = c1 = c2 = 1: T from (20) and (24), b0 = (b (T + 1))^(1/3)."""
    c = constants(k)
    T = (16 * c.P * c.fall + 24 * c.Q) ** 1.5 / (k.B2 * k.eps**3)
    return {**weights(k, c, T, (k.B2 * (T + 1)) ** (1 / 3)), "iterations": T}


def diminishing_theory(k: Constants) -> dict[str, float]:
    """Theorems 3.2 and 3.4 with c0 = 1 and b0 = b: the settings of ``diminishing_step``, and the T that
    makes the bound (22), or (26) with kinks, eps^2.

    The proof of Theorem 3.2 has 16 Q / 3 where (22) has 32 Q / 3; (26) has 16 Q / 3 too.
    """
    c = constants(k)
    if c.kinks:
        smoothing, of_smoothing, norm_K = 2 ** (-1 / 3), k.C_f**2 / 2, 1.0
    else:
        smoothing, of_smoothing, norm_K = 1.0, 0.0, k.L_f
    L = k.smoothness(norm_K / smoothing)
    theta = 1.0
    if c.P:
        theta = min(1.0, L * math.sqrt(k.B2) / (c.P * 2 ** (1 / 3)))
    scheduled = {"eta": 1 / L, "theta": theta, "iterations": _steps_of_bound(k, c, of_smoothing)}
    if c.kinks:
        scheduled |= {"lam": smoothing, "values": smoothing**-2, "flat": k.smoothness(0.0)}
    return scheduled


def _steps_of_bound(k: Constants, c: Numbers, of_smoothing: float) -> float:
    """The least T for which the bound (22), or (26) with kinks, is at most eps^2."""

    def bound(T: float) -> float:
        """The bound of E |G(x_T)|^2 after T steps."""
        fall = k.delta0 + of_smoothing / (T + 2) ** (1 / 3)
        noise = 2 ** (1 / 3) + 2 * (1 + math.log(T + 1))
        numerator = 32 * c.P * fall / math.sqrt(k.B2) + 16 * c.Q * noise / k.B2
        return numerator / (3 * ((T + 3) ** (2 / 3) - 2 ** (2 / 3)))

    return least(lambda T: bound(T) <= k.eps**2, 1.0, LONGEST)


#: The addition that makes a theorem about the penalised problem one about the constrained problem.
CONSTRAINED = "; with constraints, of their penalty, and sonex-alexr2-2025, Proposition 5.2"
algorithm = Algorithm(
    name="hscg",
    title="HSCG",
    requires={
        "shared inner": "hscg-2020, problem (2)",
        "two levels": "hscg-2020, problem (2)",
        "outer convex": "hscg-2020, equation (3)",
        "outer prox": "hscg-2020, equation (9)",
        "outer Lipschitz": "hscg-2020, Assumption 2.2 and Lemma A.1",
        "inner smooth": "hscg-2020, Assumption 2.1 (a)",
        "smooth samples": "hscg-2020, Assumption 2.1 (a)",
        "inner Lipschitz": "hscg-2020, Assumption 2.1 (c)",
        "bounded variance": "hscg-2020, Assumption 2.1 (b)",
        "prox regulariser": "hscg-2020, section 2.1",
        "regular constraints": "sonex-alexr2-2025, Assumption 5.1 (of its penalty)",
        "heavy penalty": "sonex-alexr2-2025, Proposition 5.2 (of its penalty)",
    },
    oracle="vector",
    penalty="smoothed_hinge",
    loop=vector_loop,
    begin=begin,
    in_theory={"begin": begin_once},
    variants=(
        Variant(
            "constant step, phi smooth",
            "hscg-2020, Algorithm 1 and Theorem 3.1",
            "as in the paper (schedule = theory)",
        ),
        Variant(
            "diminishing step, phi smooth",
            "hscg-2020, Theorem 3.2",
            "as in the paper (step = diminishing, schedule = theory)",
        ),
        Variant(
            "constant step, phi with kinks", "hscg-2020, Theorem 3.3", "as in the paper (schedule = theory)"
        ),
        Variant(
            "diminishing step, phi with kinks",
            "hscg-2020, Theorem 3.4",
            "as in the paper (step = diminishing, schedule = theory)",
        ),
        Variant(
            "products with the Jacobian",
            "hscg-2020, (16)",
            "not of the paper: where the Jacobian is too large to keep, a hybrid estimate of J' s itself",
        ),
        Variant(
            "the pair of an approximate KKT point", "hscg-2020, Lemma 3.1", "as in the paper, by full passes"
        ),
        Variant(
            "centres of the smoothing",
            "hscg-2020, section 2.3",
            "as in the paper; in practice moved between epochs",
        ),
    ),
    steps={"constant": constant_step, "diminishing": diminishing_step},
    rate="1 / eps^5",
    counts="oracle calls",
    theorem=f"hscg-2020, Theorems 3.3 and 3.4 (values from batches of B2 / gamma^2){CONSTRAINED}",
    practice=(
        "values by as many samples as Jacobians, where theorems about kinks have 1 / gamma^2 times more",
    ),
    better=(
        Theorem(
            name="hscg-2020, Theorems 3.1 and 3.2",
            rate="1 / eps^3",
            where={"outer smooth": "hscg-2020, Theorem 3.1"},
        ),
    ),
    cite="Tran-Dinh, Liu and Nguyen, Hybrid variance-reduced SGD algorithms for nonconvex-concave "
    "minimax problems, NeurIPS 2020",
    hyper={
        **vector_loop.DEFAULTS,
        "stage": 100,
        "longest": 400,
        "growth": 1.3,
        "gain": 1e-5,
        "theta": 1.0,
        "fresh": 0.0,
        "horizon": 0.0,
        "values": 1.0,
        "flat": 0.0,
        "restarts": 1.0,
    },
    grid=grids.HSCG,
    theory=theory,
    theories={"diminishing": diminishing_theory},
)
