"""How sure the objective and the constraints at a point are, where the rows are a sample: confidence
intervals.

The variance is that of the delete-a-group jackknife: rows are dealt into G groups, each is left out
in turn, and

    variance = (G - 1)/G * sum over groups of |value without the group - their mean|^2,

For smooth functions of means it tends to the variance of the delta method (P. Kott, The
delete-a-group jackknife, J. Official Statistics 17, 2001). The variances of independent tables add
up. Half-widths are Student's, with G - 1 degrees of freedom. A nonlinear function of means is biased
if rows are few. The bias is (G - 1) times the mean of the values without a group, less the value
itself (M. Quenouille, Notes on bias in estimation, Biometrika 43, 1956).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from fccomodel.core.diagnostics import FccoError
from fccomodel.core.work import counting
from fccomodel.data.bound import Bound
from fccomodel.data.net_costs import part_of
from fccomodel.data.subsets import RandomParts, averaged, without_groups
from fccomodel.evaluation.interpret.reductions import one_thread
from fccomodel.evaluation.passes import amount, values

Point = Mapping[str, np.ndarray]
#: Groups.
GROUPS = 20
#: Groups if more would take longer than the budget.
FEWEST = 8
#: Counted seconds for all groups.
BUDGET_S = 120.0
#: How many times the budget groups may take if they cannot become smaller.
MOST_BEYOND = 2.0
#: Confidence of the intervals.
CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class IntervalEstimate:
    """``value +- half`` with 95% confidence.

    holds   for a constraint: True if it holds over the whole interval, False if it fails over the
            whole interval, None if the rows cannot tell
    """

    value: float
    half: float
    holds: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """The estimates at a point.

    groups   number of groups that were left out in turn; 0 if there are no half-widths
    why      why there are no half-widths
    cut      what was estimated on fewer rows, because of the budget
    events   how often the events of chance constraints happen, in sentences
    """

    objective: IntervalEstimate
    constraints: Mapping[str, IntervalEstimate] = field(default_factory=dict)
    groups: int = 0
    why: str = ""
    cut: str = ""
    events: tuple[str, ...] = ()


def intervals(bound: Bound, point: Point, *, seed: int = 0, budget: float = BUDGET_S) -> Intervals:
    """Estimates of the objective as written and of every constraint's left minus right side, for all
    rows that the sample stands for."""
    sure = deviations(bound, point, seed=seed, budget=budget)
    halves = student((1 + CONFIDENCE) / 2, max(sure.groups, FEWEST) - 1) * sure.errors
    estimates = [
        IntervalEstimate(value=float(v), half=float(half), holds=_holds(float(v), float(half), is_equal))
        for v, half, is_equal in zip(sure.values, halves, [False, *sure.equal], strict=True)
    ]
    named = dict(zip(sure.labels, estimates[1:], strict=True))
    first = IntervalEstimate(value=estimates[0].value, half=estimates[0].half)
    cut = ""
    if sure.share != 1.0:
        cut = f"half-widths are those of {sure.share:.2g} of the rows, drawn at random, times its root"
    return Intervals(objective=first, constraints=named, groups=sure.groups, why=sure.why, cut=cut)


class Deviations(NamedTuple):
    """Values at a point, with their standard errors.

    values   the objective, then the constraints
    labels   of the constraints
    equal    which constraints are equalities
    errors   standard errors of the values; NaN if none are known
    groups   number of groups; 0 if there are no errors
    why      why there are no errors
    share    the share of the rows that the errors are from
    biases   biases of the values from the finite number of rows
    """

    values: np.ndarray
    labels: list[str]
    equal: list[bool]
    errors: np.ndarray
    groups: int
    why: str
    share: float = 1.0
    biases: np.ndarray | float = 0.0


def deviations(
    bound: Bound, point: Point, *, seed: int = 0, most: int = GROUPS, budget: float = BUDGET_S
) -> Deviations:
    """The standard errors at a point, from ``most`` groups, or from fewer to keep to the budget.

    If even the fewest groups take too long, they use a share of the rows, and the errors are scaled
    by the root of that share.
    """

    def of(part: Bound) -> np.ndarray:
        """The values on a part of the rows, by passes of nets as thrifty as those over all rows."""
        return values(part_of(part, bound), point, seed)[0]

    parts = RandomParts(bound=bound, seed=seed)
    with one_thread():
        with counting() as spent:
            whole_values, labels, equal = values(bound, point, seed)
        once = spent.seconds * max(len(parts.tables), 1)
        count = next((k for k in (most, GROUPS) if once * k <= budget), FEWEST)
        variance = np.full(len(whole_values), np.nan)
        bias = np.full(len(whole_values), np.nan)
        why, share = parts.obstacle or _few(bound, parts.tables), 1.0
        if not why:
            part = bound
            share = min(budget / (FEWEST * once), 1.0)
            if share != 1.0:
                part = parts.of_share(share)
            why = _few(part, parts.tables) or _too_long(bound, part, once, budget)
        if not why:
            count = min(count, *(max(FEWEST, part.tables[name].n // 2) for name in parts.tables))
            try:
                if share == 1.0:
                    whole = whole_values
                else:
                    whole = of(part)
                several = [_jackknife(part, name, of, seed, count, whole) for name in parts.tables]
                variance, bias = share * np.sum(several, axis=0)
            except FccoError as error:
                why = f"without some of the rows: {error.diagnostics[0].message}"
        if not why and np.isnan(variance).any():
            why = "each group of rows has too few to leave any out"
    return Deviations(whole_values, labels, equal, np.sqrt(variance), 0 if why else count, why, share, bias)


def _few(bound: Bound, tables: list[str]) -> str:
    """Why there are no standard errors: a table has too few rows; '' if none has."""
    few = [name for name in tables if bound.tables[name].n < 2 * FEWEST]
    if few:
        return f"`{few[0]}` has {bound.tables[few[0]].n} rows"
    return ""


def _too_long(bound: Bound, part: Bound, once: float, budget: float) -> str:
    """Why a part whose groups keep rows each is too large for the budget; '' if it is not.

    once   counted seconds of a pass over all rows
    """
    if part is not bound and FEWEST * once * amount(part) > MOST_BEYOND * budget * amount(bound):
        return "groups keep rows each, and evaluations of these take too long"
    return ""


def _jackknife(
    bound: Bound, name: str, of: Callable[[Bound], np.ndarray], seed: int, count: int, whole: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The jackknife's variance and bias of the values ``whole``, from the rows of one table; NaN if no
    rows can be left out."""
    parts = list(without_groups(bound, name, count, seed))
    estimates = np.stack([of(part) for part in parts])
    kept_all = all(part.tables[name].n == bound.tables[name].n for part in parts)
    if estimates.shape[1] != len(whole) or kept_all:
        return np.full(len(whole), np.nan), np.full(len(whole), np.nan)
    mean = estimates.mean(axis=0)
    variance = (count - 1) / count * ((estimates - mean) ** 2).sum(axis=0)
    bias = (count - 1) * (mean - whole)
    return variance, bias


def difference(bound: Bound, first: Point, second: Point, *, seed: int = 0) -> tuple[float, float]:
    """The objective at the first point less that at the second, and its standard error."""

    def of(part: Bound) -> np.ndarray:
        """The difference of the two points' objectives on a part of the rows."""
        return values(part, first, seed)[0][:1] - values(part, second, seed)[0][:1]

    with one_thread():
        whole = of(bound)
        variances = [_jackknife(bound, name, of, seed, GROUPS, whole)[0] for name in averaged(bound.problem)]
        return float(whole[0]), float(np.sqrt(np.sum(variances)))


def _holds(value: float, half: float, equal: bool) -> bool | None:
    """Whether a constraint holds over the whole interval, see ``IntervalEstimate``."""
    if equal and abs(value) > half:
        return False
    if equal or np.isnan(half):
        return None
    if value + half <= 0:
        return True
    if value - half > 0:
        return False
    return None


def student(share: float, freedom: int) -> float:
    """A quantile of Student's distribution (Abramowitz and Stegun, 26.7.5)."""
    z, n = NormalDist().inv_cdf(share), freedom
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / n + second / n**2 + third / n**3
