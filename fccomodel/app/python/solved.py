"""Explanations, plans and results, as Python users see them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel import pipeline
from fccomodel.app.scoring import scoring
from fccomodel.app.shown import display, explain, labelled, page, plots, texts
from fccomodel.app.shown.history import History
from fccomodel.app.shown.notebook.shown import Shown
from fccomodel.app.stored import results, store
from fccomodel.core import options
from fccomodel.pipeline.memory_needed import MemoryNeeded, memory_needed

if TYPE_CHECKING:
    from fccomodel.app.shown.tracing import Traced
    from fccomodel.report import KKTReport
    from fccomodel.report.new_rows.intervals import Intervals
    from fccomodel.report.new_rows.margins import Margins
    from fccomodel.report.new_rows.population import Population


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation(Shown):
    """The facts about a model and the algorithms for it, or the reasons why none solves it."""

    explained: pipeline.Explained

    @property
    def _analysis_and_plan(self) -> tuple[Any, Any]:
        return self.explained.analysis, self.explained.plan

    @property
    def _rejected(self) -> dict[str, Any]:
        """The algorithms with the requirements that they lack, and the refusal if there is no plan."""
        return {"candidates": self.explained.candidates, "refusal": self.explained.refusal}

    @property
    def json(self) -> dict[str, Any]:
        """A dictionary with ``objective``, ``constraints``, ``algorithm``, ``via``, ``rejected``, and
        with ``refused`` if no algorithm solves the model."""
        return results.plain(explain.to_json(*self._analysis_and_plan, **self._rejected))

    @property
    def memory(self) -> MemoryNeeded | None:
        """The memory of a solve, foreseen part by part; None without data or without a plan."""
        analysis, plan = self._analysis_and_plan
        if plan is None or analysis.bound is None:
            return None
        return memory_needed(analysis, plan)

    def why(self, subject: str) -> str:
        """The chain of rules that proves a curvature.

        subject   ``objective``, or the label of a constraint
        """
        return explain.to_text(*self._analysis_and_plan, why=subject)

    @property
    def short(self) -> str:
        """The explanation on one screen; ``print`` of the explanation shows all of it."""
        return self.on_screen(in_python=True)

    def on_screen(self, *, in_python: bool) -> str:
        """The explanation on one screen.

        in_python   whether it names attributes in Python, or options of the command, for the rest
        """
        analysis, plan = self._analysis_and_plan
        rejected = {**self._rejected, "candidates": self._rejected["candidates"] or {}}
        shown = explain.to_screen(analysis, plan, **rejected, width=explain.WIDTH, in_python=in_python)
        return texts.Printed(shown)

    def __str__(self) -> str:
        return explain.to_text(*self._analysis_and_plan, **self._rejected)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The facts as a tree of rules and reasons, and the algorithms with their missing requirements."""
        from fccomodel.app.shown.notebook import html

        return html.explanation(self.explained)


class Planned(Shown, pipeline.Planned):
    """A plan. ``print`` shows the algorithm, the assumptions of its theorem, and the requirements that
    the other algorithms miss."""

    def __str__(self) -> str:
        return explain.to_text(self.analysis, self.plan)

    def _repr_html_(self) -> str:
        from fccomodel.app.shown.notebook import html

        return html.page(*html.plan(self.plan))


@dataclass(frozen=True, eq=False, kw_only=True)
class Result(Shown, results.Recorded):
    """A solved problem. ``print(result)`` shows the report."""

    outcome: pipeline.Outcome

    @property
    def variables(self) -> dict[str, np.ndarray]:  # type: ignore[override]  # a stored result has a field
        """The decision variables by name, in float64.

        Entries have names too: ``variables["w"].sel(d="radius")``.
        """
        return labelled.variables(self.outcome.solution.variables, self._axes["variables"])

    @property
    def multipliers(self) -> dict[str, Any]:
        """The multipliers from the report, by constraint name.

        A single constraint has a number; a family has one per index: ``multipliers["gap"].sel(k="a",
        t=0.5)``.
        """
        rows = {label: row.multiplier for label, row in self.outcome.report.constraints.items()}
        return labelled.by_family(rows, self._axes["constraints"])

    @cached_property
    def _axes(self) -> dict[str, labelled.Axes]:
        return labelled.axes(self.outcome.bound)

    def fitted(self) -> scoring.Fitted:
        """The answer as a predictor for new rows."""
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
        """The left side minus the right side of each constraint, by label. A value of at most 0 is
        feasible.
        """
        return {label: entry[0] for label, entry in self.outcome.report.constraints.items()}

    @property
    def values(self) -> dict[str, Any]:
        """The values of the lets named in ``show``: numbers, lists, or dictionaries for families."""
        return dict(self.outcome.shown)

    @property
    def heldout(self) -> Intervals | None:
        """The objective and the constraints on the rows held out, with 95% confidence."""
        return self.outcome.heldout

    @property
    def trace(self) -> Traced | None:
        """The quantities that ``trace`` recorded at each step.

        ``.rows``, ``.to_pandas()``, ``.plot.tracking()``, ``.plot.bias()`` and others show them.
        """
        from fccomodel.app.shown.tracing import Traced

        trace = self.outcome.solution.trace
        if trace is None:
            return None
        multipliers = {
            label: row.multiplier
            for label, row in self.report.constraints.items()
            if row.multiplier is not None
        }
        name = f"{self.outcome.problem.name}, {self.outcome.planned.plan.algorithm}"
        return Traced(trace=trace, multipliers=multipliers, name=name)

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
        """Row numbers of the rows held out at random, for each table. They count rows of the source."""
        return dict(self.outcome.planned.held)

    @property
    def algorithm(self) -> str:
        """The identifier of the chosen algorithm."""
        return self.outcome.planned.plan.algorithm

    @property
    def options(self) -> options.Origins:
        """The value of every option, and who set it."""
        return self.outcome.planned.options

    @property
    def history(self) -> History:
        """Objective and violation of the best point after each stage, with oracle calls and seconds.

        ``.to_pandas()`` makes a table of it.
        """
        return History(self.outcome.solution.history)

    @property
    def solver(self) -> str:
        """The text of the program that ran."""
        return self.outcome.program.text

    @property
    def plot(self) -> plots.Plots:
        """Pictures: ``plot()``, ``plot.convergence()``, ``plot.variables()``,
        ``plot.constraints()``, ``plot.multipliers()``, ``plot.groups()``, ``plot.roc()``."""
        return plots.Plots(self.json, display.kinds(self.outcome.problem), self.variables, self.outcome)

    def html(self) -> texts.Page:
        """The result as a page for a browser, which needs no network.

        It shows the model, pictures, the KKT table, and the command that runs it again.
        """
        return texts.Page(page.html(results.at_hand(self.outcome)))

    @property
    def json(self) -> dict[str, Any]:
        """The dictionary that ``save`` writes as ``result.json``."""
        return results.to_json(self.outcome)

    def save(self, folder: str | Path) -> Path:
        """Write ``result.json``, ``variables.npz``, ``solver.py`` with ``data.pt``, and the nets' scores."""
        with store.claim(Path(folder)) as claimed:
            results.save(self.outcome, claimed)
        return claimed.folder

    @property
    def details(self) -> texts.Printed:
        """The whole report.

        Beside the text of ``print(result)`` it has the assumptions of the theorem, the run's departures
        from them, and every option with its origin.
        """
        return texts.Printed(display.to_text(display.outcome(self.outcome, verbose=True)))

    def __str__(self) -> str:
        return display.to_text(display.outcome(self.outcome))

    def _repr_html_(self) -> str:
        from fccomodel.app.shown.notebook import html

        whole = display.to_html(display.outcome(self.outcome, verbose=True))
        return html.result(self.outcome, self.in_words, whole)

    def __repr__(self) -> str:
        return f"<Result {self.outcome.problem.name}: objective {self.objective:.6g}, {self.report.verdict}>"
