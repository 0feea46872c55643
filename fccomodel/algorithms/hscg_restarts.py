"""HSCG with restarts by the schedule of its theorems: T steps, then again from the last iterate
(hscg-2020, Algorithm 2)."""

import dataclasses
import math

from fccomodel.algorithms import hscg
from fccomodel.algorithms.base import Constants, Theorem, Variant
from fccomodel.algorithms.hscg import first_move


def begin(state, F, h):
    """Every epoch starts from estimates by many samples, and takes its first step by them."""
    first_move(state, F, h)


def theory(k: Constants) -> dict[str, float]:
    """Theorem 4.1: T = 48 Q / (b eps^2), b0 = 48 Q / eps^2, S = 8 P (Psi(x_0) - Psi*) / (eps sqrt(3
    Q)), by which either term of (30) is eps^2 / 2; with kinks gamma and batches of values as in
    Theorem 3.3, for (31) has them up to constants."""
    c = hscg.constants(k)
    Q = max(c.Q, k.eps**2)
    T, first = math.ceil(48 * Q / (k.B2 * k.eps**2)), max(48 * Q / k.eps**2, 1.0)
    rounds = math.ceil(8 * c.P * c.fall / (k.eps * math.sqrt(3 * Q))) + 1
    return {
        **hscg.weights(k, c, T, first),
        "stage": T,
        "longest": T,
        "growth": 1.0,
        "iterations": float(rounds * (T + 1)),
    }


algorithm = dataclasses.replace(
    hscg.algorithm,
    name="hscg_restarts",
    title="HSCG with restarts",
    in_theory={"begin": begin},
    theorem=f"hscg-2020, Theorem 4.2 (values from batches of B2 / gamma^2){hscg.CONSTRAINED}",
    better=(
        Theorem(
            name="hscg-2020, Theorem 4.1", rate="1 / eps^3", where={"outer smooth": "hscg-2020, Theorem 4.1"}
        ),
    ),
    variants=(
        Variant(
            "restarts, phi smooth",
            "hscg-2020, Algorithm 2 and Theorem 4.1",
            "as in the paper (schedule = theory)",
        ),
        Variant(
            "restarts, phi with kinks",
            "hscg-2020, Theorem 4.2",
            "as in the paper (schedule = theory), T by the batch",
        ),
    ),
    steps={"constant": hscg.constant_step},
    theory=theory,
)
