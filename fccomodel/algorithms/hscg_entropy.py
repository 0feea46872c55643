"""HSCG for a maximum phi, smoothed by entropy on the simplex and not by half squares (hscg-2020, section
2.3)."""

import dataclasses
from math import log

from fccomodel.algorithms import hscg
from fccomodel.algorithms.base import Constants, Variant


def theory(k: Constants) -> dict[str, float]:
    """The schedule of Theorem 3.3 with B_psi = log n, the largest value of b on the simplex.

    b is 1-strongly convex in either norm.
    """
    b_of_half_squares = hscg.constants(k).fall - k.delta0
    b_of_entropy = log(max(k.n, k.d1, 2))
    return hscg.theory(dataclasses.replace(k, delta0=k.delta0 + b_of_entropy - b_of_half_squares))


algorithm = dataclasses.replace(
    hscg.algorithm,
    name="hscg_entropy",
    title="HSCG with entropy",
    requires={**hscg.algorithm.requires, "maxima": "hscg-2020, section 2.3 (the simplex as domain of psi)"},
    outer="entropy",
    variants=(
        Variant(
            "entropy as b(y) on the simplex",
            "hscg-2020, section 2.3 and Theorems 3.3 and 3.4",
            "as in the paper, but for Lemma 3.1, whose D_psi is infinite: no pair is made",
        ),
    ),
    theorem=hscg.algorithm.theorem,
    better=(),
    theory=theory,
)
