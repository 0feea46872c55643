"""How far an answer is from the best one for all rows that there could be, where those at hand are a
sample: by bagging.

x_n is optimal for the n rows at hand (F_n), x* for all rows that they are drawn from (F). For b = 1
.. B as many rows are drawn from those at hand with replacement, and x_b is optimal for them. Then

    G_b = F_n(x_b) - F_n(x_n)    is to the rows at hand what    F(x_n) - F(x*)    is to all rows:

the next of B + 1 such draws lies between the j-th smallest and the j-th largest of the others with
probability 1 - 2j/(B + 1). Rows for which there is no answer count as a draw of infinity. Draws are
known to the accuracy of their answers, by which the interval is wider: where optima do not move
with the rows (at a kink, say) it is all that is left. Where no constraint is of the rows, a gap is
at least 0, and the interval begins there: draws of gaps are too large where few rows have the
weight, as in tail means, whose kinks are closer together on rows that are drawn twice; so it holds
with that confidence or more. Asymptotic, for rows that are drawn independently and optima that are
unique (A. Shapiro, Asymptotic analysis of stochastic programs, Annals of Operations Research 30,
1991; A. Eichhorn, W. Römisch, Stochastic integer programming: limit theorems and confidence
intervals, Mathematics of Operations Research 32, 2007; of bagging in gap estimates H. Lam, H. Qian,
Assessing solution quality in stochastic optimization via bootstrap aggregating, Winter Simulation
Conference, 2018).

Rows that the answer was not found on give a one-sided bound by two replications: halves k = 1, 2 of
them have optima x_k, and G_k = F_k(x) - F_k(x_k), with the standard error s_k, is in the mean at
least the gap, as the mean of optimal values is at most the optimal value. So the gap is at most
(G_1 + G_2)/2 + q (s_1^2 + s_2^2)^(1/2) / 2, q a quantile of Student's distribution; that asks
nothing of how x was found (W.-K. Mak, D. Morton, R. Wood, Monte Carlo bounding techniques for
determining solution quality in stochastic programs, Operations Research Letters 24, 1999; G.
Bayraksan, D. Morton, Assessing solution quality in stochastic programs, Mathematical Programming
108, 2006, its A2RP).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

#: Of a two-sided interval: between the smallest and the largest of so many draws it has this confidence.
LEVEL, ENOUGH = 0.95, 39
#: Fewer draws say nothing worth saying.
FEWEST = 9
#: To which objectives of answers are known, relative to their size above 1.
ACCURACY = 1e-6


@dataclass(frozen=True, kw_only=True)
class Population:
    """The gap of an answer to the best objective for new rows, in the direction of the sense (below 0:
    by breaking constraints).

    low, high   an interval of confidence ``level``, from 0 where no constraint is of the rows; NaN
                where ``why`` says why not
    mean        of the draws
    optimism    by how much the objective is worse for new rows than for those at hand, in the mean
    solves      on resampled rows, in ``seconds``; ``failed`` of them had no answer
    convex      they find optima; else the best points that runs like this one find
    most        a one-sided bound of confidence ``LEVEL`` by two replications on rows held out; NaN
                where there is none
    """

    low: float = math.nan
    high: float = math.nan
    level: float = 0.0
    mean: float = math.nan
    optimism: float = math.nan
    solves: int = 0
    failed: int = 0
    seconds: float = 0.0
    convex: bool = True
    most: float = math.nan
    why: str = ""


def population(
    gaps: np.ndarray,
    optimism: np.ndarray,
    *,
    failed: int,
    seconds: float,
    convex: bool,
    accuracy: float = 0.0,
    least: float = -math.inf,
) -> Population:
    """The interval from the draws of gaps, each known to ``accuracy``, and the mean of those of the
    objective's optimism; a gap is ``least`` at least."""
    counted = {"solves": len(gaps), "failed": failed, "seconds": seconds, "convex": convex}
    if len(gaps) < FEWEST:
        return Population(why=f"{len(gaps)} answers on resampled rows, fewer than {FEWEST}", **counted)  # type: ignore[arg-type]
    low, high, level = between(np.append(gaps, np.full(failed, math.inf)))
    if math.isinf(high):
        why = (
            f"{failed} of {len(gaps) + failed} problems on resampled rows had no answer: other rows "
            "may have none"
        )
        return Population(why=why, **counted)  # type: ignore[arg-type]
    means = {"mean": float(gaps.mean()), "optimism": float(optimism.mean())}
    ends = {"low": low - accuracy if math.isinf(least) else least, "high": high + accuracy, "level": level}
    return Population(**ends, **means, **counted)  # type: ignore[arg-type]


def replicated(gaps: list[tuple[float, float]], quantile: float) -> float:
    """The bound of the gap from those of replications, each with its standard error."""
    mean = sum(gap for gap, _ in gaps) / len(gaps)
    return max(mean + quantile * math.sqrt(sum(error**2 for _, error in gaps)) / len(gaps), 0.0)


def between(draws: np.ndarray, level: float = LEVEL) -> tuple[float, float, float]:
    """(low, high, confidence): order statistics that hold the next draw with at least ``level``, if
    there are as many draws."""
    ordered, count = np.sort(draws), len(draws)
    j = max(1, math.floor((1 - level) / 2 * (count + 1) + 1e-9))
    return float(ordered[j - 1]), float(ordered[count - j]), 1 - 2 * j / (count + 1)


def above(draws: np.ndarray, level: float) -> float | None:
    """The order statistic that the next draw exceeds with probability 1 - ``level`` at most; None of
    too few draws."""
    ordered, count = np.sort(draws), len(draws)
    j = math.ceil(level * (count + 1) - 1e-9)
    if j <= count:
        return float(ordered[j - 1])
    return None
