"""Algorithms side by side on the same model, data, budget and seeds.

Hyper-parameters are as given, or tuned on held-out rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fccomodel import pipeline
from fccomodel.app.errors import of_solve_alone
from fccomodel.app.stored.comparison import errors, variants
from fccomodel.app.stored.comparison.holdout import SHARE
from fccomodel.app.stored.comparison.record import Comparison
from fccomodel.app.stored.comparison.rounds import ComparisonProgress, Rounds
from fccomodel.app.stored.comparison.runs import Bench, Job, Task, cores, score
from fccomodel.core import options, process
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.data.bound import Bound
from fccomodel.plan.errors import LACKING

if TYPE_CHECKING:
    from fccomodel.execution.run import Checkpoints

__all__ = ["Comparison", "Contest", "ComparisonProgress", "compare"]

#: The budget of each run, by default.
BUDGET = "1e6oracles"
#: The violation up to which a run counts as feasible, by default.
TOLERANCE = 1e-3


@dataclass(frozen=True, kw_only=True)
class Contest:
    """The algorithms that are compared, and how their answers are judged.

    algorithms   identifiers, with options of their own or without: ``sox(gamma=0.1)``. One that the
                 model refuses is recorded with what it lacks
    seeds        how many (0, 1, ...), or which
    tuning       choose hyper-parameters from the grids of the papers, at the first seed and the same budget
    validation   what tuning judges by: a condition on rows, or the share of rows to hold out (a fifth)
    test         a condition on rows to evaluate every answer on
    show         lets of the model to report
    reference    the known optimal value, for gaps
    tolerance    the violation that counts as none
    """

    algorithms: Sequence[str]
    seeds: int | Sequence[int] = 5
    tuning: bool = False
    validation: str | float | None = None
    test: str | None = None
    show: Sequence[str] = ()
    reference: float | None = None
    tolerance: float = TOLERANCE


def compare(
    compiled: pipeline.Compiled,
    binding: pipeline.Binding,
    contest: Contest,
    *,
    chosen: options.Origins | None = None,
    jobs: int | None = None,
    bound: Bound | None = None,
    checkpoints: Checkpoints | None = None,
    progress: Callable[[ComparisonProgress], None] | None = None,
) -> Comparison:
    """Run every algorithm from every seed, and judge the answers by the problem as written (the KKT
    report).

    chosen       options of all runs, their budget among them (10^6 oracle calls unless given)
    jobs         processes; as many as there are processors
    bound        the data, if they are bound already
    checkpoints  where runs keep their state and their results: runs that are done are not run again

    Ctrl-C ends it with the runs that are done.
    """
    from fccomodel.evaluation.values import lets
    from fccomodel.execution import ranks

    named, seeds = variants.read(contest.algorithms), _seeds(contest.seeds)
    names, validation = tuple(named), contest.validation
    if validation is not None and not contest.tuning:
        refuse(errors.validation_without_tuning())
    if contest.tuning and validation is None:
        validation = SHARE
    if not names or not seeds:
        refuse(errors.nothing_to_compare())
    for name in options.ABOUT_NEW_ROWS:
        if (chosen or {}).get(name, (None, options.USER))[1] != options.USER:
            refuse(of_solve_alone(name, "compare"))
    lets(compiled.problem, contest.show)
    task = Task(
        source=compiled.source,
        binding=binding,
        variants=named,
        chosen=_of_all(chosen or {}),
        show=tuple(contest.show),
        test=contest.test,
        validation=validation,
        split_seed=seeds[0],
    )
    bench = Bench(task, compiled, bound)
    bench.bind_all()
    if checkpoints is not None:
        from fccomodel.app.stored.comparison.checkpoints import ComparisonFolder, begun

        rows = bench.bound(Job(algorithm="", seed=seeds[0]))[0]
        if process.rank() > 0:
            known = ComparisonFolder(checkpoints)
        else:
            known = begun(checkpoints, task, rows, compiled.hash)
        bench.task = replace(task, kept=known)
    refused, unverified = _lacking(bench, names, seeds[0])
    able = [name for name in names if name not in refused]
    sense = compiled.problem.objective.sense
    rounds = Rounds(bench, able, seeds, progress)
    processes = 1
    if not task.ranks:
        processes = max(1, min(jobs or _processes(task.chosen), len(seeds) * len(able)))
    with (
        process.terminable() if checkpoints is not None else nullcontext(),
        ranks.assisted(bench.part) if task.ranks else nullcontext(),
    ):
        judged = (lambda run: score(run, sense, contest.tolerance)) if contest.tuning else None
        interrupted = rounds.run(processes, judged)
    order = sorted(rounds.runs.values(), key=lambda run: (names.index(run.job.algorithm), run.job.seed))
    return Comparison(
        model=compiled.problem.name,
        sense=sense,
        constrained=bool(compiled.problem.constraints),
        algorithms=names,
        seeds=seeds,
        runs=tuple(run for run in order if not run.job.trial),
        budget=str(task.chosen["budget"][0]),
        tolerance=contest.tolerance,
        refused=refused,
        unverified=unverified,
        chosen=rounds.chosen,
        trials=tuple(run for run in order if run.job.trial),
        reference=contest.reference,
        test=contest.test,
        interrupted=interrupted,
    )


def _seeds(given: int | Sequence[int]) -> tuple[int, ...]:
    """The seeds 0, 1, ... of a number, or those of a list. Raises F0805 or F0808 for anything else."""
    if isinstance(given, str) or isinstance(given, bool) or not isinstance(given, int | Sequence | range):
        refuse(errors.not_seeds(str(given)))
    listed = range(given) if isinstance(given, int) else given
    return tuple(options.check_value("seed", seed, options.KEYWORD) for seed in listed)


def _of_all(chosen: options.Origins) -> options.Origins:
    """The options that all runs share: those given, a budget of oracle calls, and no finish.

    A finish is not part of an algorithm. Raises F0805 for an option that a comparison sets itself,
    unless it comes from the model or the user's own defaults.
    """
    for name in ("algorithm", "seed", "polish"):
        value, origin = chosen.get(name, (None, ""))
        if origin in (options.COMMAND, options.KEYWORD) and value is not False:
            refuse(errors.set_by_comparison(name, value))
    common_options = {
        name: value
        for name, value in chosen.items()
        if name not in ("algorithm", "seed", *options.ABOUT_NEW_ROWS)
    }
    return {"budget": (BUDGET, options.AUTOMATIC), **common_options, "polish": (False, options.AUTOMATIC)}


def _processes(chosen: options.Origins) -> int:
    """The number of processes: one for each processor, or one alone with an accelerator."""
    if options.pick_device(chosen.get("device", ("auto", ""))[0]) == "cpu":
        return cores()
    return 1


def _lacking(bench: Bench, names: Sequence[str], seed: int) -> tuple[dict[str, str], dict[str, str]]:
    """The reasons why algorithms do not fit this model, by name: of those refused for it, and of those
    that run.

    Other errors are raised.
    """
    refused: dict[str, str] = {}
    unverified: dict[str, str] = {}
    for name in names:
        try:
            planned = bench.plan(Job(algorithm=name, seed=seed))
        except FccoError as error:
            if any(d.code not in LACKING for d in error.diagnostics):
                raise
            refused[name] = " It ".join(
                f"{d.message.removeprefix(name).strip()}: {d.reason}" for d in error.diagnostics
            )
        else:
            if planned.plan.unverified:
                unverified[name] = "; ".join(planned.plan.unverified)
    return refused, unverified
