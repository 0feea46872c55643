"""The start of a solve: from a result, from a stored result, or from values by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fccomodel import pipeline
from fccomodel.app import errors
from fccomodel.app.stored import results
from fccomodel.core.diagnostics import refuse
from fccomodel.pipeline import starts
from fccomodel.plan.starts import Start


def begun(planned: pipeline.Planned, start: Any) -> pipeline.Planned:
    """The plan, changed to begin at a start; F0712 if names, shapes or numbers do not fit.

    start   a result, the folder of a result, values by name, or None for the plan's own start
    """
    if start is None:
        return planned
    if isinstance(start, str | Path):
        planned = replace(planned, begun=str(start))
        start = results.load(Path(start))
    if isinstance(start, results.Stored):
        return starts.begun(planned, _of_stored(planned, start))
    outcome = getattr(start, "outcome", None)
    if isinstance(outcome, pipeline.Outcome):
        return starts.begun(planned, starts.after(planned, outcome.planned, outcome.solution))
    if not isinstance(start, Mapping):
        refuse(errors.not_a_start(start))
    return starts.begun(planned, Start(values=start))


def _of_stored(planned: pipeline.Planned, stored: results.Stored) -> Start:
    """The start at a stored answer. Of another model's answer it takes the variables known here."""
    known = planned.problem.variables
    values = {name: value for name, value in stored.variables.items() if name in known}
    own = stored.solvers_multipliers or stored.report_multipliers
    params = {name: value.tolist() for name, value in planned.bound.params.items()}
    same = stored.record["model_hash"] == planned.compiled.hash and params == stored.record.get("params")
    answered = same and stored.record["status"] == "converged"
    return Start(values=values, multipliers=own, found=True, answered=answered)
