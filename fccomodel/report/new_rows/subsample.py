"""The problem on a random part of the rows, for reports that would take too long on all rows or cannot
hold them in memory.

The cost of an evaluation is counted (``core/work``) on two small parts and extrapolated by a power of
the number of elements. Counted work is the same on every machine, so the same rows are taken. The
errors of the values come from the delete-a-group jackknife on the part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from fccomodel.core.diagnostics import FccoError
from fccomodel.core.memory import lacking
from fccomodel.data.bound import Bound
from fccomodel.data.net_costs import dear, part_of
from fccomodel.data.subsets import RandomParts
from fccomodel.evaluation import passes
from fccomodel.evaluation.checks.sizes import beyond_memory
from fccomodel.evaluation.errors import EMPTY_GROUP
from fccomodel.evaluation.net_outputs import Outputs
from fccomodel.report.new_rows.intervals import CONFIDENCE, Intervals, deviations, intervals, student
from fccomodel.report.new_rows.memory_needed import bytes_needed

Result = TypeVar("Result")

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
KEPT = 2_000_000.0
#: Bytes that an element takes in a report, at most, in all models but the strangest.
ELEMENT_BYTES = 2000.0
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
#: Smallest number of elements of a part on which work is counted, if larger ones take too much.
SMALLEST_PART = 2_000
#: Largest ratio of what a pass over a part takes to what was foreseen for it.
FORESEEN_TWICE = 2.0
#: Factor between the sizes of parts that are tried for this.
SMALLER = 8
#: Share of a report's time that one pass over all rows may take, for exact values of the objective and
#: the constraints.
ONE_PASS_SHARE = 0.5
#: Rows of every stratum that a part has at least: tried in turn until no group is empty.
LEAST_OF_STRATUM = (1, 8)
#: Counted seconds for the errors of the values, at most.
ERRORS_S = 2.0
#: Share of a report's time that the errors take, at most.
ERRORS_SHARE = 0.25


@dataclass(frozen=True, eq=False, kw_only=True)
class RowSample:
    """A part of the rows in place of all.

    rows     which rows, in words
    why      why not all, in words
    values   the objective and the constraints on all rows, if a pass over them is affordable
    """

    bound: Bound
    rows: str
    why: str
    values: np.ndarray | None = None


def part_for(
    parts: RandomParts,
    point: Mapping[str, np.ndarray],
    *,
    afford: float,
    most: float = 0.0,
    late: Callable[[], bool] = bool,
) -> RowSample | None:
    """A part of the rows whose report takes about ``afford`` counted seconds, or None if a report on all
    rows takes no more.

    most   counted seconds that the needed passes may take if there are at most ``LARGE_ELEMENTS``
           elements; the search for multipliers then ends by itself
    late   late() says that the time for the report is over: a pass over all rows is left then
    """
    if math.isinf(afford) or parts.obstacle:
        return None
    bound = parts.bound
    whole = passes.amount(bound)
    if dear(bound):
        return _part_of_dear_nets(parts, whole, point, afford, late)
    if whole <= FREE_ELEMENTS:
        return None
    for least in LEAST_OF_STRATUM:
        try:
            return _part_of_pairs(replace(parts, least=least), whole, point, (afford, most), late)
        except FccoError as error:
            if any(d.code != EMPTY_GROUP.id for d in error.diagnostics):
                raise
    return None


def _part_of_pairs(
    parts: RandomParts,
    whole: float,
    point: Mapping[str, np.ndarray],
    room: tuple[float, float],
    late: Callable[[], bool],
) -> RowSample | None:
    """``part_for`` of problems without expensive nets; ``room``: its ``afford`` and ``most``.

    Raises F0705 if a group is empty in a part: a pair of rows that a condition asks for may be missing.
    """
    (afford, most), bound, seed = room, parts.bound, parts.seed
    for_one_pass = ONE_PASS_SHARE * max(afford, most)
    once, power = _price(parts, whole, point, afford)
    if whole <= LARGE_ELEMENTS:
        afford = max(afford, PASSES / NEEDED_PASSES * most)
    if PASSES * once <= afford:
        return None
    count_of_pairs = max(min(LEAST_KEPT, whole), whole * (afford / (PASSES * once)) ** (1 / power))
    part = _described(parts, _bearable(parts, count_of_pairs, point, afford), whole)
    if once > for_one_pass:
        return part
    try:
        exact = passes.values_within(bound, point, seed, 2 * for_one_pass, late)
    except FccoError:
        return part
    if exact is None:
        return part
    return replace(part, why=f"{part.why}; the objective and the constraints are of all rows", values=exact)


def _price(
    parts: RandomParts, whole: float, point: Mapping[str, np.ndarray], afford: float
) -> tuple[float, float]:
    """The counted seconds of a pass over all rows, from those over two parts, and the power of the
    number of elements by which they grow. Parts that take too much themselves become smaller."""
    large = whole > LARGE_ELEMENTS and afford >= ROOM_FOR_LARGE_PARTS
    tried = LARGE_PARTS if large else SMALL_PARTS
    prices, last = [math.inf], math.inf
    while max(prices) == math.inf:
        thinned = [passes.thinned(parts, kept) for kept in tried]
        sizes = [passes.amount(part) for part in thinned]
        most = afford / NEEDED_PASSES
        if tried[0] <= SMALLEST_PART or sizes[0] >= last:  # every group keeps a row: none is smaller
            most = math.inf
        prices = [passes.seconds(thinned[0], point, parts.seed, most)]
        if sizes[1] > sizes[0]:
            prices.append(passes.seconds(thinned[1], point, parts.seed, most))
        tried, last = (tried[0] // SMALLER, tried[1] // SMALLER), sizes[0]
    if len(prices) == 1:  # every group keeps a row: the parts are the same
        return prices[0] * whole / sizes[0], 1.0
    growth_of_price = math.log(prices[1] / prices[0])
    growth_of_size = max(math.log(sizes[1] / sizes[0]), 0.1)
    growth = growth_of_price / growth_of_size
    power = min(max(growth, 0.3), MOST_POWER)
    return prices[1] * (whole / sizes[1]) ** power, power


def _bearable(parts: RandomParts, kept: float, point: Mapping[str, np.ndarray], afford: float) -> Bound:
    """The problem on a part of about ``kept`` elements, or of fewer if a pass takes more than was
    foreseen. An empty group is met here."""
    last = math.inf
    while True:
        thin = passes.thinned(parts, kept)
        size = passes.amount(thin)
        most = FORESEEN_TWICE * afford / PASSES
        if kept <= SMALLEST_PART or size >= last:
            most = math.inf
        if passes.seconds(thin, point, parts.seed, most) < math.inf or most == math.inf:
            return thin
        kept, last = kept / SMALLER, size


def _part_of_dear_nets(
    parts: RandomParts,
    whole: float,
    point: Mapping[str, np.ndarray],
    afford: float,
    late: Callable[[], bool],
) -> RowSample | None:
    """``part_for`` where the rows of nets cost most: what passes take grows with their number."""
    bound, seed = parts.bound, parts.seed
    least = min(SMALL_SHARE, FEW_ROWS / max(table.n for table in bound.tables.values()))
    once = passes.seconds(part_of(parts.of_share(least), bound), point, seed) / least
    share = afford / (PASSES * once)
    if share >= 1.0:
        return None
    part = _described(parts, part_of(parts.of_share(max(share, least)), bound), whole)
    if ONE_PASS_SHARE * afford < once:
        return part
    exact = passes.values_within(bound, point, seed, math.inf, late)
    if exact is None:
        return part
    return replace(part, why=f"{part.why}; the objective and the constraints are of all rows", values=exact)


def foreseen(bound: Bound, *, seed: int) -> float:
    """Counted seconds of a report's passes over all rows, from one pass at the origin.

    Infinite if a pass is expensive, or if the problem is not defined there.
    """
    return PASSES * passes.seconds_at_origin(bound, seed, FREE_ELEMENTS)


def parts_after(parts: RandomParts, tried: RowSample | None = None) -> Iterator[RowSample]:
    """Parts in place of rows that memory does not hold together, or of a part of them that was ``tried``.
    Each is smaller than the one before; there are none if the problem has no parts."""
    if parts.obstacle:
        return
    whole = passes.amount(parts.bound)
    kept = KEPT
    if tried is not None:
        kept = min(kept, passes.amount(tried.bound) / SMALLER)
    while kept >= SMALLEST_PART:
        yield _described(parts, passes.thinned(parts, kept), whole)
        kept /= SMALLER


def part_that_fits(parts: RandomParts) -> RowSample | None:
    """A part in place of rows whose report takes more memory than there is; None if all rows fit."""
    whole = passes.amount(parts.bound)
    rows = sum(table.n for table in parts.bound.tables.values())
    if whole <= FREE_ELEMENTS or parts.obstacle or lacking(ELEMENT_BYTES * (whole + rows)) is None:
        return None
    needed = bytes_needed(parts.bound, seed=parts.seed)
    left = None if needed is None else lacking(needed)
    if needed is None or left is None:
        return None
    return _described(parts, passes.thinned(parts, min(KEPT, whole * left / needed)), whole)


def _described(parts: RandomParts, thin: Bound, whole: float) -> RowSample:
    """A part of the rows, with its words."""
    rows = f"estimated on {parts.rows(thin)}, drawn at random"
    return RowSample(bound=thin, rows=rows, why=f"{whole:.1e} elements are too many for this report: {rows}")


def errors_of(bound: Bound, point: Mapping[str, np.ndarray], seed: int, afford: float) -> str:
    """The 95% errors of the values on a part, in words: their standard errors and their biases."""
    errors = deviations(bound, point, seed=seed, budget=min(ERRORS_S, ERRORS_SHARE * afford))
    if errors.why:
        return f"no error is known: {errors.why}"
    halves = student((1 + CONFIDENCE) / 2, errors.groups - 1) * errors.errors + np.abs(errors.biases)
    constraints = ""
    if len(halves) > 1:
        constraints = f", a constraint within {halves[1:].max():.2g}"
    return f"with 95% confidence the objective on all rows is within {halves[0]:.2g}{constraints}"


def sure(bound: Bound, point: Mapping[str, np.ndarray], *, seed: int, afford: float) -> Intervals:
    """``intervals`` in about ``afford`` counted seconds. If all rows take more, or cannot be evaluated
    together, a random part of them is used, whose half-widths are larger."""
    parts = RandomParts(bound=bound, seed=seed)

    def on(part: RowSample | None) -> Intervals:
        """The intervals on a part, or on all rows."""
        certain_values = intervals(bound if part is None else part.bound, point, seed=seed, budget=afford)
        if part is None:
            return certain_values
        return replace(certain_values, cut="; ".join(filter(None, (part.rows, certain_values.cut))))

    with Outputs().used():
        return within_memory(parts, part_for(parts, point, afford=afford), on)


def within_memory(
    parts: RandomParts, part: RowSample | None, work: Callable[[RowSample | None], Result]
) -> Result:
    """``work`` on a part of the rows (None: on all), or on the first smaller part that memory suffices for.

    Raises the last error if it suffices for none.
    """
    smaller = parts_after(parts, part)
    while True:
        try:
            return work(part)
        except (FccoError, MemoryError, RuntimeError) as error:
            following = next(smaller, None) if beyond_memory(error) else None
            if following is None:
                raise
        part = following  # outside the handler: the error holds on to the arrays
