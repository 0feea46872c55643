"""All runs of a comparison: the rounds of tuning, then every algorithm from every seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fccomodel import algorithms as registry
from fccomodel.app.stored.comparison.runs import Bench, Hyper, Job, JobOutcome, Workers
from fccomodel.app.stored.comparison.tuning import tune
from fccomodel.app.stored.comparison.variants import ComparedVariant


@dataclass(frozen=True, kw_only=True)
class ComparisonProgress:
    """The progress of a comparison.

    done   runs that are finished
    total  how many there will be; at most, while it tunes
    run    the last one
    """

    done: int
    total: int
    run: JobOutcome


class Rounds:
    """The runs done so far, by their jobs, and the hyper-parameters ``chosen`` for each algorithm."""

    def __init__(
        self,
        bench: Bench,
        algorithms: Sequence[str],
        seeds: Sequence[int],
        progress: Callable[[ComparisonProgress], None] | None = None,
    ):
        self.bench, self.algorithms, self.seeds, self.progress = bench, algorithms, seeds, progress
        self.runs: dict[Job, JobOutcome] = {}
        self.chosen: dict[str, Hyper] = {}

    def run(self, processes: int, score: Callable[[JobOutcome], tuple[float, float]] | None = None) -> bool:
        """Run all, after tuning by ``score`` if there is one. Returns whether Ctrl-C ended it."""
        try:
            with Workers(self.bench, processes) as workers:
                if score is not None:
                    self.tune(workers, score)
                self.execute(
                    workers, [self.job(name, seed) for seed in self.seeds for name in self.algorithms]
                )
        except KeyboardInterrupt:
            return True
        return False

    def tune(self, workers: Workers, score: Callable[[JobOutcome], tuple[float, float]]) -> None:
        """Choose hyper-parameters from the grids of the papers, at the first seed.

        Those that a variant sets stay.
        """
        grids = {name: self.grid(self.bench.task.variants[name]) for name in self.algorithms}
        last = len(self.seeds) * len(self.algorithms)
        tune(
            grids,
            self.seeds[0],
            lambda wanted, later: self.execute(workers, wanted, later + last),
            score,
            self.chosen,
        )

    def grid(self, variant: ComparedVariant) -> dict[str, Sequence[float]]:
        """The grid of the algorithm's paper, without the options that the variant sets."""
        own = registry.all()[variant.algorithm].grid
        return {name: values for name, values in own.items() if name not in dict(variant.options)}

    def job(self, name: str, seed: int) -> Job:
        """The run of an algorithm from a seed, with its chosen hyper-parameters."""
        return Job(algorithm=name, seed=seed, hyper=self.chosen.get(name, ()))

    def execute(self, workers: Workers, wanted: Sequence[Job], later: int = 0) -> list[JobOutcome]:
        """The runs of these jobs. ``later``: how many more may follow."""
        total = len(self.runs) + len(wanted) + later
        for run in workers.each(wanted):
            self.runs[run.job] = run
            if self.progress is not None:
                self.progress(ComparisonProgress(done=len(self.runs), total=total, run=run))
        return [self.runs[job] for job in wanted]
