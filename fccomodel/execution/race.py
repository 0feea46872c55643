"""A race: a few algorithms take a small share of the budget each, from the same start; the best goes on.

They are compared by merit: the objective (minimised) plus the violation times twice the largest
multiplier that any of them found. If merits are level, the KKT residual of the problem as written
decides. Shares are parts of the budget in its own unit, so a race with a counted budget repeats.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fccomodel.core.diagnostics import FccoError
from fccomodel.core.options import Budget
from fccomodel.execution.run import Solution
from fccomodel.report import KKTReport

#: The share of the budget that each algorithm gets.
SHARE = 0.05
#: The difference up to which merits are level, relative to the best ...
LEVEL = 1e-3
#: ... or to this merit, whichever is larger.
SMALLEST_MERIT = 1e-2


@dataclass(frozen=True, kw_only=True)
class Lap:
    """The progress of one algorithm in a race.

    objective  in the model's sense
    violation  the largest
    kkt        the KKT residual by the problem's scales
    failed     why it came to no point, or an empty text
    """

    algorithm: str
    iterations: int = 0
    oracles: float = 0.0
    seconds: float = 0.0
    objective: float = math.nan
    violation: float = math.nan
    kkt: float = math.nan
    merit: float = math.inf
    failed: str = ""

    def __str__(self) -> str:
        if self.failed:
            return f"{self.algorithm}: {self.failed}"
        far = f"objective {self.objective:.6g}, violation {self.violation:.1e}, KKT {self.kkt:.1e}"
        return f"{self.algorithm}: {far}, after {self.iterations:,} steps, {self.oracles:.3g} oracle calls"


@dataclass(frozen=True, kw_only=True)
class Race:
    """The laps, the winner, and why it won. After an ``interrupted`` race there is no further run."""

    laps: tuple[Lap, ...]
    winner: str
    reason: str
    interrupted: bool = False

    def lines(self) -> list[str]:
        """The race in words."""
        went = "went on from its point"
        if self.interrupted:
            went = "had come furthest when it was interrupted"
        return [*map(str, self.laps), f"{self.winner} {went}: {self.reason}"]


@dataclass(frozen=True, kw_only=True)
class Held:
    """A race that has been held, and where the winner's lap ended."""

    race: Race
    solution: Solution | None = None


#: A lap: from an algorithm and its share of the budget to where it ended and the report on that point.
Run = Callable[[str, Budget], tuple[Solution, KKTReport]]


def hold(entrants: Sequence[str], budget: Budget, run: Run, sign: int) -> Held:
    """Run the algorithms one after another, and judge them. ``sign``: -1 if the objective is maximised.

    If none came to a point, the error that stopped the last one is raised.
    """
    if len(entrants) == 1:
        return Held(race=Race(laps=(), winner=entrants[0], reason="no other algorithm suits the problem"))
    solutions: dict[str, tuple[Solution, KKTReport]] = {}
    laps: list[Lap] = []
    stopped: FccoError | None = None
    for name in entrants:
        began = time.perf_counter()
        try:
            solutions[name] = run(name, share(budget))
        except FccoError as error:
            stopped = error
            laps.append(Lap(algorithm=name, failed=error.diagnostics[0].message))
            continue
        laps.append(_lap(name, *solutions[name], time.perf_counter() - began))
        if solutions[name][0].interrupted:
            break
    if not solutions and stopped is not None:
        raise stopped
    multipliers = [row[1] for _, kkt in solutions.values() for row in kkt.constraints.values()]
    weight = 2 * max(map(abs, multipliers), default=0.5)
    laps = [_judged(lap, sign, weight) for lap in laps]
    winner, reason = best(laps)
    interrupted, solution = any(s.interrupted for s, _ in solutions.values()), solutions[winner][0]
    if interrupted:
        solution = replace(solution, ended="interrupted", stopped="interrupted")
    return Held(
        race=Race(laps=tuple(laps), winner=winner, reason=reason, interrupted=interrupted), solution=solution
    )


def best(laps: Sequence[Lap]) -> tuple[str, str]:
    """The algorithm with the least merit, or with the least KKT residual among level merits; and why."""
    least = min(lap.merit for lap in laps)
    near = [lap for lap in laps if lap.merit <= least + LEVEL * max(abs(least), SMALLEST_MERIT)]
    if len(near) == 1 or not math.isfinite(least):
        return near[0].algorithm, "the least merit (objective and violation)"
    first = min(near, key=lambda lap: lap.kkt if math.isfinite(lap.kkt) else math.inf)
    return first.algorithm, f"the least KKT residual of {len(near)} whose merits are level"


def share(budget: Budget) -> Budget:
    """The budget of one lap: at least one step."""
    return Budget(
        seconds=None if budget.seconds is None else SHARE * budget.seconds,
        iterations=None if budget.iterations is None else max(1, round(SHARE * budget.iterations)),
        oracles=None if budget.oracles is None else float(max(1, math.floor(SHARE * budget.oracles))),
    )


def left(budget: Budget, race: Race, seconds: float) -> Budget:
    """The budget that remains for the winner after this many seconds: at least one step."""
    steps, calls = sum(lap.iterations for lap in race.laps), sum(lap.oracles for lap in race.laps)
    return Budget(
        seconds=None if budget.seconds is None else max(budget.seconds - seconds, SHARE * budget.seconds),
        iterations=None if budget.iterations is None else max(1, budget.iterations - steps),
        oracles=None if budget.oracles is None else float(max(1, math.floor(budget.oracles - calls))),
    )


def _lap(name: str, solution: Solution, kkt: KKTReport, seconds: float) -> Lap:
    """The progress of an algorithm, without its merit."""
    return Lap(
        algorithm=name,
        iterations=solution.iterations,
        oracles=solution.oracles,
        seconds=seconds,
        objective=kkt.objective,
        violation=kkt.feasibility,
        kkt=float(kkt.relative.get("epsilon", kkt.epsilon)),
    )


def _judged(lap: Lap, sign: int, weight: float) -> Lap:
    """The lap with its merit."""
    if lap.failed:
        return lap
    merit = sign * lap.objective + weight * lap.violation
    return replace(lap, merit=merit if math.isfinite(merit) else math.inf)
