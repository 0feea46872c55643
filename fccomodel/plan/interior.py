"""The interior-point method as a candidate: its assumptions on a model, and its promise.

It is no stochastic algorithm and has no steps in an emitted program. It is planned if it is named, or
if the model is a conic program that no stochastic algorithm's theorem covers.
"""

from __future__ import annotations

from fccomodel.algorithms import Theorem
from fccomodel.core.options import Origins
from fccomodel.plan import settings
from fccomodel.plan.assumptions import Finding
from fccomodel.structure import Analysis

NAME = "interior_point"
TITLE = "interior-point method"
COUNTS = "iterations"
#: assumption -> where its theorem states it
REQUIRES = {
    "convex": "Nesterov and Nemirovskii 1994, section 1.1",
    "conic form": "Nesterov and Nemirovskii 1994, chapter 5",
}
MEANINGS = {
    "convex": "a convex problem",
    "conic form": "a conic program of moderate size (linear, second-order, exponential, power and "
    "semidefinite cones), "
    "with its data",
}
THEOREM = Theorem(
    name="Nesterov and Nemirovskii 1994, chapter 3; the report checks the answer by numbers of its own",
    rate="sqrt(N) log(1 / eps)",
    gives="optimum",
)


def named(given: Origins) -> bool:
    """Whether the options name this method."""
    return bool(settings.value(given, "algorithm") == NAME)


def findings(analysis: Analysis, columns: int, rows: int) -> dict[str, Finding]:
    """Findings on the assumptions for a conic program with this many columns and rows."""
    f = analysis.minimised
    return {
        "convex": Finding(holds=True, why="a convex objective on a convex set", standing=f.below.standing),
        "conic form": Finding(holds=True, why=f"a conic program of {columns:,} columns and {rows:,} rows"),
    }
