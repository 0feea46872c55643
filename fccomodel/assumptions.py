"""What theorems assume of a problem: each assumption by name, with what is missing where it does not hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """meaning  as a clause that follows "it needs"        lacking  what is the matter where it does not hold"""

    name: str
    meaning: str
    lacking: str


ALL = {
    a.name: a
    for a in (
        Assumption(
            name="unconstrained",
            meaning="a problem without constraints",
            lacking="the model has constraints, and their penalty is a non-smooth outer function",
        ),
        Assumption(name="outer smooth", meaning="a smooth outer function f", lacking="non-smooth here"),
        Assumption(
            name="outer prox",
            meaning="outer functions that are smooth, or whose prox is computable",
            lacking="no prox is known here",
        ),
        Assumption(name="inner smooth", meaning="smooth inner functions g", lacking="not proved here"),
    )
}
