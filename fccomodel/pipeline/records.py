"""The frozen records between the stages, from a checked model to an answer with its report."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fccomodel.core import ir, options
from fccomodel.core.options import AUTOMATIC
from fccomodel.core.source import Source
from fccomodel.language import syntax

if TYPE_CHECKING:
    import numpy as np

    from fccomodel.core.options import Budget
    from fccomodel.data.bound import Bound
    from fccomodel.execution.race import Race
    from fccomodel.execution.run import Checkpoints, Solution
    from fccomodel.pipeline.answered import Answered
    from fccomodel.plan import Plan
    from fccomodel.program.emit import Program
    from fccomodel.report import KKTReport
    from fccomodel.report.cautions import Warned
    from fccomodel.report.new_rows.intervals import Intervals
    from fccomodel.report.new_rows.margins import Margins
    from fccomodel.report.new_rows.population import Population
    from fccomodel.structure import Analysis

#: What a run says that used up its budget, and what the report says if nobody gave one.
BUDGET_SPENT = "the budget is used up"
DEFAULT_SPENT = "the default budget"
#: What is said if the clock ended a run, or one of its stages.
CLOCK = (
    "a repeat may differ slightly, since the time limit ended it; a longer budget{counted} gives the same "
    "answer each time"
)
#: Oracle calls from which on a counted budget is advised to repeat a run.
REPEATABLE_ORACLE_CALLS = 10_000


@dataclass(frozen=True, eq=False, kw_only=True)
class Compiled:
    """A checked model: its text, its syntax and its typed problem."""

    source: Source
    model: syntax.Model
    problem: ir.Problem

    @property
    def statements(self) -> tuple[syntax.Statement, ...]:
        """The model's statements, with those of included files."""
        from fccomodel.language.check.include import expand

        return expand(self.model.statements, self.source)[0]

    @property
    def hash(self) -> str:
        """Sixteen hexadecimal digits that change when the mathematics does.

        Comments, layout, the spelling of numbers, and options do not count.
        """
        from fccomodel.language.rewriting import canonical
        from fccomodel.language.statements.options import Options

        statements = [repr(canonical(s)) for s in self.statements if not isinstance(s, Options)]
        return hashlib.sha256("\n".join(statements).encode()).hexdigest()[:16]

    @property
    def text(self) -> str:
        """The model as one file: its own text, or the text of all statements if it includes others."""
        from fccomodel.language import statements as kinds

        statements, whole = self.statements, self.problem.source.text
        if statements == self.model.statements:
            return self.source.text
        shown = (whole[s.span.start : s.span.end].rstrip("; \n") for s in statements)
        return "".join(f"{t}{kinds.of(s).ends}\n" for t, s in zip(shown, statements, strict=True))


@dataclass(frozen=True, eq=False, kw_only=True)
class Binding:
    """The arguments of bind: a binding file (or the same as a mapping), data by name, params, nets.

    ``given_as`` is the origin of all but what the file holds. ``drawing`` says how rows are drawn.
    """

    spec: Mapping[str, Any] | Path | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    nets: Mapping[str, Any] = field(default_factory=dict)
    samplers: Mapping[str, Any] = field(default_factory=dict)
    data_dir: Path | None = None
    allow_python: bool = False
    drawing: Any = None
    given_as: str = options.KEYWORD

    @property
    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of ``data.bind``."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "given_as"}

    def __bool__(self) -> bool:
        return self.spec is not None or bool(self.data)


@dataclass(frozen=True, eq=False, kw_only=True)
class Planned:
    """A bound problem with its structure and its plan.

    options      every option's value with its origin
    held         by table the numbers, in their source, of the rows held out at random
    spent        seconds that binding and planning took
    checkpoints  where its runs keep their state
    begun        the folder of the answer that it begins at
    """

    compiled: Compiled
    binding: Binding
    bound: Bound
    analysis: Analysis
    plan: Plan
    options: options.Origins
    held: Mapping[str, np.ndarray] = field(default_factory=dict)
    spent: float = 0.0
    checkpoints: Checkpoints | None = None
    begun: str = ""

    @property
    def given(self) -> dict[str, tuple[Any, str]]:
        """The options that somebody gave."""
        return {name: entry for name, entry in self.options.items() if entry[1] in options.GIVEN}

    @property
    def cautions(self) -> tuple[Warned, ...]:
        """Warnings about the data and the options that hold whatever the answer is."""
        from fccomodel.report import cautions

        named = {name: entry[0] for name, entry in self.given.items() if name in self.problem.params}
        return cautions.of(cautions.Subject(bound=self.bound, unused=self.plan.unused, named=named))

    @property
    def holdout(self) -> str | float | None:
        """The rows left out to judge the answer by: a condition, or a share of them."""
        return self.options.get("holdout", (None, ""))[0]

    @property
    def ranks(self) -> bool:
        """Whether the program is one of several ranks."""
        return bool(self.options.get("ranks", (False, ""))[0])

    @property
    def problem(self) -> ir.Problem:
        """The problem as written, bound to its data."""
        return self.bound.problem

    @property
    def seed(self) -> int:
        """The seed of all random draws."""
        return self.options["seed"][0]

    @property
    def budget(self) -> Budget:
        """The budget of the run."""
        return self.plan.budget

    @property
    def tolerance(self) -> float:
        """The residual that a run ends at."""
        return float(self.options["tol"][0])

    @property
    def finishes(self) -> bool:
        """Whether passes over all rows end a run, within a budget in seconds."""
        return self.plan.polish and self.budget.seconds is not None

    def with_option(self, name: str, value: Any) -> Planned:
        """The plan with another value of an option, whose origin stays."""
        return replace(self, options={**self.options, name: (value, self.options[name][1])})

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.problem.name}: {self.plan.algorithm}>"

    def __reduce__(self) -> tuple[Callable[..., Planned], tuple[Any, ...]]:
        """Pickled without its plan, which holds functions. It is made anew from what is given."""
        parts = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "plan"}
        return _planned, (parts,)


def _planned(parts: dict[str, Any]) -> Planned:
    """The record with its plan made anew."""
    from fccomodel.pipeline.choosing import decide
    from fccomodel.pipeline.starts import as_declared

    user_options = {name: entry for name, entry in parts["options"].items() if entry[1] != options.AUTOMATIC}
    return as_declared(Planned(plan=decide(parts["analysis"], user_options), **parts))


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcome:
    """A solved problem: the plan, the program that ran, where it ended, and the report on that point.

    shown       values of lets, by name
    heldout     how the answer does on the rows held out
    margins     margins of the constraints for new rows
    population  the interval of the optimality gap for new rows
    race        the race that was held for it
    """

    planned: Planned
    program: Program
    solution: Solution
    report: KKTReport
    wall_s: float
    shown: Mapping[str, Any] = field(default_factory=dict)
    heldout: Intervals | None = None
    margins: Margins | None = None
    population: Population | None = None
    race: Race | None = None

    @property
    def problem(self) -> ir.Problem:
        """The problem as written."""
        return self.planned.problem

    @property
    def bound(self) -> Bound:
        """The problem with its data."""
        return self.planned.bound

    @cached_property
    def cautions(self) -> tuple[Warned, ...]:
        """Warnings about the data and the options, beside the verdict."""
        return self.planned.cautions

    @property
    def answered(self) -> Answered:
        """The method that gave the answer."""
        from fccomodel.pipeline.answered import answered

        return answered(self.planned.plan, self.solution)

    @property
    def status(self) -> str:
        """The status on which the run and the report agree; ``stopped`` if they do not.

        One of ``infeasible``, ``infeasible_nearby`` (no feasible point within a radius, or where the
        run ended), ``unbounded``, ``unattained``, ``converged``, ``interrupted``, ``stopped``.
        """
        if self.solution.failure is not None:
            return self.report.failure or "stopped"
        if self.solution.ended == "converged" and not self.report.solved:
            return "stopped"
        return self.solution.ended

    @property
    def stopped(self) -> str:
        """Why the run ended, in words, and how to get the same answer each time if the clock ended it.

        If the report does not bear out the run's own tests, these are named as such.
        """
        words = self.solution.stopped
        if self.planned.options["budget"][1] == AUTOMATIC:
            words = words.replace(BUDGET_SPENT, f"{DEFAULT_SPENT}, {self.planned.options['budget'][0]},")
        if self.status != self.solution.status:
            words = f"by the run's own tests: {words}"
        if not self.solution.timed:
            return words
        calls, counted = self.solution.oracles, ""
        if self.planned.plan.optimizer:
            counted = f", or one in steps (--budget {self.solution.iterations}it),"
        elif calls >= REPEATABLE_ORACLE_CALLS:
            counted = f", or one in oracle calls (--budget {calls:.0e}oracles),"
        return f"{words}; {CLOCK.format(counted=counted)}"
