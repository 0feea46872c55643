"""The whole flow as one page: text -> syntax -> problem -> bound data -> plan -> program -> solution -> report.

The stages that need torch are imported where they are used, so that ``check`` and ``format`` start at once.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fccomodel.core import ir, options
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.language import syntax

if TYPE_CHECKING:
    from fccomodel.data.bound import Bound
    from fccomodel.plan import Plan
    from fccomodel.plan.choice import Candidate
    from fccomodel.report import KKTReport
    from fccomodel.report.confidence import Intervals
    from fccomodel.solver.emit import Program
    from fccomodel.solver.run import Progress, Solution
    from fccomodel.structure import Analysis


@dataclass(frozen=True, eq=False, kw_only=True)
class Compiled:
    """A checked model: its text, its syntax and its typed problem."""

    source: Source
    model: syntax.Model
    problem: ir.Problem

    @property
    def statements(self) -> tuple[syntax.Statement, ...]:
        """The model's statements, those of included files among them."""
        from fccomodel.language.check.include import expand

        return expand(self.model.statements, self.source)[0]

    @property
    def hash(self) -> str:
        """Sixteen hexadecimal digits that change when the mathematics does: comments, layout and options do not count."""
        kept = [repr(s) for s in self.statements if not isinstance(s, syntax.Options)]
        return hashlib.sha256("\n".join(kept).encode()).hexdigest()[:16]

    @property
    def text(self) -> str:
        """The model as one file: its own text, or where it includes others, the text of all statements."""
        statements, whole = self.statements, self.problem.source.text
        if statements == self.model.statements:
            return self.source.text
        shown = (whole[s.span.start : s.span.end].rstrip("; \n") for s in statements)
        open_ended = (syntax.SubjectTo, syntax.Options)
        return "".join(f"{t}{'' if isinstance(s, open_ended) else ';'}\n" for t, s in zip(shown, statements, strict=True))


@dataclass(frozen=True, eq=False, kw_only=True)
class Binding:
    """What the user gave to bind: a binding file (or the same as a mapping), data by name, parameters, nets."""

    spec: Mapping[str, Any] | Path | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    nets: Mapping[str, Any] = field(default_factory=dict)
    samplers: Mapping[str, Any] = field(default_factory=dict)
    data_dir: Path | None = None
    allow_python: bool = False

    def __bool__(self) -> bool:
        return self.spec is not None or bool(self.data)


@dataclass(frozen=True, eq=False, kw_only=True)
class Planned:
    """A bound problem with the structure found and the plan made; ``options`` holds every value with its origin, ``holdout`` the
    condition on the rows left out to judge by."""

    compiled: Compiled
    binding: Binding
    bound: Bound | None
    analysis: Analysis
    plan: Plan
    options: options.Origins
    holdout: str | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcome:
    """A solved problem: what was planned, the program that ran, where it ended, the report on that point, the lets shown, and
    how it does on the rows held out."""

    planned: Planned
    program: Program
    solution: Solution
    report: KKTReport
    wall_s: float
    shown: Mapping[str, Any] = field(default_factory=dict)
    heldout: Intervals | None = None

    @property
    def problem(self) -> ir.Problem:
        return self.planned.compiled.problem

    @property
    def bound(self) -> Bound:
        assert self.planned.bound is not None
        return self.planned.bound


def compile_model(source: Source) -> Compiled:
    """Text to a checked problem; raises with every error found."""
    from fccomodel.language.check import check
    from fccomodel.language.parse import parse

    model = parse(source)
    return Compiled(source=source, model=model, problem=check(model, source))


def bind(
    compiled: Compiled,
    binding: Binding,
    *,
    seed: int = 0,
    encoding: Mapping | None = None,
    where: str | None = None,
    without: str | None = None,
) -> Bound:
    """Give every name of the problem its data. ``encoding`` is a stored result's; ``where`` chooses rows in place of the
    binding's own condition, ``without`` leaves some of its rows out."""
    from fccomodel.data.bind import bind as bind_data
    from fccomodel.evaluation import claims

    try:
        bound = bind_data(
            compiled.problem,
            spec=binding.spec,
            data=binding.data,
            params=binding.params,
            nets=binding.nets,
            samplers=binding.samplers,
            data_dir=binding.data_dir,
            allow_python=binding.allow_python,
            seed=seed,
            encoding=encoding,
            where=where,
            without=without,
        )
        claims.check(bound)
        return bound
    except FccoError as error:
        raise with_source(error, compiled.problem.source) from None


def plan(
    compiled: Compiled,
    binding: Binding,
    chosen: options.Origins,
    *,
    bound: Bound | None = None,
    explaining: bool = False,
    holdout: str | None = None,
) -> Planned:
    """Bind (unless bound already), find the structure, and choose the algorithm; to explain a model, no data is needed.

    ``holdout`` is a condition on rows that are left out, to judge the answer by.
    """
    from fccomodel import plan as planner
    from fccomodel import structure

    problem = compiled.problem
    if bound is None and (binding or not explaining):
        bound = bind(compiled, binding, seed=chosen.get("seed", (0, options.AUTOMATIC))[0], without=holdout)
    try:
        analysis = structure.analyse(problem, bound)
        made = planner.make(problem, bound=bound, analysis=analysis, options=chosen)
    except FccoError as error:
        raise with_source(error, compiled.problem.source) from None
    settled = {**_automatic(made), **chosen, **made.options}
    return Planned(
        compiled=compiled, binding=binding, bound=bound, analysis=analysis, plan=made, options=settled, holdout=holdout
    )


def candidates(compiled: Compiled, binding: Binding, chosen: options.Origins) -> dict[str, Candidate]:
    """Every algorithm with how a model meets the assumptions of its theorem; no data is needed."""
    from fccomodel import structure
    from fccomodel.plan import choice

    bound = bind(compiled, binding, seed=chosen.get("seed", (0, options.AUTOMATIC))[0]) if binding else None
    try:
        return choice.candidates(compiled.problem, bound, structure.analyse(compiled.problem, bound))
    except FccoError as error:
        raise with_source(error, compiled.problem.source) from None


def _automatic(made: Plan) -> options.Origins:
    """The values of the options that every solver has, where nobody gave one."""
    values = {"seed": 0, "device": "auto", "precision": "float32", "budget": str(made.budget)}
    return {name: (value, options.AUTOMATIC) for name, value in values.items()}


def emit(planned: Planned) -> Program:
    """The text of a standalone solver and the data that it reads."""
    from fccomodel.solver.emit import emit as emit_program

    assert planned.bound is not None, "planned for explanation alone"
    try:
        return emit_program(planned.compiled.problem, planned.bound, planned.plan)
    except FccoError as error:
        raise with_source(error, planned.compiled.problem.source) from None


def run(planned: Planned, progress: Callable[[Progress], None] | None = None) -> tuple[Planned, Program, Solution]:
    """Emit and run; the plan comes back with the device that was picked."""
    from fccomodel.solver.run import run as execute

    program = emit(planned)
    value = {name: entry[0] for name, entry in planned.options.items()}
    seconds, iterations, oracles = options.parse_budget(value["budget"])
    device = options.pick_device(value["device"])
    planned = replace(planned, options={**planned.options, "device": (device, planned.options["device"][1])})
    assert planned.bound is not None
    try:
        solution = execute(
            program,
            planned.bound,
            seed=value["seed"],
            device=device,
            precision=value["precision"],
            budget_s=seconds,
            budget_it=iterations,
            budget_oracles=oracles,
            polish=planned.plan.polish,
            progress=progress,
        )
    except FccoError as error:
        raise with_source(error, planned.compiled.problem.source) from None
    if planned.plan.schedule is not None:
        solution = replace(solution, notes=(*planned.plan.schedule.told(solution.iterations), *solution.notes))
    return planned, program, solution


def solve(
    planned: Planned,
    progress: Callable[[Progress], None] | None = None,
    *,
    show: Iterable[str] = (),
    sensitive: bool = False,
) -> Outcome:
    """Emit, run, and report on the original problem over all bound rows, and on those held out.

    show        names of lets whose values are wanted
    sensitive   report how the optimum moves with the constraints' right sides
    """
    from fccomodel import report as kkt
    from fccomodel.evaluation.values import lets, values
    from fccomodel.report.confidence import intervals

    began = time.perf_counter()
    wanted = lets(planned.compiled.problem, show)
    planned, program, solution = run(planned, progress)
    assert planned.bound is not None
    try:
        seed = planned.options["seed"][0]
        report = kkt.report(
            planned.bound,
            solution.variables,
            multipliers=solution.multipliers,
            limits=solution.limits,
            seed=seed,
            analysis=planned.analysis,
            sensitive=sensitive,
        )
        other = _held_out(planned)
        heldout = None if other is None else intervals(other, solution.variables, seed=seed)
        if solution.failure is not None:
            report = kkt.failed(report, solution.failure, convex=planned.analysis.convex_constraints)
        shown = values(planned.bound, solution.variables, wanted, seed=seed)
    except FccoError as error:
        raise with_source(error, planned.compiled.problem.source) from None
    wall = time.perf_counter() - began
    return Outcome(planned=planned, program=program, solution=solution, report=report, wall_s=wall, shown=shown, heldout=heldout)


def _held_out(planned: Planned) -> Bound | None:
    """The rows held out, with the scaling and the categories of those solved on."""
    if planned.holdout is None or planned.bound is None:
        return None
    encoding = {name: table.encoding for name, table in planned.bound.tables.items()}
    seed = planned.options["seed"][0]
    return bind(planned.compiled, planned.binding, seed=seed, encoding=encoding, where=planned.holdout)


def with_source(error: FccoError, source: Source) -> FccoError:
    """The same error knowing the text that its places are in."""
    return error if error.source is not None else FccoError(error.diagnostics, source)
