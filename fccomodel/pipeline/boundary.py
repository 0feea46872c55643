"""The boundary where errors get the text that they quote."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from fccomodel.core import ir
from fccomodel.core.diagnostics import quoting

P = ParamSpec("P")
Result = TypeVar("Result")


class OfProblem(Protocol):
    """A record of one problem: a compiled model, bound data, an analysis, a plan."""

    @property
    def problem(self) -> ir.Problem:
        """The problem that the record belongs to."""


Record = TypeVar("Record", bound=OfProblem | ir.Problem)


def quoted(stage: Callable[Concatenate[Record, P], Result]) -> Callable[Concatenate[Record, P], Result]:
    """A stage whose errors quote the text of the model.

    Its first argument is the problem, or a record of it. Every other stage is called by one of these.
    """

    @wraps(stage)
    def quoting_stage(record: Record, /, *arguments: P.args, **named: P.kwargs) -> Result:
        """Run the stage, and give errors the model's text."""
        problem = record if isinstance(record, ir.Problem) else record.problem
        with quoting(problem.source):
            return stage(record, *arguments, **named)

    return quoting_stage
