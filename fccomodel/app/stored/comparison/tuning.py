"""Hyper-parameters from the grids of the papers: all combinations of a small grid, else name by name."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from fccomodel.app.stored.comparison.runs import Hyper, Job, JobOutcome

#: The largest number of combinations that are all tried.
LARGEST_WHOLE_GRID = 64


class Search:
    """The search for one algorithm. Its default values always compete.

    ``chosen`` is the best so far.
    """

    def __init__(self, grid: Mapping[str, Sequence[float]]):
        whole = math.prod(map(len, grid.values())) <= LARGEST_WHOLE_GRID
        by_name: list[Mapping[str, Sequence[float]]] = [{name: values} for name, values in grid.items()]
        if whole:
            self.rounds = [grid]
        else:
            self.rounds = by_name
        self.chosen: Hyper = ()
        self.best = (math.inf, math.inf)
        self.tried: set[Hyper] = set()

    def ask(self) -> list[Hyper]:
        """The candidates of the next round; none once the search is over."""
        if not self.rounds:
            return []
        names = self.rounds.pop(0)
        combinations = (zip(names, values, strict=True) for values in itertools.product(*names.values()))
        points = [
            (),
            *(tuple(sorted({**dict(self.chosen), **dict(pairs)}.items())) for pairs in combinations),
        ]
        points = [point for point in points if point not in self.tried]
        self.tried |= set(points)
        return points

    @property
    def later(self) -> int:
        """The largest number of candidates that later rounds ask for."""
        return sum(math.prod(map(len, names.values())) for names in self.rounds)

    def tell(self, results: Iterable[tuple[Hyper, tuple[float, float]]]) -> None:
        """Take the scores of candidates: lower is better, and of equal ones the first stays."""
        for point, score in results:
            if score < self.best:
                self.best, self.chosen = score, point


def tune(
    grids: Mapping[str, Mapping[str, Sequence[float]]],
    seed: int,
    execute: Callable[[Sequence[Job], int], Sequence[JobOutcome]],
    score: Callable[[JobOutcome], tuple[float, float]],
    chosen: dict[str, Hyper],
) -> None:
    """Put the values chosen for each algorithm into ``chosen``, the best so far after every round.

    A round runs the candidates of all algorithms together by ``execute(jobs, later)``, where
    ``later`` is how many trials may follow.
    """
    searches = {name: Search(grid) for name, grid in grids.items()}
    while True:
        jobs = [
            Job(algorithm=n, seed=seed, hyper=h, trial=True)
            for n, search in searches.items()
            for h in search.ask()
        ]
        if not jobs:
            return
        runs = execute(jobs, sum(search.later for search in searches.values()))
        for name, search in searches.items():
            search.tell((run.job.hyper, score(run)) for run in runs if run.job.algorithm == name)
            chosen[name] = search.chosen
