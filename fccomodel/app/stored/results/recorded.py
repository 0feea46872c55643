"""The properties of a result that follow from its record, in memory or read from its folder."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from fccomodel.app import habits
from fccomodel.app.generated import citing
from fccomodel.app.scoring.answers import PredictionMethods
from fccomodel.app.shown import frames, labelled, texts


class Recorded(habits.Answering, PredictionMethods):
    """An answer with the record of its solve.

    variables   the decision variables by name, in float64
    """

    variables: Mapping[str, np.ndarray]
    _called = "An answer"

    def _instead(self) -> dict[str, str]:
        return {**habits.RESULT, **{name: f'result.variables["{name}"]' for name in self.variables}}

    @property
    def json(self) -> dict[str, Any]:
        """The content of ``result.json``."""
        raise NotImplementedError

    @cached_property
    def _record(self) -> dict[str, Any]:
        """The content of ``result.json``, put together once."""
        return self.json

    @property
    def algorithm(self) -> str:
        """The identifier of the chosen algorithm."""
        return self._record["algorithm"]

    @property
    def objective(self) -> float:
        """The objective as the model states it (a maximum is not negated)."""
        return self._record["objective"]

    @property
    def constraints(self) -> dict[str, float]:
        """The left side minus the right side of each constraint, by label. A value of at most 0 is
        feasible.
        """
        return {label: row["value"] for label, row in (self._record["constraints"] or {}).items()}

    @property
    def values(self) -> dict[str, Any]:
        """The values of the lets named in ``show``: numbers, lists, or dictionaries for families."""
        return dict(self._record["values"])

    @property
    def status(self) -> str:
        """The verdict in one word.

        ``solved``, ``roughly``, ``stationary``, ``roughly_stationary``, ``loose_bound`` (nearly stationary;
        the proved bound is loose), ``not_best``, ``saddle``, ``infeasible``, ``infeasible_nearby``,
        ``unbounded``, ``unattained``, ``stopped_feasible`` or ``stopped_infeasible`` (the budget ended
        first).
        """
        from fccomodel.report import statuses  # which loads torch

        record = self._record
        return statuses.word(record["verdict"], record["status"], _violation(record))

    @property
    def in_words(self) -> str:
        """One sentence on how good the answer is, for a reader who is no optimiser."""
        from fccomodel.report import statuses

        return statuses.sentence(self._record["verdict"], self.status)

    def summary(self) -> texts.Printed:
        """Four lines: what was solved, how good the answer is in plain words and in the report's, and
        whether the constraints hold."""
        from fccomodel.report import statuses

        record = self._record
        count = len(record["constraints"] or {})
        if not count:
            constraints = "no constraints"
        elif _violation(record) <= statuses.FEASIBLE:
            constraints = f"constraints: {count}, all hold"
        else:
            constraints = f"constraints: {count}, largest violation {record['kkt']['feasibility']:.2g}"
        first = f"{record['model']}: objective {self.objective:.6g} ({self.status})"
        return texts.Printed("\n".join([first, self.in_words, record["verdict"], constraints]))

    def to_frame(self) -> Any:
        """The variables as a pandas table with the columns variable, entry and value, a row for each number.

        F0529 without pandas. The constraints are ``constraints_frame()``.
        """
        rows = [
            {"variable": name, "entry": entry, "value": value}
            for name, array in self.variables.items()
            for entry, value in labelled.entries(array)
        ]
        return frames.frame(rows, "A table of the answer", ("variable", "entry", "value"))

    def constraints_frame(self) -> Any:
        """The constraints as a pandas table with the columns constraint, value and multiplier.

        value   left minus right side: at most 0 if the constraint holds

        F0529 without pandas.
        """
        rows = [
            {"constraint": label, "value": row["value"], "multiplier": row["multiplier"]}
            for label, row in (self._record["constraints"] or {}).items()
        ]
        return frames.frame(rows, "A table of the constraints", ("constraint", "value", "multiplier"))

    def cite(self) -> str:
        """BibTeX entries of the algorithm's paper, of the interior-point method if it was used, and
        of this library."""
        return citing.cite(self._record)


def _violation(record: Mapping[str, Any]) -> float:
    """The largest violation, relative to its constraint's scale if the record has that; infinite if it is
    not known."""
    violation = (record.get("relative") or {}).get("feasibility", record["kkt"]["feasibility"])
    if violation is None:
        return math.inf
    return violation
