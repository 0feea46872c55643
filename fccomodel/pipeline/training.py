"""Solve a model by the steps of the user's optimizer: run the training loop, and report on its best point."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fccomodel.core import options
from fccomodel.core.diagnostics import refuse
from fccomodel.pipeline import budget
from fccomodel.pipeline.boundary import quoted
from fccomodel.pipeline.records import Outcome, Planned
from fccomodel.pipeline.solving import held_out
from fccomodel.pipeline.stages import emit, replan, report

#: The algorithm that is taken if the plan's own has no criterion, or a biased one.
FALLBACK_ALGORITHM = "sonex"
#: The origin of the options that a criterion sets.
CRITERION = "criterion"
#: Algorithms with biased estimates, used only if the caller names them.
BIASED = frozenset({"bsgd"})

if TYPE_CHECKING:
    from fccomodel.execution.run import Progress, Solution
    from fccomodel.execution.training.keeping import TrainingKeeper
    from fccomodel.execution.training.loop import Trained
    from fccomodel.execution.training.recipe import Recipe


def trained(
    planned: Planned,
    recipe: Recipe,
    progress: Callable[[Progress], None] | None = None,
    *,
    show: Iterable[str] = (),
    sensitive: bool = False,
) -> Outcome:
    """Steps by the recipe's optimizer, and the report on their best point over all bound rows.

    A callback that raises ends the steps; the answer is the best point so far, and a warning says what
    was raised. Raises F0805 for a budget in oracle calls, F0826 for models that have no criterion.
    """
    from fccomodel import report as judging
    from fccomodel.evaluation.values import lets, values
    from fccomodel.execution.run.machine import interruptible

    began = time.perf_counter()
    lets_shown = lets(planned.problem, show)
    deadlines = budget.deadlines(planned)
    end = _run(planned, recipe, progress, deadlines.run)
    planned = _with_answer(planned, end)
    solution = _solution(end, planned)
    until = deadlines.for_report()
    if solution.interrupted:
        kkt = report(planned, solution, sensitive=sensitive, until=until)
    else:
        with interruptible() as asked:
            kkt = report(planned, solution, sensitive=sensitive, until=until, stop=asked.is_set)
    failure = judging.unmet(planned.bound, kkt)
    if failure is not None:
        solution, kkt = replace(solution, failure=failure), judging.failed(kkt, failure, convex=True)
    if end.error is not None:
        warnings.warn(
            f"the callback raised {type(end.error).__name__}: {end.error}; the answer is the best point "
            f"of {end.steps:,} steps",
            RuntimeWarning,
            stacklevel=5,
        )
    return Outcome(
        planned=planned,
        program=emit(planned),
        solution=solution,
        report=kkt,
        wall_s=time.perf_counter() - began,
        shown=values(planned.bound, solution.variables, lets_shown, seed=planned.seed),
        heldout=held_out(planned, solution),
    )


def in_train_mode(
    planned: Planned,
    progress: Callable[[Progress], None] | None = None,
    *,
    show: Iterable[str] = (),
    sensitive: bool = False,
) -> Outcome:
    """A solve of a model some of whose nets were bound in train mode: by steps of Adam.

    Raises F0805 for statements about new rows that need answers on other rows.
    """
    from fccomodel.execution.training.errors import optimizer as errors
    from fccomodel.execution.training.recipe import Recipe, adam

    for name in ("margin", "population"):
        if planned.options.get(name, (None, ""))[0] not in (None, False):
            refuse(errors.not_in_train_mode(name), source=planned.problem.source)
    if planned.ranks:
        from fccomodel.execution.errors import of_one_process

        refuse(of_one_process("A solve of nets in train mode"), source=planned.problem.source)
    recipe = Recipe(optimizer=adam)
    return trained(with_criterion(planned), recipe, progress, show=show, sensitive=sensitive)


def with_criterion(planned: Planned) -> Planned:
    """The plan with an algorithm whose gradient another optimizer can step by.

    If nobody named an algorithm, and that of the plan is biased or has no criterion,
    ``FALLBACK_ALGORITHM`` takes its place. Raises F0826 if the algorithm that was named has none.
    """
    from fccomodel.execution.training.criterion import suitable
    from fccomodel.program.errors import criterion_algorithm

    plan = planned.plan
    has_one = suitable(plan.algorithm_record)
    if _named(planned):
        if not has_one:
            refuse(criterion_algorithm(plan.title, having_criterion()), source=planned.problem.source)
        return planned
    if has_one and plan.algorithm not in BIASED:
        return planned
    return replan(planned, {"algorithm": (FALLBACK_ALGORITHM, CRITERION), "unverified": (True, CRITERION)})


def having_criterion() -> list[str]:
    """The algorithms that have a criterion."""
    from fccomodel import algorithms
    from fccomodel.execution.training.criterion import suitable

    return [name for name, record in algorithms.all().items() if suitable(record)]


def _named(planned: Planned) -> bool:
    """Whether the call, the command or the model names the algorithm. (A user's default is no demand.)"""
    return planned.options["algorithm"][1] in (options.KEYWORD, options.COMMAND, options.BLOCK)


@quoted
def _run(
    planned: Planned, recipe: Recipe, progress: Callable[[Progress], None] | None, until: float
) -> Trained:
    """The training loop within the budget."""

    from fccomodel.execution.run.machine import interruptible
    from fccomodel.execution.training.errors import optimizer as errors
    from fccomodel.execution.training.loop import Limits, Loop

    if planned.budget.oracles is not None:
        refuse(errors.no_oracles())
    keeper = _keeper(planned, recipe)
    seconds = budget.training_seconds(planned, until)
    if seconds is not None and keeper is not None:
        seconds = max(seconds - keeper.spent, 0.0)
    end = float("inf") if seconds is None else time.perf_counter() + seconds
    loop = Loop(
        planned.bound,
        planned.plan,
        recipe,
        seed=planned.seed,
        device=options.pick_device(planned.options["device"][0]),
        precision=planned.options["precision"][0],
        limits=Limits(iterations=planned.budget.iterations, until=end),
    )
    start = planned.plan.start
    with interruptible() as asked:
        return loop.run(
            progress=progress,
            stop=asked.is_set,
            carried=None if start is None else start.kept.training,
            keeper=keeper,
        )


def _keeper(planned: Planned, recipe: Recipe) -> TrainingKeeper | None:
    """The keeper that writes and restores the run's checkpoints; None without a folder."""
    from fccomodel.execution.checkpoints import digest
    from fccomodel.execution.checkpoints.identity import identity
    from fccomodel.execution.training.keeping import TrainingKeeper

    if planned.checkpoints is None:
        return None
    bound = planned.bound
    columns = {f"{t}.{c}": values for t, table in bound.tables.items() for c, values in table.columns.items()}
    known = identity(
        bound,
        columns,
        model=planned.compiled.hash,
        algorithm=planned.plan.algorithm,
        chosen=planned.options,
    )
    for name, net in bound.nets.items():
        for parameter, value in net.named_parameters():
            known[f"net {name}.{parameter}"] = digest(value.detach().cpu().numpy())
    known |= {"batch": recipe.batch, "clip": recipe.clip, "ema": recipe.ema}
    return TrainingKeeper(planned.checkpoints.part("training"), known)


def _with_answer(planned: Planned, end: Trained) -> Planned:
    """The plan with the trained nets, and with the optimizer that took the steps."""
    from fccomodel.data.nets import in_train_mode
    from fccomodel.execution.training.looks import evaluated, with_nets

    plan = planned.plan.stepped_by(end.carried.optimizer)
    plan = replace(plan, practice=(*plan.practice, *in_train_mode(planned.bound.nets)))
    bound = with_nets(planned.bound, evaluated(end.modules))
    binding = replace(planned.binding, nets={**planned.binding.nets, **end.modules})
    planned = replace(planned, bound=bound, binding=binding, plan=plan)
    return planned.with_option("device", options.pick_device(planned.options["device"][0]))


def _solution(end: Trained, planned: Planned) -> Solution:
    """The end of the loop as the end of a run."""
    from fccomodel.execution.run import Solution
    from fccomodel.execution.training.looks import evaluated, point
    from fccomodel.plan.starts import EndOfRun

    variables = point(planned.bound, evaluated(end.modules), end.variables)
    kept: dict[str, Any] = {name: value.double().numpy() for name, value in end.variables.items()}
    return Solution(
        variables=variables,
        multipliers=end.multipliers,
        limits={},
        history=end.history,
        iterations=end.steps,
        wall_s=end.seconds,
        stopped=end.stopped,
        ended=end.ended,
        timed=end.timed,
        worked=end.worked,
        notes=end.notes,
        kept=EndOfRun(variables={**kept, **variables}, training=end.carried),
    )
