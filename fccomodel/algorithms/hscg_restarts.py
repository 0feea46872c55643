"""HSCG with restarts: T steps, then again from the last iterate (hscg-2020, Algorithm 2)."""

import dataclasses
import math

from fccomodel.algorithms import hscg
from fccomodel.algorithms.base import Constants, Theorem, Variant
from fccomodel.algorithms.hscg import first_move


def begin(state, F, h):
    """Start an epoch from estimates by many samples, and take the first step with them."""
    first_move(state, F, h)


def theory(k: Constants) -> dict[str, float]:
    """The schedule of Theorem 4.1, with which both terms of (30) are eps^2 / 2.

    T = 48 Q / (b eps^2) steps in each of S = 8 P (Psi(x_0) - Psi*) / (eps sqrt(3 Q)) epochs, b0 = 48 Q /
    eps^2. With kinks, gamma and the batches of values are those of Theorem 3.3, which agree with (31) up
    to constants.
    """
    c = hscg.constants(k)
    Q = max(c.Q, k.eps**2)
    T = math.ceil(48 * Q / (k.B2 * k.eps**2))
    first = max(48 * Q / k.eps**2, 1.0)
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
