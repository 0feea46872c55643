"""The memory of a report, foreseen from a report's gradients on a small part of the rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fccomodel.core.diagnostics import FccoError
from fccomodel.core.held import held
from fccomodel.core.work import Meter, priced
from fccomodel.data.bound import Bound
from fccomodel.data.net_costs import THRIFTY_ROWS, dear, part_of
from fccomodel.data.subsets import RandomParts
from fccomodel.evaluation import memory, passes
from fccomodel.evaluation.interpret.evaluator import CHUNK
from fccomodel.evaluation.sets import elements
from fccomodel.report.point.rows import gradients
from fccomodel.report.point.system import System

#: Elements of the part on which bytes are counted.
COUNTED_ELEMENTS = 60_000
#: Rows of this part where nets are expensive; a net sees no more of them at once.
COUNTED_ROWS = 2 * THRIFTY_ROWS
#: Bytes of an element or a row beside expensive nets.
BESIDE_NETS = 100.0
#: Counted seconds that the gradients on this part may take.
COUNTED_SECONDS = 0.3
#: Entries of the variables, in a point at which values are tried in turn.
TRIED = (0.0, 0.5)
#: Bytes that a report takes, for each byte that its gradients hold.
BESIDE_GRADIENTS = 1.25


def bytes_needed(bound: Bound, *, seed: int = 0) -> float | None:
    """Bytes that a report on all rows takes; None if the problem is not defined where it was tried.

    Values that are held grow with the rows and with the elements of reductions. Elements beyond
    ``CHUNK`` are evaluated block by block.
    """
    return memory.common(bound, ("bytes of a report", seed), (), lambda: _counted(bound, seed))


def _counted(bound: Bound, seed: int) -> float | None:
    """``bytes_needed``, counted at the first point of ``TRIED`` where the problem is defined."""
    part = _part(RandomParts(bound=bound, seed=seed))
    for entry in TRIED:
        try:
            counted = _held(part, _point(part, entry), seed)
        except FccoError:
            continue
        return BESIDE_GRADIENTS * _grown(counted, part, bound)
    return None


def _part(parts: RandomParts) -> Bound:
    """The problem on the rows on which bytes are counted."""
    bound = parts.bound
    if parts.obstacle:
        return bound
    if dear(bound):
        most = max(table.n for table in bound.tables.values())
        return part_of(parts.of_share(min(1.0, COUNTED_ROWS / most)), bound)
    whole = passes.amount(bound)
    if whole <= COUNTED_ELEMENTS:
        return bound
    part = parts.of_share(COUNTED_ELEMENTS / whole)
    if 2 * passes.amount(part) >= COUNTED_ELEMENTS:  # elements are as many as rows
        return part
    return passes.thinned(parts, COUNTED_ELEMENTS)


def _grown(counted: float, part: Bound, bound: Bound) -> float:
    """Bytes on all rows, from those counted on a part."""
    whole, size = passes.amount(bound), passes.amount(part)
    rows, rows_of_part = (sum(table.n for table in one.tables.values()) for one in (bound, part))
    if dear(bound):
        return counted + BESIDE_NETS * (min(whole, CHUNK) + rows)
    return counted * max(rows / max(rows_of_part, 1), min(whole, CHUNK) / max(size, 1.0), 1.0)


def _point(bound: Bound, entry: float) -> dict[str, np.ndarray]:
    """A point whose entries are all the same."""
    variables = bound.problem.variables.items()
    return {name: np.full(elements.shape(bound, variable.shape), entry) for name, variable in variables}


def _held(bound: Bound, point: Mapping[str, np.ndarray], seed: int) -> int:
    """Bytes that the gradients of a report on these rows hold at once, in ``COUNTED_SECONDS`` of them."""

    def once() -> None:
        """The gradients."""
        system = System(bound, point, seed=seed)
        try:
            gradients(system, Meter(COUNTED_SECONDS))
        finally:
            vars(system).clear()  # as in a report: its graphs refer to it

    return held(lambda: priced(once, most=COUNTED_SECONDS))[1]
