"""Combinations of outer elements for which a reduction has no elements.

It is an error if such a combination occurs in the model. Otherwise it gets the elements of another
combination, and what is computed from them has no effect.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import elements, members, realising
from fccomodel.evaluation.sets.axes import along, new_axis
from fccomodel.evaluation.sets.realising import SelectionArrays
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.program.lower.records import Slot

Slots = Mapping[ir.Binder, Slot]
#: Largest number of combinations that are tested one by one; of more, all are assumed to occur.
MOST_LISTED = 1 << 26


def empty_combinations(
    bound: Bound, binder: ir.Binder, outer: Sequence[ir.Binder], count: np.ndarray, env: Slots
) -> np.ndarray | None:
    """Mask of the combinations of outer elements without elements of a binder; None if there are none.

    outer   the outer binders that decide the elements
    count   the number of elements for each combination of the ids of ``outer``
    env     the slots of all outer binders

    F0705 if an empty combination occurs: if the conditions between the binders of ``env`` accept it.
    """
    lists = [element_ids(bound, b, env) for b in outer]
    grid = np.ix_(*lists)
    empty = np.zeros(count.shape, dtype=bool)
    empty[grid] = count[grid] <= 0
    if not empty.any():
        return None
    occurring = occurring_combinations(bound, outer, lists, env)
    empty_here = empty[occurring]
    if empty_here.any():
        first = int(np.argmax(empty_here))
        example = {b: int(ids[first]) for b, ids in zip(outer, occurring, strict=True)}
        distinct = set(zip(*(ids[empty_here].tolist() for ids in occurring), strict=True))
        realising.no_elements(bound, binder, example, len(distinct))
    return empty


def occurring_combinations(
    bound: Bound, outer: Sequence[ir.Binder], lists: Sequence[np.ndarray], env: Slots
) -> tuple[np.ndarray, ...]:
    """The combinations of outer elements that occur, perhaps repeatedly: the ids of each binder."""
    related = _related(outer, env)
    shape = tuple(len(element_ids(bound, b, env)) for b in related)
    if math.prod(shape) > MOST_LISTED:
        return tuple(ids.ravel() for ids in np.meshgrid(*lists, indexing="ij"))
    axes = {b: new_axis() for b in related}
    at = {}
    for b, slot in env.items():
        if slot.binder in axes:
            at[b] = along(element_ids(bound, b, env), axes[slot.binder])
    conditions = [_selection(env[b], env) for b in related]
    parts = [selection for selection in conditions if selection is not None]
    places = dict(zip(related, np.nonzero(members.accepted(bound, parts, at, shape)), strict=True))
    return tuple(ids[places[env[b].binder]] for b, ids in zip(outer, lists, strict=True))


def _related(outer: Sequence[ir.Binder], env: Slots) -> list[ir.Binder]:
    """The binders that conditions link to some binders, and these binders, the outermost first.

    The binder of a let stands for the binder at the place where the let is used.
    """
    related: set[ir.Binder] = set()
    fresh = {env[b].binder for b in outer}
    while fresh > related:
        related |= fresh
        for b, slot in env.items():
            if slot.binder is not b:
                continue
            selection = _selection(slot, env)
            if selection is not None:
                linked = {b, *(env[p].binder for p in selection.parents)}
                if linked & related:
                    fresh |= linked
    return [b for b in env if b in related]


def _selection(slot: Slot, env: Slots) -> Selection | None:
    """The conditions on a binder, or None if they need a binder that has no slot."""
    if slot.selection is not None and all(b in env for b in slot.selection.parents):
        return slot.selection
    return None


def element_ids(bound: Bound, binder: ir.Binder, env: Slots) -> np.ndarray:
    """The ids of the elements that a binder can stand for."""
    ids = env[binder].members
    if ids is None:
        return elements.ids(bound, binder.domain)
    return ids


def with_borrowed_ranges(ranges: SelectionArrays, empty: np.ndarray) -> SelectionArrays:
    """The ranges, where empty combinations get the range of a combination that has elements."""
    assert ranges.start is not None and ranges.size is not None
    count = element_counts(ranges)
    if not (count > 0).any():
        return ranges
    lender = np.unravel_index(int(np.argmax(count > 0)), count.shape)

    def borrowed(array: np.ndarray) -> np.ndarray:
        """The array with the lender's entry in place of entries of empty combinations."""
        return np.where(empty, array[lender], array)

    return replace(
        ranges,
        start=borrowed(ranges.start),
        size=borrowed(ranges.size),
        skip=None if ranges.skip is None else borrowed(ranges.skip),
        accept=None if ranges.accept is None else borrowed(ranges.accept),
    )


def element_counts(ranges: SelectionArrays) -> np.ndarray:
    """The number of elements of each combination, times the accepted share if there is a mask."""
    assert ranges.size is not None
    count = ranges.size
    if ranges.skip is not None:
        count = count - (ranges.skip >= 0)
    if ranges.accept is not None:
        count = count * ranges.accept
    return count
