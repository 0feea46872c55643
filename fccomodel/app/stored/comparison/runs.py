"""A run of one algorithm from one seed, and many such runs, in this process or in others."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, nan
from typing import TYPE_CHECKING, Any, Protocol

from fccomodel import pipeline
from fccomodel.app.stored.comparison import errors
from fccomodel.app.stored.comparison.holdout import hold_out
from fccomodel.app.stored.comparison.variants import ComparedVariant
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.options import Origins
from fccomodel.core.source import Source
from fccomodel.data.bound import Bound

if TYPE_CHECKING:
    from fccomodel.execution.run import Checkpoints, Solution

#: The origin of options that tuning chose.
TUNED = "tuned"
#: Hyper-parameters as pairs of a name and a value.
Hyper = tuple[tuple[str, float], ...]


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run to make, with the algorithm by its label.

    A trial solves on the rows that are not held out, and is judged by those that are.
    """

    algorithm: str
    seed: int
    hyper: Hyper = ()
    trial: bool = False


@dataclass(frozen=True, kw_only=True)
class JobOutcome:
    """The outcome of a job. Every value is of the problem as written, in float64.

    objective    on the rows solved on; of a trial on the rows held out
    violation    the largest one, on the rows solved on
    kkt          the ε of the KKT report
    oracles      the oracle calls of the solver
    seconds      the time of the solver
    iterations   the steps of the solver
    stopped      why the run ended
    values       the values of the lets in ``show``
    test         objective, violation, constraints and lets on the test rows, or None
    history      an entry for each stage of the solver
    error        why there is no answer, or ""; the numbers are then NaN
    """

    job: Job
    objective: float = nan
    violation: float = nan
    kkt: float = nan
    oracles: float = nan
    seconds: float = nan
    iterations: int = 0
    stopped: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    test: Mapping[str, Any] | None = None
    history: Sequence[Mapping[str, Any]] = ()
    error: str = ""


class Records(Protocol):
    """Finished runs by their jobs, and where the others keep their state."""

    def read(self, job: Job) -> JobOutcome | None:
        """The run if it is finished, else None."""

    def write(self, run: JobOutcome) -> None:
        """Keep a finished run."""

    def place(self, job: Job) -> Checkpoints:
        """The folder in which a run stores its state."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """Everything that all runs share. A worker gets it once.

    chosen       options with their origins
    variants     algorithms by their labels
    show         names of the lets to evaluate
    test         the condition of the rows that judge every answer, or None
    validation   the condition of the rows that judge trials, or the share of rows to hold out
    split_seed   chooses the rows if ``validation`` is a share
    kept         finished runs, and folders for the state of others
    """

    source: Source
    binding: pipeline.Binding
    chosen: Origins
    variants: Mapping[str, ComparedVariant] = field(default_factory=dict)
    show: tuple[str, ...] = ()
    test: str | None = None
    validation: str | float | None = None
    split_seed: int = 0
    kept: Records | None = None

    @property
    def ranks(self) -> bool:
        """Whether every run is one of several ranks."""
        return bool(self.chosen.get("ranks", (False, ""))[0])


class Bench:
    """The compiled model, with its data bound once for each choice of rows."""

    def __init__(self, task: Task, compiled: pipeline.Compiled | None = None, bound: Bound | None = None):
        self.task = task
        self.compiled = compiled or pipeline.compile_model(task.source)
        self.parts: dict[tuple[int, bool], tuple[Bound, Bound | None]] = {}
        if bound is not None:
            self.parts[0, False] = bound, None

    def bound(self, job: Job) -> tuple[Bound, Bound | None]:
        """The rows to solve on, and those held out.

        A net's first weights come from the seed, so a model with nets is bound for each seed.
        """
        seed = job.seed if self.compiled.problem.nets else 0
        if (seed, job.trial) not in self.parts:
            self.parts = {key: part for key, part in self.parts.items() if key[0] == seed}
            self.parts[seed, job.trial] = self._bind(seed, job.trial)
        return self.parts[seed, job.trial]

    def _bind(self, seed: int, trial: bool) -> tuple[Bound, Bound | None]:
        validation, binding = self.task.validation, self.task.binding
        if not trial:
            return pipeline.bind(self.compiled, binding, seed=seed), None
        if isinstance(validation, str):
            inside = pipeline.bind(self.compiled, binding, seed=seed, without=validation)
            return inside, self.elsewhere(inside, validation)
        assert validation is not None
        return hold_out(pipeline.bind(self.compiled, binding, seed=seed), validation, self.task.split_seed)

    def elsewhere(self, inside: Bound, where: str) -> Bound:
        """Other rows, with the scaling and the categories of those solved on."""
        encoding = {name: table.encoding for name, table in inside.tables.items()}
        return pipeline.bind(self.compiled, self.task.binding, encoding=encoding, where=where)

    def bind_all(self) -> None:
        """Bind the rows of tests and trials, so that errors in their conditions come before the first run."""
        if self.task.validation is not None:
            self.bound(Job(algorithm="", seed=self.task.split_seed, trial=True))
        _ = self.test

    @cached_property
    def test(self) -> Bound | None:
        """The rows to evaluate every answer on, or None."""
        where = self.task.test
        if where is None:
            return None
        return self.elsewhere(self.bound(Job(algorithm="", seed=0))[0], where)

    def plan(self, job: Job) -> pipeline.Planned:
        """The plan of a job."""
        chosen: Origins = {**self.task.chosen, "seed": (job.seed, TUNED if job.trial else "compare")}
        variant = self.task.variants.get(job.algorithm) or ComparedVariant(algorithm=job.algorithm)
        chosen |= {"algorithm": (variant.algorithm, "compare")} | {
            name: (value, TUNED) for name, value in job.hyper
        }
        chosen |= {name: (value, variant.label) for name, value in variant.options}
        return pipeline.plan(self.compiled, self.task.binding, chosen, bound=self.bound(job)[0])

    def run(self, job: Job) -> JobOutcome | None:
        """Solve and judge; None if Ctrl-C cut it short. Raises F0713 if a rank is lost."""
        from fccomodel.execution import ranks
        from fccomodel.execution.errors import RANK_LOST

        kept = self.task.kept
        if kept is not None and (done := kept.read(job)) is not None:
            return done
        try:
            with ranks.taken(job) if self.task.ranks else nullcontext():
                solution = self.solution(job)
                if solution.interrupted:
                    return None
                run = self.judge(job, solution)
            if kept is not None:
                kept.write(run)
            return run
        except FccoError as error:
            first = error.diagnostics[0]
            if first.code == RANK_LOST.id:
                raise
            return JobOutcome(job=job, error=f"{first.code}: {first.message}")

    def solution(self, job: Job) -> Solution:
        """The end of the job's run."""
        kept = self.task.kept
        planned = self.plan(job)
        if kept is not None:
            planned = replace(planned, checkpoints=kept.place(job))
        return pipeline.run(planned, watched=not job.trial)[2]

    def part(self, job: Job) -> None:
        """The part of this rank in a run that rank 0 judges."""
        from fccomodel.execution import ranks

        with suppress(FccoError, ranks.Done):
            self.solution(job)

    def judge(self, job: Job, solution: Any) -> JobOutcome:
        """The values of the answer, computed from the problem and the data alone."""
        from fccomodel import report as kkt
        from fccomodel.evaluation.values import lets, level, values

        inside, held = self.bound(job)
        point, last = solution.variables, solution.history[-1] if solution.history else {}
        used = {
            "oracles": last.get("oracles", nan),
            "seconds": last.get("seconds", nan),
            "iterations": solution.iterations,
        }
        if held is not None:
            objective = level(held, point, seed=job.seed).objective
            return JobOutcome(
                job=job, objective=objective, violation=level(inside, point, seed=job.seed).violation, **used
            )
        report = kkt.report(inside, point, multipliers=solution.multipliers, seed=job.seed)
        lets_shown = lets(inside.problem, self.task.show)
        test: dict[str, Any] | None = None
        if self.test is not None:
            there = level(self.test, point, seed=job.seed)
            test = {
                "objective": there.objective,
                "violation": there.violation,
                "constraints": dict(there.constraints),
            }
            test["values"] = values(self.test, point, lets(self.test.problem, self.task.show), seed=job.seed)
        return JobOutcome(
            job=job,
            objective=report.objective,
            violation=report.feasibility,
            kkt=report.epsilon,
            stopped=solution.stopped,
            values=values(inside, point, lets_shown, seed=job.seed),
            test=test,
            history=tuple(solution.history),
            **used,
        )


# ---------------------------------------------------------------------------------------- processes
_bench: Bench | None = None


def _start(task: bytes) -> None:
    """Start a worker: it ignores Ctrl-C, which its parent handles, and uses one thread."""
    import torch

    global _bench
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    _bench = Bench(pickle.loads(task))  # noqa: S301 - written by our own parent


def _work(job: Job) -> JobOutcome | None:
    """A run in a worker."""
    assert _bench is not None
    return _bench.run(job)


class Workers:
    """Runs jobs one after the other, or in ``count`` processes, with the same numbers. A context manager."""

    def __init__(self, bench: Bench, count: int):
        self.bench, self.pool = bench, None
        if count > 1:
            try:
                task = pickle.dumps(bench.task)
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                raise FccoError([errors.data_not_sent(error)]) from None
            spawn = multiprocessing.get_context("spawn")
            self.pool = ProcessPoolExecutor(count, mp_context=spawn, initializer=_start, initargs=(task,))
        self.others = set(multiprocessing.active_children())

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        if self.pool is None:
            return
        self.pool.shutdown(wait=error[0] is None, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - self.others:
            child.terminate()

    def each(self, jobs: Sequence[Job]) -> Iterator[JobOutcome]:
        """The runs as they end. Raises KeyboardInterrupt if one was cut short."""
        if self.pool is None:
            for job in jobs:
                yield _whole(self.bench.run(job))
            return
        with one_thread():
            futures = [self.pool.submit(_work, job) for job in jobs]
        try:
            for future in as_completed(futures):
                yield _whole(future.result())
        except BrokenProcessPool:
            raise FccoError([errors.process_ended()]) from None


@contextmanager
def one_thread() -> Iterator[None]:
    """Processes that start in this block use one thread each for linear algebra (see ``_start``)."""
    before = dict(os.environ)
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _whole(run: JobOutcome | None) -> JobOutcome:
    """The run. Raises KeyboardInterrupt if it was cut short."""
    if run is None:
        raise KeyboardInterrupt
    return run


def cores() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def score(run: JobOutcome, sense: str, tolerance: float) -> tuple[float, float]:
    """The score of a run; lower is better.

    Points whose violation is within the tolerance are ordered by objective, before all others, which
    are ordered by violation.
    """
    if run.error or run.objective != run.objective:
        return inf, inf
    objective = run.objective if sense == "minimize" else -run.objective
    if run.violation <= tolerance:
        return (0.0, objective)
    return (run.violation, objective)
