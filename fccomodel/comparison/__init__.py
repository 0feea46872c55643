"""Algorithms side by side: the same model, data, oracle budget and seeds; hyper-parameters as given or tuned on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fccomodel import algorithms as registry
from fccomodel import options, pipeline
from fccomodel.bound import Bound
from fccomodel.comparison.holdout import SHARE
from fccomodel.comparison.record import Comparison
from fccomodel.comparison.runs import Bench, Hyper, Job, Run, Task, Workers, cores, score
from fccomodel.comparison.tuning import tune
from fccomodel.diagnostics import FccoError
from fccomodel.files import fail
from fccomodel.values import lets

__all__ = ["Comparison", "Step", "compare"]

BUDGET = "1e6oracles"
TOLERANCE = 1e-3
#: errors of a plan that say what an algorithm lacks on a model
LACKING = ("F0604", "F0607")


@dataclass(frozen=True, kw_only=True)
class Step:
    """How far a comparison is: runs done, how many there will be (at most, while it tunes), and the last one."""

    done: int
    total: int
    run: Run


def compare(
    compiled: pipeline.Compiled,
    binding: pipeline.Binding,
    *,
    algorithms: Sequence[str],
    seeds: int | Sequence[int] = 5,
    chosen: options.Origins | None = None,
    tuning: bool = False,
    validation: str | float | None = None,
    test: str | None = None,
    show: Sequence[str] = (),
    reference: float | None = None,
    tolerance: float = TOLERANCE,
    jobs: int | None = None,
    bound: Bound | None = None,
    progress: Callable[[Step], None] | None = None,
) -> Comparison:
    """Run every algorithm from every seed, and judge the answers by the problem as written (the KKT report).

    algorithms   identifiers; one that the model refuses is recorded with what it lacks
    seeds        how many (0, 1, ...), or which
    chosen       options of all runs, their budget among them (10^6 oracle calls unless given)
    tuning       choose hyper-parameters from the grids of the papers, at the first seed and the same budget
    validation   what tuning judges by: a condition on rows, or the share of rows to hold out (a fifth)
    test         a condition on rows to evaluate every answer on
    reference    the known optimal value, for gaps         tolerance   the violation that counts as none
    jobs         processes; as many as there are processors         bound   the data, where they are bound already

    Ctrl-C ends it with the runs that are done.
    """
    given = {name: value for name, value in (chosen or {}).items() if name not in ("algorithm", "seed")}
    chosen = {"budget": (BUDGET, options.AUTOMATIC), **given, "polish": (False, options.AUTOMATIC)}
    seeds = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    names = tuple(dict.fromkeys(algorithms))
    if not names or not seeds:
        raise fail("F0805", "There is nothing to compare", fix="Name algorithms and seeds: --algorithms sox,sonex --seeds 5.")
    lets(compiled.problem, show)
    task = Task(
        source=compiled.source,
        binding=binding,
        chosen=chosen,
        show=tuple(show),
        test=test,
        validation=(SHARE if validation is None else validation) if tuning else None,
        split_seed=seeds[0],
    )
    bench = Bench(task, compiled, bound)
    bench.bind_all()
    refused: dict[str, str] = {}
    unverified: dict[str, str] = {}
    for name in names:
        found_lacking(bench, Job(algorithm=name, seed=seeds[0]), refused, unverified)
    able = [name for name in names if name not in refused]
    most = len(seeds) * len(able)
    count = max(1, min(jobs or (1 if options.pick_device(_value(chosen, "device", "auto")) != "cpu" else cores()), most))
    runs: dict[Job, Run] = {}
    found: dict[str, Hyper] = {}
    interrupted = False

    def execute(workers: Workers, wanted: Sequence[Job], later: int = 0) -> list[Run]:
        total = len(runs) + len(wanted) + later
        for run in workers.each(wanted):
            runs[run.job] = run
            if progress is not None:
                progress(Step(done=len(runs), total=total, run=run))
        return [runs[job] for job in wanted]

    try:
        with Workers(bench, count) as workers:
            if tuning:
                tune(
                    {name: registry.all()[name].grid for name in able},
                    seeds[0],
                    lambda wanted, trials: execute(workers, wanted, trials + most),
                    lambda run: score(run, compiled.problem.objective.sense, tolerance),
                    found,
                )
            execute(workers, [Job(algorithm=n, seed=seed, hyper=found.get(n, ())) for seed in seeds for n in able])
    except KeyboardInterrupt:
        interrupted = True
    order = sorted(runs.values(), key=lambda run: (names.index(run.job.algorithm), run.job.seed))
    return Comparison(
        model=compiled.problem.name,
        sense=compiled.problem.objective.sense,
        constrained=bool(compiled.problem.constraints),
        algorithms=names,
        seeds=seeds,
        runs=tuple(run for run in order if not run.job.trial),
        budget=str(chosen["budget"][0]),
        tolerance=tolerance,
        refused=refused,
        unverified=unverified,
        chosen=found,
        trials=tuple(run for run in order if run.job.trial),
        reference=reference,
        test=test,
        interrupted=interrupted,
    )


def found_lacking(bench: Bench, job: Job, refused: dict[str, str], unverified: dict[str, str]) -> None:
    """Notes what an algorithm lacks on this model, refused for it or run all the same; every other error is raised."""
    try:
        planned = bench.plan(job)
    except FccoError as error:
        if any(d.code not in LACKING for d in error.diagnostics):
            raise
        lacks = [f"{d.message.removeprefix(job.algorithm).strip()}: {d.reason}" for d in error.diagnostics]
        refused[job.algorithm] = " It ".join(lacks)
    else:
        if planned.plan.unverified:
            unverified[job.algorithm] = "; ".join(planned.plan.unverified)


def _value(chosen: options.Origins, name: str, default: Any) -> Any:
    return chosen.get(name, (default, ""))[0]
