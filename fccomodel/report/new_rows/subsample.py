"""The problem on a random part of the rows, for reports that would take too long on all rows or cannot
hold them in memory.

The cost of an evaluation is counted (``core/work``) on two small parts and extrapolated by a power of
the number of elements. Counted work is the same on every machine, so the same rows are taken. The
errors of the values come from the delete-a-group jackknife on the part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.work import priced
from fccomodel.data import subsets
from fccomodel.data.bound import Bound
from fccomodel.data.net_costs import dear, part_of
from fccomodel.evaluation import memory
from fccomodel.evaluation.errors import EMPTY_GROUP, TOO_LARGE
from fccomodel.evaluation.sets import elements, members, selections
from fccomodel.report.new_rows.intervals import CONFIDENCE, Intervals, deviations, intervals, student, values

#: Elements up to which a report always takes all rows.
FREE_ELEMENTS = 300_000
#: Elements above which a report gets a share of the budget only (see ``part_for``).
LARGE_ELEMENTS = 50_000_000
#: Elements of the two parts on which work is counted, for large problems with enough budget.
LARGE_PARTS = (2_500_000, 5_000_000)
#: The same for other problems.
SMALL_PARTS = (150_000, 300_000)
#: Elements that a part has at least if all rows take too much work.
LEAST_KEPT = 200_000
#: Elements of a part that replaces rows too many for memory.
KEPT = 2_000_000
#: Evaluations that a report takes in all.
PASSES = 20
#: Evaluations that a report cannot do without.
NEEDED_PASSES = 8
#: Counted seconds that a report must have for work to be counted on the large parts.
ROOM_FOR_LARGE_PARTS = 10.0
#: The largest power by which the cost grows with the number of elements. (Small parts have few
#: blocks, whose number jumps.)
MOST_POWER = 1.1
#: Share of the rows on which a pass of expensive nets is priced, and that a report has at least.
SMALL_SHARE = 0.1
#: Rows that are enough for this price, whatever their share.
FEW_ROWS = 2000
#: Rows of every stratum that a part has at least: tried in turn until no group is empty.
LEAST_OF_STRATUM = (1, 8)
#: Counted seconds for the errors of the values, at most.
ERRORS_S = 2.0
#: Share of a report's time that the errors take, at most.
ERRORS_SHARE = 0.25


@dataclass(frozen=True, eq=False, kw_only=True)
class Part:
    """A part of the rows in place of all.

    rows     which rows, in words
    why      why not all, in words
    values   the objective and the constraints on all rows, if a pass over them is affordable
    """

    bound: Bound
    rows: str
    why: str
    values: np.ndarray | None = None


def amount(bound: Bound) -> float:
    """The number of elements of the largest nest of reductions; a pair of rows is one element."""
    inside: dict[int, float] = {}

    def of(root: ir.Expr) -> float:
        """The numbers that one evaluation of a root makes."""
        stack = [root]
        while stack:
            node = stack[-1]
            if missing := [child for child in node.children if id(child) not in inside]:
                stack += missing
                continue
            if isinstance(node, ir.Reduce):
                own = _elements(node, bound)
            else:
                own = 1.0
            inside[id(stack.pop())] = own * max([1.0, *(inside[id(child)] for child in node.children)])
        return inside[id(root)]

    families = [_elements(c, bound) * of(c.body) for c in bound.problem.constraints]
    return max([of(bound.problem.objective.expr), *families])


def _elements(node: ir.Reduce | ir.Constraint, bound: Bound) -> float:
    """The number of elements of a node's binders, for one element of each outer binder.

    If keys choose them, it is the mean number: over the groups for the first rows, and over the rows
    around for all others.
    """
    count, first = 1.0, True
    for part in selections.split(node.binders, node.condition):
        if not isinstance(part.binder.domain, ir.RowSet | ir.ValueSet | ir.LabelSet):
            continue
        index = selections.index(bound, part if part.keys else members.alone(part))
        mean = len(index.rows) / max(len(index.groups), 1)
        around = any(isinstance(parent.domain, ir.RowSet) for parent in part.parents)
        if part.keys and (around or not first) and len(index.rows):
            sizes = np.diff(index.bounds).astype(np.float64)
            mean = float((sizes**2).sum() / sizes.sum())
        count *= max(1.0, mean)
        first = False
    return count


def part_for(
    bound: Bound, point: Mapping[str, np.ndarray], *, seed: int, afford: float, most: float = 0.0
) -> Part | None:
    """A part of the rows whose report takes about ``afford`` counted seconds, or None if a report on all
    rows takes no more.

    most   counted seconds that the needed passes may take if there are at most ``LARGE_ELEMENTS``
           elements; the search for multipliers then ends by itself
    """
    if math.isinf(afford) or not thinnable(bound):
        return None
    whole = amount(bound)
    if dear(bound):
        return _part_of_dear_nets(bound, whole, point, seed=seed, afford=afford)
    if whole <= FREE_ELEMENTS:
        return None
    for least in LEAST_OF_STRATUM:
        try:
            return _part_of_pairs(bound, whole, point, seed=seed, afford=afford, most=most, least=least)
        except FccoError as error:
            if any(d.code != EMPTY_GROUP.id for d in error.diagnostics):
                raise
    return None


def _part_of_pairs(
    bound: Bound,
    whole: float,
    point: Mapping[str, np.ndarray],
    *,
    seed: int,
    afford: float,
    most: float,
    least: int,
) -> Part | None:
    """``part_for`` with ``least`` rows of each stratum. Raises F0705 if a group is empty in the part: a
    pair of rows that a condition asks for, say, may be missing."""
    large = whole > LARGE_ELEMENTS and afford >= ROOM_FOR_LARGE_PARTS
    tried = LARGE_PARTS if large else SMALL_PARTS
    first, second = (_thin(bound, kept, seed, least) for kept in tried)
    sizes = [amount(part) for part in (first, second)]
    prices = [priced(partial(values, part, point, seed))[1] for part in (first, second)]
    growth = math.log(prices[1] / prices[0]) / max(math.log(sizes[1] / sizes[0]), 0.1)
    power = min(max(growth, 0.3), MOST_POWER)
    once = prices[1] * (whole / sizes[1]) ** power
    if whole <= LARGE_ELEMENTS:
        afford = max(afford, PASSES / NEEDED_PASSES * most)
    if PASSES * once <= afford:
        return None
    kept = max(LEAST_KEPT, whole * (afford / (PASSES * once)) ** (1 / power))
    part = _described(bound, _thin(bound, kept, seed, least), whole)
    values(part.bound, point, seed)  # an empty group is met here
    if once > afford:
        return part
    try:
        exact = values(bound, point, seed)[0]
    except FccoError:
        return part
    return replace(part, why=f"{part.why}; the objective and the constraints are of all rows", values=exact)


def _part_of_dear_nets(
    bound: Bound, whole: float, point: Mapping[str, np.ndarray], *, seed: int, afford: float
) -> Part | None:
    """``part_for`` where the rows of nets cost most: what passes take grows with their number."""
    kinds = subsets.kinds(bound)
    least = min(SMALL_SHARE, FEW_ROWS / max(table.n for table in bound.tables.values()))
    small = part_of(subsets.part(bound, subsets.representative(bound, least, seed, kinds)), bound)
    once = priced(partial(values, small, point, seed))[1] / least
    share = afford / (PASSES * once)
    if share >= 1.0:
        return None
    thin = subsets.part(bound, subsets.representative(bound, max(share, least), seed, kinds))
    part_of(thin, bound)
    part = _described(bound, thin, whole)
    if NEEDED_PASSES * once > afford:
        return part
    exact = values(bound, point, seed)[0]
    return replace(part, why=f"{part.why}; the objective and the constraints are of all rows", values=exact)


def foreseen(bound: Bound, *, seed: int) -> float:
    """Counted seconds of a report's passes over all rows, from one pass at the origin. Infinite if a pass
    is expensive, or if the problem is not defined there. Other params are assumed to cost the same."""
    return memory.common(bound, ("foreseen", seed), (), lambda: _foreseen(bound, seed))


def _foreseen(bound: Bound, seed: int) -> float:
    if amount(bound) > FREE_ELEMENTS:
        return math.inf
    shapes = {
        name: (f"params({v.net})",) if v.net else v.shape for name, v in bound.problem.variables.items()
    }
    origin = {name: np.zeros(elements.shape(bound, shape)) for name, shape in shapes.items()}
    try:
        return PASSES * priced(lambda: values(bound, origin, seed))[1]
    except FccoError:
        return math.inf


def part_after(bound: Bound, error: FccoError, *, seed: int) -> Part | None:
    """A part in place of rows that cannot be evaluated together (F0704), or None for other errors."""
    if any(d.code != TOO_LARGE.id for d in error.diagnostics) or not thinnable(bound):
        return None
    return _described(bound, _thin(bound, KEPT, seed), amount(bound))


def thinnable(bound: Bound) -> bool:
    """Whether the problem averages over rows, and nothing has an entry for each row."""
    tables = subsets.averaged(bound.problem)
    return bool(tables) and not any(name in tables for name, _ in subsets.lengths(bound.problem))


def _described(bound: Bound, thin: Bound, whole: float) -> Part:
    """A part of the rows, with its words."""
    rows = ", ".join(
        f"{thin.tables[n].n:,} of {bound.tables[n].n:,} rows of {n}" for n in subsets.averaged(bound.problem)
    )
    rows = f"estimated on {rows}, drawn at random"
    return Part(bound=thin, rows=rows, why=f"{whole:.1e} elements are too many for this report: {rows}")


def _thin(bound: Bound, kept: float, seed: int, least: int = 1) -> Bound:
    """A part of the rows with about ``kept`` elements: the same share of each table and of every
    stratum, and at least so many rows of each."""
    share, low, high = 0.0, 0.0, 1.0
    thin, members = bound, subsets.kinds(bound)
    for _ in range(8):  # bisection: the model decides how elements grow with rows
        share = math.sqrt(max(low, 1e-8) * high)
        thin = subsets.part(bound, subsets.representative(bound, share, seed, members, least))
        if amount(thin) > kept:
            high = share
        else:
            low = share
    return thin


def errors_of(bound: Bound, point: Mapping[str, np.ndarray], seed: int, afford: float) -> str:
    """The 95% errors of the values on a part, in words: their standard errors and their biases."""
    found = deviations(bound, point, seed=seed, budget=min(ERRORS_S, ERRORS_SHARE * afford))
    if found.why:
        return f"no error is known: {found.why}"
    halves = student((1 + CONFIDENCE) / 2, found.groups - 1) * found.errors + np.abs(found.biases)
    constraints = ""
    if len(halves) > 1:
        constraints = f", a constraint within {halves[1:].max():.2g}"
    return f"with 95% confidence the objective on all rows is within {halves[0]:.2g}{constraints}"


def sure(bound: Bound, point: Mapping[str, np.ndarray], *, seed: int, afford: float) -> Intervals:
    """``intervals`` in about ``afford`` counted seconds. If all rows take more, or cannot be evaluated
    together, a random part of them is used, whose half-widths are larger."""
    part = part_for(bound, point, seed=seed, afford=afford)
    try:
        found = intervals(bound if part is None else part.bound, point, seed=seed, budget=afford)
    except FccoError as error:
        if part is not None or (part := part_after(bound, error, seed=seed)) is None:
            raise
        found = intervals(part.bound, point, seed=seed, budget=afford)
    if part is None:
        return found
    return replace(found, cut="; ".join(filter(None, (part.rows, found.cut))))
