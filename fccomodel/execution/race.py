"""A race: a few algorithms take a small share of the budget each, from the same start; the one that
came furthest goes on.

They are compared by merit, the objective (minimised) plus the violation times twice the largest
multiplier that any found, merits are level by the KKT residual of the problem as written. Shares
are parts of the budget in its own unit: of a counted budget the same race ends the same way.
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

#: of the budget, for each
SHARE = 0.05
#: merits that differ by no more, relative to the best (or to ``LEAST``), are level
LEVEL, LEAST = 1e-3, 1e-2


@dataclass(frozen=True, kw_only=True)
class Lap:
    """How far one of them came: objective in the model's sense, largest violation, KKT residual by the
    problem's scales, merit; ``failed`` is why it came nowhere."""

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
    """Who ran, how far each came, who goes on from its point, and why; ``interrupted``: nobody does."""

    laps: tuple[Lap, ...]
    winner: str
    reason: str
    interrupted: bool = False

    def lines(self) -> list[str]:
        """The race in words."""
        if self.interrupted:
            went = "had come furthest when it was interrupted"
        else:
            went = "went on from its point"
        return [*map(str, self.laps), f"{self.winner} {went}: {self.reason}"]


@dataclass(frozen=True, kw_only=True)
class Held:
    """A race that has been held, and where its winner stands."""

    race: Race
    solution: Solution | None = None


#: a lap: the algorithm, its share of the budget; where it ended, and the report on that point
Run = Callable[[str, Budget], tuple[Solution, KKTReport]]


def hold(entrants: Sequence[str], budget: Budget, run: Run, sign: int) -> Held:
    """Lets them run one after another and judges them; ``sign``: -1 where the objective is maximised.
    Raises what stopped the last where none came to a point."""
    if len(entrants) == 1:
        return Held(race=Race(laps=(), winner=entrants[0], reason="no other algorithm suits the problem"))
    found: dict[str, tuple[Solution, KKTReport]] = {}
    laps: list[Lap] = []
    stopped: FccoError | None = None
    for name in entrants:
        began = time.perf_counter()
        try:
            found[name] = run(name, share(budget))
        except FccoError as error:
            stopped = error
            laps.append(Lap(algorithm=name, failed=error.diagnostics[0].message))
            continue
        laps.append(_lap(name, *found[name], time.perf_counter() - began))
        if found[name][0].interrupted:
            break
    if not found and stopped is not None:
        raise stopped
    multipliers = [row[1] for _, kkt in found.values() for row in kkt.constraints.values()]
    weight = 2 * max(map(abs, multipliers), default=0.5)
    laps = [_judged(lap, sign, weight) for lap in laps]
    winner, reason = best(laps)
    interrupted, solution = any(s.interrupted for s, _ in found.values()), found[winner][0]
    if interrupted:
        solution = replace(solution, ended="interrupted", stopped="interrupted")
    return Held(
        race=Race(laps=tuple(laps), winner=winner, reason=reason, interrupted=interrupted), solution=solution
    )


def best(laps: Sequence[Lap]) -> tuple[str, str]:
    """The one of the least merit, of those that are level the one of the least KKT residual; and why."""
    least = min(lap.merit for lap in laps)
    near = [lap for lap in laps if lap.merit <= least + LEVEL * max(abs(least), LEAST)]
    if len(near) == 1 or not math.isfinite(least):
        return near[0].algorithm, "the least merit (objective and violation)"
    first = min(near, key=lambda lap: lap.kkt if math.isfinite(lap.kkt) else math.inf)
    return first.algorithm, f"the least KKT residual of {len(near)} whose merits are level"


def share(budget: Budget) -> Budget:
    """What one of them may use, one step at least."""
    return Budget(
        seconds=None if budget.seconds is None else SHARE * budget.seconds,
        iterations=None if budget.iterations is None else max(1, round(SHARE * budget.iterations)),
        oracles=None if budget.oracles is None else float(max(1, math.floor(SHARE * budget.oracles))),
    )


def left(budget: Budget, race: Race, seconds: float) -> Budget:
    """What remains for the winner, one step at least, after so many seconds."""
    steps, calls = sum(lap.iterations for lap in race.laps), sum(lap.oracles for lap in race.laps)
    return Budget(
        seconds=None if budget.seconds is None else max(budget.seconds - seconds, SHARE * budget.seconds),
        iterations=None if budget.iterations is None else max(1, budget.iterations - steps),
        oracles=None if budget.oracles is None else float(max(1, math.floor(budget.oracles - calls))),
    )


def _lap(name: str, solution: Solution, kkt: KKTReport, seconds: float) -> Lap:
    if solution.history:
        calls = float(solution.history[-1]["oracles"])
    else:
        calls = 0.0
    return Lap(
        algorithm=name,
        iterations=solution.iterations,
        oracles=calls,
        seconds=seconds,
        objective=kkt.objective,
        violation=kkt.feasibility,
        kkt=float(kkt.relative.get("epsilon", kkt.epsilon)),
    )


def _judged(lap: Lap, sign: int, weight: float) -> Lap:
    """With its merit."""
    if lap.failed:
        return lap
    merit = sign * lap.objective + weight * lap.violation
    return replace(lap, merit=merit if math.isfinite(merit) else math.inf)
