"""The whole flow on one page; each arrow is one pure function from frozen records to a frozen record:

    Source -parse-> syntax.Model -check-> ir.Problem -bind-> Bound -analyse-> Analysis -choose->
    Choice -normalise-> NormalForm
        -settle-> Plan -lower-> Lowered -emit-> Program -run-> Solution -report-> KKTReport

``routes`` says what takes over where a run stalls. The stages that need torch are imported where
they are used, so that ``check`` and ``format`` start at once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fccomodel.core import ir, options
from fccomodel.core.diagnostics import FccoError, quoting, refuse
from fccomodel.core.source import Source
from fccomodel.core.work import Meter
from fccomodel.pipeline import endings, machine
from fccomodel.pipeline.records import Binding, Compiled, Explained, Outcome, Planned

if TYPE_CHECKING:
    import numpy as np

    from fccomodel.core.failure import Failure
    from fccomodel.data.bound import Bound
    from fccomodel.data.prepare import Prepared
    from fccomodel.execution.run import Progress, Solution
    from fccomodel.execution.run.microscope import Microscope
    from fccomodel.plan import Plan
    from fccomodel.plan.assumptions import Finding
    from fccomodel.plan.candidates import Candidate
    from fccomodel.plan.choice import Choice
    from fccomodel.program.emit import Program
    from fccomodel.report import KKTReport
    from fccomodel.report.new_rows.intervals import Intervals
    from fccomodel.structure import Analysis

#: Counted seconds that the search for multipliers and bounds may take in any case.
REPORT_S = 1.0
#: The share of a budget in seconds that a report's passes over all rows may take, in counted seconds.
AFFORDED = 0.25
#: The same where passes of nets are dear, and the share of the budget that a run leaves for its last
#: look and the report.
OF_DEAR_NETS = 0.15
LEFT_BY_DEAR_NETS = 0.22
#: What a report may take beyond a budget in seconds: a share of it, and so many counted seconds
#: more. With the start of a command (some 3 s) and the budget itself this is the promise of at most
#: 1.3 times the budget and 5 s.
BEYOND_SHARE = 0.3
BEYOND_S = 1.0
#: Counted seconds for intervals on rows held out where the budget is none of seconds, and the least
#: share of one that is.
HELD_S, HELD = 120.0, 0.15
#: The share of a budget that a run has even where the stages before it were long.
LEAST_SHARE = 0.6


# -------------------------------------------------------------------------- text -> problem -> data
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
    rows: Mapping[str, np.ndarray] | None = None,
) -> Bound:
    """Give every name of the problem its data. ``encoding`` is a stored result's; ``where`` chooses
    rows in place of the binding's own condition, ``without`` leaves some of its rows out, ``rows``
    are the only ones (by their source's numbers)."""
    from fccomodel.data import bind as data
    from fccomodel.evaluation.checks import claims, domains, sizes

    with quoting(compiled.problem.source):
        given = binding.arguments
        bound = data.bind(
            compiled.problem, **given, seed=seed, encoding=encoding, where=where, without=without, rows=rows
        )
        claims.check(bound)
        sizes.check(bound)
        domains.check(bound)
        return bound


def prepare(
    compiled: Compiled,
    binding: Binding,
    folder: Path,
    *,
    dtype: str = "float32",
    told: Callable[..., None] = lambda *_: None,
) -> Prepared:
    """The tables of a binding, and the groups and orders that the model asks for, in files of a
    folder, which is a source of them from then on."""
    from fccomodel.data.prepare import prepare
    from fccomodel.evaluation.sets.preparing import orders

    with quoting(compiled.problem.source):
        given = binding.arguments
        return prepare(compiled.problem, folder, dtype=dtype, told=told, orders=orders, **given)


def rebind(
    compiled: Compiled, binding: Binding, bound: Bound, params: Mapping[str, Any]
) -> tuple[Binding, Bound]:
    """The same model and data for other values of some params; data are read again where these decide
    sizes or sets."""
    from fccomodel.data import rebinding
    from fccomodel.evaluation import memory
    from fccomodel.evaluation.checks import claims, domains

    binding = replace(binding, params={**binding.params, **params})
    with quoting(compiled.problem.source):
        again = rebinding.with_values(bound, params)
        if again is None:
            return binding, bind(compiled, binding)
        claims.check(memory.akin(again, bound))
        domains.check(again)
    return binding, again


def divide(
    compiled: Compiled, binding: Binding, share: float, *, seed: int
) -> tuple[Bound, dict[str, np.ndarray]]:
    """The rows to solve on, whose scaling and categories are their own, and by table the numbers of a
    random share held out."""
    from fccomodel.data import subsets

    whole = bind(compiled, binding, seed=seed)
    with quoting(compiled.problem.source):
        held = subsets.held(whole, share, seed)
    numbers = {name: (table.numbers, held[name]) for name, table in whole.tables.items() if name in held}
    kept = {name: own[~mask] for name, (own, mask) in numbers.items()}
    bound = bind(compiled, binding, seed=seed, encoding=subsets.labels_alone(whole), rows=kept)
    bound = replace(bound, notes=(*bound.notes, *subsets.apart(whole, held)))
    return bound, {name: own[mask] for name, (own, mask) in numbers.items()}


def with_parameters(problem: ir.Problem, binding: Binding) -> ir.Problem:
    """The problem for given values of params and dims alone, which are as declared and as the model
    asks: without its data, they stand as the params' bounds."""
    if not binding.params and not binding.nets:
        return problem
    from fccomodel.data import bind as data
    from fccomodel.data.nets.errors import without_data
    from fccomodel.evaluation.checks import domains

    with quoting(problem.source):
        if binding.nets:
            refuse(*(without_data(name) for name in binding.nets))
        bound = data.parameters(problem, binding.params)
        domains.check(bound)
    fixed = {name: _fixed(problem.params[name], value) for name, value in bound.params.items()}
    return replace(problem, params={**problem.params, **fixed}, sizes=bound.dims)


def _fixed(parameter: ir.Parameter, value: np.ndarray) -> ir.Parameter:
    """A param that has a value, as one whose bounds leave no other."""
    low, high = float(value.min()), float(value.max())
    if value.ndim:
        default = parameter.default
    else:
        default = ir.Const(value=low, span=parameter.span)
    return replace(parameter, lower=low, upper=high, strict_lower=False, strict_upper=False, default=default)


# -------------------------------------------------------------------------------- structure -> plan
def analyse(problem: ir.Problem, bound: Bound | None = None) -> Analysis:
    """The structure: curvature, monotonicity, smoothness, each with its reason. Without data, what the
    text alone proves."""
    from fccomodel import structure

    with quoting(problem.source):
        return structure.analyse(problem, bound)


def decide(analysis: Analysis, given: options.Origins | None = None, like: Plan | None = None) -> Plan:
    """How the problem is solved: the algorithm, the normal form that it takes, and what the options
    leave open. ``like``: the plan for other numbers, whose algorithm is kept where it has the same
    guarantee."""
    from fccomodel.pipeline import interior

    with quoting(analysis.problem.source):
        return settled(interior.chosen(analysis, given or {}, None if like is None else like.choice.chosen))


def settled(choice: Choice) -> Plan:
    """The plan of a choice; F06xx where nothing was chosen."""
    from fccomodel.plan import settle

    with quoting(choice.analysis.problem.source):
        return settle(choice, choice.chosen.normal)


def plan(
    compiled: Compiled,
    binding: Binding,
    chosen: options.Origins,
    *,
    bound: Bound | None = None,
    like: Planned | None = None,
) -> Planned:
    """Bind (unless bound already) and decide; ``like``: as of ``decide``."""
    began = time.perf_counter()
    held: dict[str, np.ndarray] = {}
    chosen, aside = machine.at_hand(chosen)
    if bound is None:
        bound, held = rows(compiled, binding, chosen)
    bound = _with_members(bound)
    analysis = analyse(bound.problem, bound)
    made = decide(analysis, chosen, None if like is None else like.plan)
    made = replace(made, unused=(*aside, *made.unused))
    settled = with_origins(made, chosen)
    return Planned(
        compiled=compiled,
        binding=binding,
        bound=bound,
        analysis=analysis,
        plan=made,
        options=settled,
        held=held,
        spent=time.perf_counter() - began,
    )


def on(planned: Planned, bound: Bound) -> Planned:
    """The same plan on other rows or draws, with what is known of the problem there."""
    bound = _with_members(bound)
    return replace(planned, bound=bound, analysis=analyse(bound.problem, bound))


def rows(
    compiled: Compiled, binding: Binding, chosen: options.Origins
) -> tuple[Bound, dict[str, np.ndarray]]:
    """The data without the rows that the option ``holdout`` leaves out, and by table the numbers of
    those chosen at random."""
    out = chosen.get("holdout", (None, ""))[0]
    if out is None or isinstance(out, str):
        return bind(compiled, binding, seed=_seed(chosen), without=out), {}
    return divide(compiled, binding, out, seed=_seed(chosen))


def explain(
    compiled: Compiled, binding: Binding, chosen: options.Origins, *, bound: Bound | None = None
) -> Explained:
    """What is known of a model and how it would be solved, or why it would not be; no data is needed."""
    chosen, aside = machine.at_hand(chosen)
    found = explained(_known(compiled, binding, chosen, bound), chosen)
    if found.plan is None:
        return found
    return replace(found, plan=replace(found.plan, unused=(*aside, *found.plan.unused)))


def explained(analysis: Analysis, given: options.Origins) -> Explained:
    """The same of a structure that is known."""
    from fccomodel.normal_form import errors
    from fccomodel.pipeline import interior

    try:
        with quoting(analysis.problem.source):
            choice = interior.chosen(analysis, given)
            if choice.selected is None and (bound := interior.bound_without_data(analysis)) is not None:
                choice = interior.chosen(bound, given)
    except FccoError as error:
        if any(d.code not in errors.FORMLESS for d in error.diagnostics):
            raise
        return Explained(analysis=analysis, given=given, refusal=error.diagnostics)
    if choice.selected is None:
        return Explained(analysis=analysis, given=given, candidates=choice.candidates, refusal=choice.refusal)
    return Explained(analysis=analysis, given=given, plan=settled(choice), candidates=choice.candidates)


def candidates(
    compiled: Compiled, binding: Binding, chosen: options.Origins
) -> tuple[Mapping[str, Candidate], Mapping[str, Finding] | None]:
    """Every algorithm with how a model meets the assumptions of its theorem; no data is needed. And
    how it meets those of the interior-point method, which needs all data; None where it does not."""
    from fccomodel.pipeline import interior
    from fccomodel.plan import candidates as considered

    with quoting(compiled.source):
        known = _known(compiled, binding, chosen)
        found = interior.findings(interior.bound_without_data(known) or known, chosen)
        return considered.candidates(known, chosen), found


def _known(
    compiled: Compiled, binding: Binding, chosen: options.Origins, bound: Bound | None = None
) -> Analysis:
    """The structure with the data that there are, or by the text and the values of params alone."""
    if bound is None and binding:
        bound, _ = rows(compiled, binding, chosen)
    if bound is None:
        return analyse(with_parameters(compiled.problem, binding))
    bound = _with_members(bound)
    return analyse(bound.problem, bound)


def _with_members(bound: Bound) -> Bound:
    """The problem without families of constraints that have no members on the data."""
    from fccomodel.evaluation.sets import members

    with quoting(bound.problem.source):
        return members.without_empty(bound)


def _seed(chosen: options.Origins) -> int:
    return chosen.get("seed", (0, options.AUTOMATIC))[0]


def with_origins(made: Plan, chosen: options.Origins) -> options.Origins:
    """Every option of a solve with its origin: those chosen automatically, those given that the plan
    uses, and its own."""
    idle = {one.name for one in made.unused}
    return {
        **automatic(made),
        **{name: entry for name, entry in chosen.items() if name not in idle},
        **made.options,
    }


def automatic(made: Plan) -> options.Origins:
    """The values of the options that every solver has, where nobody gave one."""
    values = {
        "seed": 0,
        "device": "auto",
        "precision": "float32",
        "backend": "auto",
        "budget": str(made.budget),
    }
    return {name: (value, options.AUTOMATIC) for name, value in values.items()}


# -------------------------------------------------------------------------------- program -> answer
def emit(planned: Planned) -> Program:
    """The text of a standalone solver and the data that it reads: the plan lowered to graphs of
    values, and these as text. F0615 for a race, whose winner is not known before it is run; F0704
    where a run would take more memory than there is."""
    from fccomodel.core.memory import available
    from fccomodel.plan.errors import no_program
    from fccomodel.program import emit as printing
    from fccomodel.program import errors
    from fccomodel.program.lower import foreseen, lower, over_all_ranks

    if planned.plan.entrants:
        refuse(no_program(planned.plan.entrants), source=planned.problem.source)
    with quoting(planned.problem.source):
        lowered = lower(planned.problem, planned.bound, planned.plan)
        needed, left = foreseen(lowered), available()
        if needed.total > left:
            of = planned.problem.objective.expr if needed.of is None else needed.of
            text = planned.problem.text(of)
            refuse(
                errors.memory_foreseen(needed.total, left, needed.largest, text, of.span),
                source=planned.problem.source,
            )
        return printing.emit(over_all_ranks(lowered) if planned.ranks else lowered)


def run(
    planned: Planned,
    progress: Callable[[Progress], None] | None = None,
    *,
    until: float = math.inf,
    patience: float | None = None,
    watched: bool = False,
    microscope: Microscope | None = None,
    part: str = "run",
) -> tuple[Planned, Program, Solution]:
    """Emit and run; the plan comes back with the device and the backend that were picked. The clock
    (``time.perf_counter``) ends the run at ``until``, where it has a budget in seconds; with
    ``patience`` it ends after so many counted ones. ``watched``: steps alone estimate the KKT
    residual as well; a ``microscope`` looks at them, and nothing comes after them.
    ``part``: which of the runs of a solve it is, by the name that its checkpoints have."""
    from fccomodel.execution import backends
    from fccomodel.execution import run as running
    from fccomodel.pipeline import kept

    program = emit(planned)
    value = {name: entry[0] for name, entry in planned.options.items()}
    seconds, iterations, oracles = options.parse_budget(value["budget"])
    if seconds is not None and planned.plan.thrifty:
        seconds *= 1.0 - LEFT_BY_DEAR_NETS
    device = options.pick_device(value["device"])
    planned = replace(planned, options={**planned.options, "device": (device, planned.options["device"][1])})
    with quoting(planned.problem.source):
        if planned.checkpoints is None:
            keeper = None
        else:
            keeper = kept.keeper(planned, program, part)
        solution = running.run(
            program,
            planned.bound,
            keeper=keeper,
            seed=value["seed"],
            device=device,
            precision=value["precision"],
            backend=backends.check(*planned.options["backend"]),
            budget_s=None
            if seconds is None
            else max(min(seconds, until - time.perf_counter()), LEAST_SHARE * seconds),
            budget_it=iterations,
            budget_oracles=oracles,
            room=seconds,
            patience=patience,
            polish=planned.plan.polish and microscope is None,
            watched=watched,
            microscope=microscope,
            progress=progress,
        )
    planned = replace(
        planned, options={**planned.options, "backend": (solution.backend, planned.options["backend"][1])}
    )
    if planned.plan.schedule is not None:
        solution = replace(
            solution, notes=(*planned.plan.schedule.sentences(solution.iterations), *solution.notes)
        )
    return planned, program, solution


def report(
    planned: Planned,
    solution: Solution,
    *,
    sensitive: bool = False,
    until: float = math.inf,
    stop: Callable[[], bool] = bool,
) -> KKTReport:
    """How far a solution is from the optimality conditions of the problem as written, over all bound
    rows: by no more work than half the run's, or ``REPORT_S``; the clock ends the search for
    multipliers at ``until``, or who asks to ``stop`` does."""
    from fccomodel import report as judging

    seconds = options.parse_budget(planned.options["budget"][0])[0]
    afforded = OF_DEAR_NETS if planned.plan.thrifty else AFFORDED
    with quoting(planned.problem.source):
        kkt = judging.report(
            planned.bound,
            solution.variables,
            multipliers=solution.multipliers,
            limits=solution.limits,
            ended=endings.ending(planned, solution),
            work=Meter(max(REPORT_S, solution.worked / 2), until, stop),
            afford=math.inf if seconds is None else afforded * seconds,
            most=0.0 if seconds is None else BEYOND_SHARE * seconds + BEYOND_S,
            seed=planned.seed,
            analysis=planned.analysis,
            sensitive=sensitive,
        )
    if solution.failure is None:
        return kkt
    return _failed(planned, kkt, solution.failure)


def _failed(planned: Planned, kkt: KKTReport, failure: Failure) -> KKTReport:
    """The report with a failure that a run claims, unless what is known of the problem excludes it."""
    from fccomodel import report as judging

    analysis = planned.analysis
    convex = analysis.convex_constraints
    if failure.kind != "infeasible":
        if failure.proved:
            reason = ""
        else:
            reason = judging.excluded(analysis, kkt.gap, failure.kind)
        if reason:
            return judging.unfinished(kkt, reason)
        return judging.failed(kkt, failure, convex=convex)
    if convex and failure.radius > judging.of_feasible(analysis):
        failure = replace(failure, radius=math.inf, nearest=math.inf)
    feasible = not convex and not failure.proved and judging.somewhere_feasible(planned.bound)
    return judging.failed(kkt, failure, convex=convex, feasible=feasible)


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
    from fccomodel.evaluation.values import lets, values
    from fccomodel.execution.run import company
    from fccomodel.pipeline import races

    began = time.perf_counter()
    wanted = lets(planned.problem, show)
    with company.helped(planned.bound) if planned.ranks else nullcontext():
        (planned, program, solution, kkt), race = races.answer(planned, progress, sensitive=sensitive)
        with quoting(planned.problem.source):
            shown = values(planned.bound, solution.variables, wanted, seed=planned.seed)
    heldout = held_out(planned, solution)
    wall = time.perf_counter() - began
    return Outcome(
        planned=planned,
        program=program,
        solution=solution,
        report=kkt,
        wall_s=wall,
        shown=shown,
        heldout=heldout,
        race=race,
    )


def held_out(planned: Planned, solution: Solution) -> Intervals | None:
    """How a solution does on the rows held out, with the scaling and the categories of those solved
    on; of a budget in seconds by the counted ones that the run has left, and some in any case."""
    from fccomodel.report.new_rows import subsample

    if planned.holdout is None:
        return None
    other = elsewhere(planned)
    seconds = options.parse_budget(planned.options["budget"][0])[0]
    if seconds is None:
        left = HELD_S
    else:
        left = max(seconds - solution.worked, HELD * seconds, REPORT_S)
    with quoting(planned.problem.source):
        return subsample.sure(other, solution.variables, seed=planned.seed, afford=left)


def elsewhere(planned: Planned) -> Bound:
    """The problem on the rows held out, with the scaling and the categories of those solved on."""
    encoding = {name: table.encoding for name, table in planned.bound.tables.items()}
    where = planned.holdout if isinstance(planned.holdout, str) else None
    return bind(
        planned.compiled,
        planned.binding,
        seed=planned.seed,
        encoding=encoding,
        where=where,
        rows=planned.held,
    )
