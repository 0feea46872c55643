"""Advice on how to lower a residual, by how the run ended that found the point. Advice that cannot help
is not given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fccomodel.data.bound import Bound

#: Tolerance up to which rounding decides, not the tests of a run.
ROUNDING = 1e-10
BEYOND = "Numbers at this point are beyond double precision: scale the data, or bound the variables by sets."
CANCELLING = "Rounding of terms that cancel is as large as what is left of them: {scaling}."
POLE = "Keep it away from 0 by a constraint or a set: where it may come near 0, there may be no optimum."
SADDLE = "Conditions of first order hold at saddles too: begin elsewhere (--start, `start=` in Python)."
CHOICE = (
    "Not all subgradients were chosen (see the notes), so that the point may be better than its "
    "stationarity says."
)
LATER = "The time for the report was used up: a longer one (--budget) may find subgradients that leave less."
DRAWS = (
    "The run's own tests were met: the report's draws differ from the run's, by the standard errors "
    "in the notes."
)
#: Sentences on what is missing, by the residual that decides.
MISSING: Mapping[str, str] = {
    "feasibility": "Constraints are still violated",
    "complementarity": "A constraint with a positive multiplier is not at its bound yet",
    "multipliers": "The variables are ahead of the solver's multipliers",
    "stationarity": "The gradient has not settled",
}


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a run ended.

    how      ``budget``, ``interrupted``, ``stalled`` (a longer run gains nothing), or ``converged``
             by its own tests
    way      its last method: ``steps``, ``passes`` over all rows, or an ``interior``-point method
    tol      the tolerance of its tests
    sampled  whether steps saw only some of the rows
    biased   whether steps estimated expectations under nonlinear functions by one minibatch each; more
             steps do not remove that bias
    batches  how to give larger batches
    passes   how to add passes over all rows after the steps; '' if there were some or cannot be
    """

    how: str
    way: str = "steps"
    tol: float = 0.0
    sampled: bool = False
    biased: bool = False
    batches: str = "--option inner_batch, outer_batch"
    passes: str = ""

    @property
    def remedy(self) -> str:
        """Advice about another run; empty if no other run would end at another point."""
        if self.passes:
            ways = [self.passes]
        else:
            ways = []
        if self.way == "steps" and self.biased:
            ways += [
                "larger batches (--option inner_batch)",
                "an algorithm that keeps estimates (--algorithm race)",
            ]
            return (
                f"one minibatch at a time is a biased estimate, however long the run; try {' or '.join(ways)}"
            )
        batches = []
        if self.way == "steps" and self.sampled:
            batches = [f"larger batches ({self.batches})"]
        match self.how:
            case "budget" | "interrupted":
                return "run longer (--budget)" + "".join(f", with {text}" for text in batches)
            case "stalled":
                ways += [*batches, "another algorithm (--algorithm race)"]
                return f"a longer run gains nothing; try {' or '.join(ways)}"
            case "converged" if self.way != "interior" and self.tol > ROUNDING:
                return f"run with a smaller --tol than {self.tol:g}"
        return ""


def towards(ended: Ending | None, missing: str, bound: Bound, loose: str = "") -> str:
    """Advice about the residual ``missing``, a key of ``MISSING``.

    ``loose`` gives the reason why the residual may be smaller than computed.
    """
    more_helps = ended is not None and ended.how != "converged" and ended.remedy
    if loose and missing == "stationarity" and not more_helps:
        return loose
    if ended is None:
        return f"{MISSING[missing]}: solve with this point as the start (--start, `start=` in Python)."
    if not ended.remedy:
        return f"{MISSING[missing]}, by what rounding leaves: {scaling(bound)}."
    if ended.how == "converged" and not ended.biased:
        return f"The run's own tests were met, which the problem's scales or kinks deceive: {ended.remedy}."
    return f"{MISSING[missing]}: {ended.remedy}."


def little_curvature(bound: Bound) -> str:
    """Advice that lets a smaller gap be proved."""
    return (
        f"Curvature is too small for the conditions to tell: {scaling(bound)}, or add a regulariser, such as "
        f"1e-4 * {squares(bound)}."
    )


def squares(bound: Bound) -> str:
    """A regulariser of the first variable, as the language writes it."""
    name, variable = next(iter(bound.problem.variables.items()))
    if variable.shape or variable.net:
        return f"sumsq({name})"
    return f"{name}^2"


def scaling(bound: Bound) -> str:
    """How to bring numbers near 1: scale features that are not scaled, else change units of the model."""
    if any(_as_bound(column) for table in bound.tables.values() for column in table.encoding.values()):
        return 'scale the data (`scale = "standard"`)'
    return "write the model in units in which its numbers are near 1"


def _as_bound(column: Mapping[str, object]) -> bool:
    """Whether a column holds features that are not scaled."""
    return column.get("kind") in ("vector", "features") and "scale" not in column
