"""What comes of a model: what is found about it, the plan to solve it, and the answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel import pipeline
from fccomodel.app.generated import citing
from fccomodel.app.scoring import scoring
from fccomodel.app.scoring.answers import Answer
from fccomodel.app.shown import display, explain, labelled, page, plots
from fccomodel.app.shown.history import History
from fccomodel.app.shown.notebook.shown import Shown
from fccomodel.app.stored import results, store
from fccomodel.core import options

if TYPE_CHECKING:
    from fccomodel.app.shown.tracing import Traced
    from fccomodel.report import KKTReport
    from fccomodel.report.new_rows.intervals import Intervals
    from fccomodel.report.new_rows.margins import Margins
    from fccomodel.report.new_rows.population import Population


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation(Shown):
    """What was found about a model and what follows for its solution, or what it lacks."""

    explained: pipeline.Explained

    @property
    def _found(self) -> tuple[Any, Any]:
        return self.explained.analysis, self.explained.plan

    @property
    def _lacking(self) -> dict[str, Any]:
        return {"candidates": self.explained.candidates, "refusal": self.explained.refusal}

    @property
    def json(self) -> dict[str, Any]:
        """``objective``, ``constraints``, ``algorithm``, ``via``, ``rejected``; ``refused`` where
        nothing solves the model."""
        return results.plain(explain.to_json(*self._found, **self._lacking))

    def why(self, subject: str) -> str:
        """The chain of rules behind the curvature of the objective (``objective``) or of a constraint
        (its label)."""
        return explain.to_text(*self._found, why=subject)

    def __str__(self) -> str:
        return explain.to_text(*self._found, **self._lacking)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The structure as a tree that unfolds to rules and reasons, and the algorithms with what each
        lacks."""
        from fccomodel.app.shown.notebook import html

        return html.explanation(self.explained)


class Planned(Shown, pipeline.Planned):
    """A plan: ``print`` shows the algorithm, its theorem's assumptions and what the other algorithms lack."""

    def __str__(self) -> str:
        return explain.to_text(self.analysis, self.plan)

    def _repr_html_(self) -> str:
        from fccomodel.app.shown.notebook import html

        return html.page(*html.plan(self.plan))


@dataclass(frozen=True, eq=False, kw_only=True)
class Result(Shown, Answer):
    """A solved problem. ``print(result)`` shows the report."""

    outcome: pipeline.Outcome

    @property
    def variables(self) -> dict[str, np.ndarray]:
        """The decision variables by the model's names, in float64; entries by theirs:
        ``variables["w"].sel(d="radius")``."""
        return labelled.variables(self.outcome.solution.variables, self._axes["variables"])

    @property
    def multipliers(self) -> dict[str, Any]:
        """The report's by the constraint's name: a number, or of a family
        ``multipliers["gap"].sel(k="a", t=0.5)``."""
        rows = {label: row.multiplier for label, row in self.outcome.report.constraints.items()}
        return labelled.by_family(rows, self._axes["constraints"])

    @cached_property
    def _axes(self) -> dict[str, labelled.Axes]:
        return labelled.axes(self.outcome.bound)

    def fitted(self) -> scoring.Fitted:
        """The answer as it predicts for new rows."""
        return scoring.fitted(self.outcome)

    @property
    def report(self) -> KKTReport:
        """Objective, constraints and KKT residuals of the original problem over all bound rows."""
        return self.outcome.report

    @property
    def objective(self) -> float:
        """The objective as the model states it (a maximum is not negated)."""
        return self.outcome.report.objective

    @property
    def constraints(self) -> dict[str, float]:
        """Left minus right side by label; feasible when at most 0."""
        return {label: entry[0] for label, entry in self.outcome.report.constraints.items()}

    @property
    def values(self) -> dict[str, Any]:
        """The lets that ``show`` named: a number, a list, or either by member of a family."""
        return dict(self.outcome.shown)

    @property
    def heldout(self) -> Intervals | None:
        """The objective and the constraints on the rows held out, with 95% confidence."""
        return self.outcome.heldout

    @property
    def trace(self) -> Traced | None:
        """What ``trace`` asked for of the steps: ``.rows``, ``.to_pandas()``, ``.plot.tracking()``,
        ``.plot.bias()``, .."""
        from fccomodel.app.shown.tracing import Traced

        seen, planned = self.outcome.solution.trace, self.outcome.planned
        known = {
            label: row.multiplier
            for label, row in self.report.constraints.items()
            if row.multiplier is not None
        }
        name = f"{self.outcome.problem.name}, {planned.plan.algorithm}"
        if seen is None:
            return None
        return Traced(trace=seen, multipliers=known, name=name)

    @property
    def margins(self) -> Margins | None:
        """The margins of constraints on expectations over rows, and what they cost."""
        return self.outcome.margins

    @property
    def population(self) -> Population | None:
        """The optimality gap for new rows."""
        return self.outcome.population

    @property
    def heldout_rows(self) -> dict[str, np.ndarray]:
        """By table the numbers in their source of the rows that were held out at random."""
        return dict(self.outcome.planned.held)

    @property
    def algorithm(self) -> str:
        """The algorithm that the plan chose."""
        return self.outcome.planned.plan.algorithm

    @property
    def options(self) -> options.Origins:
        """Every option's value and where it came from."""
        return self.outcome.planned.options

    @property
    def history(self) -> History:
        """After each stage: objective and violation of the best point so far, oracle calls, seconds;
        ``.to_pandas()``."""
        return History(self.outcome.solution.history)

    @property
    def solver(self) -> str:
        """The text of the program that ran."""
        return self.outcome.program.text

    @property
    def plot(self) -> plots.Plots:
        """Pictures: ``plot()`` of the run; ``plot.convergence()``, ``constraints``, ``multipliers``,
        ``groups``, ``roc``."""
        return plots.Plots(self.json, display.kinds(self.outcome.problem), self.outcome)

    def cite(self) -> str:
        """BibTeX of what the answer rests on: the algorithm's paper, the interior-point method where
        it came in, this library."""
        return citing.cite(self.json)

    def html(self) -> str:
        """The result as a page for a browser, without network: the model, pictures, the KKT table, how
        to run it again."""
        return page.html(results.at_hand(self.outcome))

    @property
    def json(self) -> dict[str, Any]:
        """What ``save`` writes as ``result.json``."""
        return results.to_json(self.outcome)

    def save(self, folder: str | Path) -> Path:
        """Write ``result.json``, ``variables.npz``, ``solver.py`` with ``data.pt``, and the nets' scores."""
        with store.claim(Path(folder)) as claimed:
            results.save(self.outcome, claimed)
        return claimed.folder

    @property
    def details(self) -> str:
        """The whole report: ``print(result)`` and the assumptions, what practice adds, every option
        with its origin."""
        return display.to_text(display.outcome(self.outcome, verbose=True))

    def __str__(self) -> str:
        return display.to_text(display.outcome(self.outcome))

    def _repr_html_(self) -> str:
        from fccomodel.app.shown.notebook import html

        return html.result(self.outcome, display.to_html(display.outcome(self.outcome, verbose=True)))

    def __repr__(self) -> str:
        return f"<Result {self.outcome.problem.name}: objective {self.objective:.6g}, {self.report.verdict}>"
