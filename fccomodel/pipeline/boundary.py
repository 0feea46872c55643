"""The boundary of stages: errors get the text that they quote, deep models the frames they need, and no
stage takes more memory than there is."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from fccomodel.core import ir, memory, process
from fccomodel.core.diagnostics import FccoError, quoting

P = ParamSpec("P")
Result = TypeVar("Result")


class OfProblem(Protocol):
    """A record of one problem: a compiled model, bound data, an analysis, a plan."""

    @property
    def problem(self) -> ir.Problem:
        """The problem that the record belongs to."""


Record = TypeVar("Record", bound=OfProblem | ir.Problem)


def quoted(stage: Callable[Concatenate[Record, P], Result]) -> Callable[Concatenate[Record, P], Result]:
    """A stage whose errors quote the text of the model, and which may recurse down the deepest model.

    It raises F0704 if it runs out of memory.
    Its first argument is the problem, or a record of it. Every other stage is called by one of these.
    """

    @wraps(stage)
    def quoting_stage(record: Record, /, *arguments: P.args, **named: P.kwargs) -> Result:
        """Run the stage with frames enough, and give errors the model's text."""
        problem = record if isinstance(record, ir.Problem) else record.problem
        with quoting(problem.source), process.frames():
            try:
                with memory.limited():
                    return stage(record, *arguments, **named)
            except (MemoryError, RuntimeError) as error:
                if not memory.ran_out(error):
                    raise
                from fccomodel.execution import errors

                raise FccoError([errors.memory(error)], problem.source) from None

    return quoting_stage
