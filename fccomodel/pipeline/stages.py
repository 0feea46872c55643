"""The whole flow on one page; each arrow is a pure function from frozen records to a frozen record:

    Source -parse-> syntax.Model -check-> ir.Problem -bind-> Bound -analyse-> Analysis -choose->
    Choice -normalise-> NormalForm
        -settle-> Plan -lower-> Lowered -emit-> Program -run-> Solution -report-> KKTReport

``compile_model`` parses and checks; ``choosing.decide`` chooses, normalises and settles; ``emit``
lowers and prints. ``routes`` says what takes over if a run stalls. The stages that need torch are
imported where they are used, so that ``check`` and ``format`` start at once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fccomodel.core import ir, options
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.core.work import Meter
from fccomodel.pipeline import availability, budget, endings
from fccomodel.pipeline.boundary import quoted
from fccomodel.pipeline.choosing import decide
from fccomodel.pipeline.records import Binding, Compiled, Planned

if TYPE_CHECKING:
    import numpy as np

    from fccomodel.core.failure import Failure
    from fccomodel.data.bound import Bound
    from fccomodel.execution.run import Progress, Solution
    from fccomodel.execution.run.microscope import Microscope
    from fccomodel.plan import Plan
    from fccomodel.program.emit import Program
    from fccomodel.report import KKTReport
    from fccomodel.structure import Analysis


# -------------------------------------------------------------------------- text -> problem -> data
def compile_model(source: Source) -> Compiled:
    """Text to a checked problem. Raises every error found."""
    from fccomodel.language.check import check
    from fccomodel.language.parse import parse

    model = parse(source)
    return Compiled(source=source, model=model, problem=check(model, source))


@quoted
def bind(
    compiled: Compiled,
    binding: Binding,
    *,
    seed: int = 0,
    encoding: Mapping | None = None,
    where: str | None = None,
    without: str | None = None,
    rows: Mapping[str, np.ndarray] | None = None,
) -> Bound:
    """Give every name of the problem its data.

    encoding  scaling and categories of a stored result
    where     a condition that chooses rows, in place of the binding's own
    without   a condition: rows that meet it are left out
    rows      by table the numbers, in their source, of the only rows to take
    """
    from fccomodel.data import bind as data
    from fccomodel.evaluation import net_inputs
    from fccomodel.evaluation.checks import claims, domains, sizes

    bound = data.bind(
        compiled.problem,
        **binding.arguments,
        seed=seed,
        encoding=encoding,
        where=where,
        without=without,
        rows=rows,
        inputs=net_inputs.at_some_rows if compiled.problem.nets else None,
    )
    bound = _with_steps(compiled, bound)
    claims.check(bound)
    sizes.check(bound)
    domains.check(bound)
    return bound


def _with_steps(compiled: Compiled, bound: Bound) -> Bound:
    """The problem with its recursions written out to the lengths that the data say."""
    counting = compiled.problem.counting
    if not counting:
        return bound
    from fccomodel.language.check import check

    lengths = {dim: bound.dims[dim] for dim in counting}
    return replace(bound, problem=check(compiled.model, compiled.source, lengths))


@quoted
def with_members(bound: Bound) -> Bound:
    """The problem without families of constraints that have no members on the data."""
    from fccomodel.evaluation.sets import members

    return members.without_empty(bound)


# -------------------------------------------------------------------------------- structure -> plan
@quoted
def analyse(problem: ir.Problem, bound: Bound | None = None) -> Analysis:
    """The structure: curvature, monotonicity, smoothness, each with its reason.

    Without data, it is what the text alone proves.
    """
    from fccomodel import structure

    return structure.analyse(problem, bound)


def plan(
    compiled: Compiled,
    binding: Binding,
    chosen: options.Origins,
    *,
    bound: Bound | None = None,
    like: Planned | None = None,
) -> Planned:
    """Bind (unless bound already), analyse and decide.

    ``like`` is the plan for other numbers: its algorithm is kept if it has the same guarantee.
    """
    began = time.perf_counter()
    held: dict[str, np.ndarray] = {}
    chosen, set_aside = availability.available(chosen)
    if bound is None:
        bound, held = rows(compiled, binding, chosen)
    bound = with_members(bound)
    analysis = analyse(bound.problem, bound)
    decided = decide(analysis, chosen, None if like is None else like.plan)
    decided = replace(decided, unused=(*set_aside, *decided.unused))
    settings = with_origins(decided, chosen)
    planned = Planned(
        compiled=compiled,
        binding=binding,
        bound=bound,
        analysis=analysis,
        plan=decided,
        options=settings,
        held=held,
        spent=time.perf_counter() - began,
    )
    return _begun(planned)


def replan(planned: Planned, changed: options.Origins, like: Plan | None = None) -> Planned:
    """The plan on the same data for other values of some options; the run begins where it did.

    ``like`` is the plan for other numbers: its algorithm is kept if it has the same guarantee.
    """
    given = {**planned.given, **changed}
    decided = decide(planned.analysis, given, like)
    decided = replace(decided, start=planned.plan.start)
    return replace(planned, plan=decided, options=with_origins(decided, given))


def _begun(planned: Planned) -> Planned:
    """The plan with the start that the model says, or with centres among the rows, if there are any."""
    declared = any(variable.start is not None for variable in planned.problem.variables.values())
    if planned.plan.convex and not declared:
        return planned
    from fccomodel.pipeline import starts

    return starts.as_declared(planned)


def rows(
    compiled: Compiled, binding: Binding, chosen: options.Origins
) -> tuple[Bound, dict[str, np.ndarray]]:
    """The data without the rows that the option ``holdout`` leaves out.

    If these are chosen at random, their numbers by table come too.
    """
    holdout = chosen.get("holdout", (None, ""))[0]
    seed = chosen.get("seed", (0, options.AUTOMATIC))[0]
    if holdout is None or isinstance(holdout, str):
        return bind(compiled, binding, seed=seed, without=holdout), {}
    return divide(compiled, binding, holdout, seed=seed)


@quoted
def divide(
    compiled: Compiled, binding: Binding, share: float, *, seed: int
) -> tuple[Bound, dict[str, np.ndarray]]:
    """The rows to solve on, and for each table the numbers of a random share held out.

    Scaling and categories are those of the rows to solve on.
    """
    from fccomodel.data import subsets

    whole = bind(compiled, binding, seed=seed)
    held_out = subsets.held(whole, share, seed)
    numbers = {
        name: (table.numbers, held_out[name]) for name, table in whole.tables.items() if name in held_out
    }
    rows_left = {name: own[~mask] for name, (own, mask) in numbers.items()}
    bound = bind(compiled, binding, seed=seed, encoding=subsets.labels_alone(whole), rows=rows_left)
    bound = replace(bound, notes=(*bound.notes, *subsets.apart(whole, held_out)))
    return bound, {name: own[mask] for name, (own, mask) in numbers.items()}


def with_origins(decided: Plan, chosen: options.Origins) -> options.Origins:
    """Every option of a solve with its origin.

    First the automatic values, then those given that the plan uses, then the plan's own.
    """
    idle = {option.name for option in decided.unused}
    return {
        **automatic(decided),
        **{name: entry for name, entry in chosen.items() if name not in idle},
        **decided.options,
    }


def automatic(decided: Plan) -> options.Origins:
    """The automatic values of the options that every solver has."""
    values = {
        "seed": 0,
        "device": "auto",
        "precision": "float32",
        "backend": "auto",
        "budget": str(decided.budget),
    }
    return {name: (value, options.AUTOMATIC) for name, value in values.items()}


# -------------------------------------------------------------------------------- program -> answer
@quoted
def emit(planned: Planned) -> Program:
    """The text of a standalone solver and its data: the plan lowered to graphs of values, printed.

    Raises F0615 for a race, whose winner is not known before it has run, and F0704 if a run would
    take more memory than there is.
    """
    from fccomodel.program.from_plan import program_of

    return program_of(planned.problem, planned.bound, planned.plan, all_ranks=planned.ranks)


@quoted
def run(
    planned: Planned,
    progress: Callable[[Progress], None] | None = None,
    *,
    until: float = math.inf,
    patience: float | None = None,
    watched: bool = False,
    microscope: Microscope | None = None,
    part: str = "run",
    goes_on: bool = False,
) -> tuple[Planned, Program, Solution]:
    """Emit and run. The plan comes back with the device and the backend that were picked.

    until       when the clock (``time.perf_counter``) ends a run with a budget in seconds
    patience    counted seconds after which the run ends
    watched     steps alone estimate the KKT residual as well
    microscope  looks at the steps; nothing comes after them
    part        which run of a solve it is, by the name of its checkpoints
    goes_on     whether it goes on from an answer: it then gets only the time that is left
    """
    from fccomodel.execution import run as running

    program = emit(planned)
    device = options.pick_device(planned.options["device"][0])
    planned = planned.with_option("device", device)
    settings = running.RunSettings(
        seed=planned.seed,
        device=device,
        precision=planned.options["precision"][0],
        backend=planned.options["backend"],
        seconds=budget.run_seconds(planned, until, goes_on=goes_on),
        iterations=planned.budget.iterations,
        oracles=planned.budget.oracles,
        room=budget.run_room(planned),
        patience=patience,
        polish=planned.plan.polish and microscope is None,
        watched=watched,
    )
    keeper = _keeper(planned, program, part)
    solution = running.run(
        program, planned.bound, settings, microscope=microscope, keeper=keeper, progress=progress
    )
    planned = planned.with_option("backend", solution.backend)
    if planned.plan.schedule is not None:
        sentences = planned.plan.schedule.sentences(solution.iterations)
        solution = replace(solution, notes=(*sentences, *solution.notes))
    return planned, program, solution


def _keeper(planned: Planned, program: Program, part: str) -> Any:
    """The keeper that writes the checkpoints of a run and reads the one to go on from; None without a
    folder.

    Checkpoints of a program of ranks belong to the run in one process: any number of ranks goes on
    from them. Raises F0817 if a checkpoint belongs to another run.
    """
    from fccomodel.execution import ranks
    from fccomodel.execution.checkpoints.identity import identity
    from fccomodel.execution.run import Keeper

    if planned.checkpoints is None:
        return None
    alone, keeper = program, Keeper
    if planned.ranks:
        alone = emit(replace(planned, options={**planned.options, "ranks": (False, options.AUTOMATIC)}))
        keeper = ranks.Keeper
    known = identity(
        planned.bound,
        alone.data,
        text=alone.text,
        model=planned.compiled.hash,
        algorithm=planned.plan.algorithm,
        chosen=planned.options,
    )
    return keeper(planned.checkpoints.part(part), known)


@quoted
def report(
    planned: Planned,
    solution: Solution,
    *,
    sensitive: bool = False,
    until: float = math.inf,
    stop: Callable[[], bool] = bool,
) -> KKTReport:
    """The report on a solution: how far it is from the optimality conditions of the problem as written,
    over all rows.

    The search for multipliers ends after the work that ``budget.search_meter`` allows, at ``until``
    by the clock, or when ``stop`` says so. ``sensitive``: report how the optimum moves with the
    right sides of the constraints. If memory does not suffice, it says what is known of the
    point without it.
    """
    from fccomodel import report as judging
    from fccomodel.evaluation.checks.sizes import beyond_memory

    try:
        kkt = judging.report(
            planned.bound,
            solution.variables,
            multipliers=solution.multipliers,
            limits=solution.limits,
            ended=endings.ending(planned, solution),
            work=budget.search_meter(solution, until, stop),
            afford=budget.report_passes_seconds(planned, solution),
            most=budget.pace(solution) * budget.report_beyond_seconds(planned.budget),
            seed=planned.seed,
            analysis=planned.analysis,
            sensitive=sensitive,
        )
    except (FccoError, MemoryError, RuntimeError) as error:
        if not beyond_memory(error):
            raise
        kkt = None
    if kkt is None:
        return judging.unjudged(planned.bound, solution.variables, planned.seed, endings.last_look(solution))
    if solution.failure is None:
        return kkt
    return _failed(planned, kkt, solution.failure, until, stop)


def _failed(
    planned: Planned, kkt: KKTReport, failure: Failure, until: float, stop: Callable[[], bool]
) -> KKTReport:
    """The report with the failure that a run claims, unless what is known of the problem excludes it.

    The search for a feasible point ends at ``until`` by the clock, or when ``stop`` says so.
    """
    from fccomodel import report as judging

    analysis = planned.analysis
    convex = analysis.convex_constraints
    if failure.kind != "infeasible":
        if failure.proved:
            excluded = ""
        else:
            excluded = judging.excluded(analysis, kkt.gap, failure.kind)
        if excluded:
            return judging.unfinished(kkt, excluded)
        return judging.failed(kkt, failure, convex=convex)
    if convex and failure.radius > judging.of_feasible(analysis):
        failure = replace(failure, radius=math.inf, nearest=math.inf)
    feasible = False
    if not convex and not failure.proved:
        meter = Meter(budget.REPORT_SECONDS, until, stop)
        feasible = any(judging.feasible_points(planned.bound, meter))
    return judging.failed(kkt, failure, convex=convex, feasible=feasible)
