"""An interval of the gap between an answer and the best answer for the population, by bagging.

The rows at hand are a sample of the population.

x_n is optimal for the n rows at hand (F_n), and x* for the population (F). For b = 1 .. B, as many
rows are drawn from those at hand with replacement, and x_b is optimal for them. Then
G_b = F_n(x_b) - F_n(x_n) relates to the rows at hand as F(x_n) - F(x*) relates to the population.

The next of B + 1 such draws lies between the j-th smallest and the j-th largest of the others with
probability 1 - 2j/(B + 1). Rows without an answer count as a draw of infinity. Draws are known to the
accuracy of their answers, which widens the interval. If optima do not move with the rows (at a kink,
say), only this accuracy is left. If no constraint depends on rows, a gap is at least 0, and the
interval begins there. Draws of gaps are too large if few rows have all the weight, as in tail means,
whose kinks are closer together on rows that are drawn twice. Then the confidence is higher than
stated.

This is asymptotic, for rows that are drawn independently and for unique optima (A. Shapiro,
Asymptotic analysis of stochastic programs, Annals of Operations Research 30, 1991; A. Eichhorn, W.
Römisch, Stochastic integer programming: limit theorems and confidence intervals, Mathematics of
Operations Research 32, 2007; on bagging in gap estimates H. Lam, H. Qian, Assessing solution quality
in stochastic optimization via bootstrap aggregating, Winter Simulation Conference, 2018).

Rows that were held out give a one-sided bound by two replications. Halves k = 1, 2 of them have
optima x_k. G_k = F_k(x) - F_k(x_k), with the standard error s_k, is on average at least the gap, since
the mean of optimal values is at most the optimal value. So the gap is at most
(G_1 + G_2)/2 + q (s_1^2 + s_2^2)^(1/2) / 2, with a quantile q of Student's distribution. This assumes
nothing of how x was found (W.-K. Mak, D. Morton, R. Wood, Monte Carlo bounding techniques for
determining solution quality in stochastic programs, Operations Research Letters 24, 1999; G.
Bayraksan, D. Morton, Assessing solution quality in stochastic programs, Mathematical Programming
108, 2006, its A2RP).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

#: Confidence of an interval.
LEVEL = 0.95
#: Number of draws whose smallest and largest give a two-sided interval of confidence ``LEVEL``.
DRAWS_FOR_LEVEL = 39
#: Draws below which no interval is given.
FEWEST = 9
#: Accuracy of the objectives of answers, relative to max(1, their size).
ACCURACY = 1e-6


@dataclass(frozen=True, kw_only=True)
class Population:
    """The gap of an answer to the best objective for new rows; positive if the answer is worse. (It can
    be better only by breaking constraints.)

    low, high   an interval of confidence ``level``, from 0 if no constraint depends on rows; NaN if
                ``why`` says why there is none
    mean        mean of the draws
    optimism    how much worse the objective is for new rows than for those at hand, on average
    solves      problems on resampled rows, which took ``seconds``; ``failed`` of them had no answer
    convex      whether these solves find optima; else they find the best points of runs like this one
    most        a one-sided bound of confidence ``LEVEL``, from two replications on rows held out; NaN
                if there is none
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
    """The interval from draws of gaps, and the mean of the draws of the optimism.

    accuracy   accuracy of each draw
    least      the least that a gap can be
    """
    counted = {"solves": len(gaps), "failed": failed, "seconds": seconds, "convex": convex}
    if len(gaps) < FEWEST:
        why = f"{len(gaps)} answers on resampled rows, fewer than {FEWEST}"
        return Population(why=why, **counted)  # type: ignore[arg-type]
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
    """The bound of the gap from the gaps of replications and their standard errors."""
    mean = sum(gap for gap, _ in gaps) / len(gaps)
    error_of_sum = math.sqrt(sum(error**2 for _, error in gaps))
    return max(mean + quantile * error_of_sum / len(gaps), 0.0)


def between(draws: np.ndarray, level: float = LEVEL) -> tuple[float, float, float]:
    """(low, high, confidence): order statistics that hold the next draw with confidence at least
    ``level``, or less if there are too few draws."""
    ordered, count = np.sort(draws), len(draws)
    j = max(1, math.floor((1 - level) / 2 * (count + 1) + 1e-9))
    return float(ordered[j - 1]), float(ordered[count - j]), 1 - 2 * j / (count + 1)


def above(draws: np.ndarray, level: float) -> float | None:
    """The order statistic that the next draw exceeds with probability at most 1 - ``level``, or None if
    there are too few draws."""
    ordered, count = np.sort(draws), len(draws)
    j = math.ceil(level * (count + 1) - 1e-9)
    if j <= count:
        return float(ordered[j - 1])
    return None
