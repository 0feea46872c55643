"""Combinations of elements around a reduction that leave it nothing: an error where one is met, else
they borrow a range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import elements, members, selections
from fccomodel.evaluation.sets.axes import along, new_axis
from fccomodel.evaluation.sets.selections import Ranges, Selection
from fccomodel.program.lower.records import Slot

Slots = Mapping[ir.Binder, Slot]
#: combinations that are listed to see which are met; of more, all are taken to be
MOST_LISTED = 1 << 26


def vacant(
    bound: Bound, binder: ir.Binder, around: Sequence[ir.Binder], count: np.ndarray, env: Slots
) -> np.ndarray | None:
    """Which combinations of elements around a binder leave nothing of ``count`` (over their ids), as
    an array like it; None where none does. F0705 where one of them is met: where the conditions
    between the binders of ``env`` accept it."""
    lists = [taken(bound, b, env) for b in around]
    grid = np.ix_(*lists)
    without = np.zeros(count.shape, dtype=bool)
    without[grid] = count[grid] <= 0
    if not without.any():
        return None
    at = met(bound, around, lists, env)
    if (empty := without[at]).any():
        first = int(np.argmax(empty))
        which = {b: int(ids[first]) for b, ids in zip(around, at, strict=True)}
        selections.no_elements(
            bound, binder, which, len(set(zip(*(ids[empty].tolist() for ids in at), strict=True)))
        )
    return without


def met(
    bound: Bound, around: Sequence[ir.Binder], lists: Sequence[np.ndarray], env: Slots
) -> tuple[np.ndarray, ...]:
    """The combinations that are met, some maybe more than once: the ids of each binder."""
    inner = _related(around, env)
    shape = tuple(len(taken(bound, b, env)) for b in inner)
    if math.prod(shape) > MOST_LISTED:
        return tuple(ids.ravel() for ids in np.meshgrid(*lists, indexing="ij"))
    axes = {b: new_axis() for b in inner}
    at = {b: along(taken(bound, b, env), axes[slot.binder]) for b, slot in env.items() if slot.binder in axes}
    parts = [selection for b in inner if (selection := _selection(env[b], env)) is not None]
    places = dict(zip(inner, np.nonzero(members.accepted(bound, parts, at, shape)), strict=True))
    return tuple(ids[places[env[b].binder]] for b, ids in zip(around, lists, strict=True))


def _related(around: Sequence[ir.Binder], env: Slots) -> list[ir.Binder]:
    """The binders whose elements decide together which combinations there are, outer ones first; one
    of a let is the one in its use."""
    related: set[ir.Binder] = set()
    fresh = {env[b].binder for b in around}
    while fresh > related:
        related |= fresh
        for b, slot in env.items():
            if slot.binder is b:
                selection = _selection(slot, env)
            else:
                selection = None
            if selection is not None:
                linked = {b, *(env[p].binder for p in selection.parents)}
            else:
                linked = set()
            if linked & related:
                fresh |= linked
            else:
                fresh |= set()
    return [b for b in env if b in related]


def _selection(slot: Slot, env: Slots) -> Selection | None:
    """The conditions on a binder, where all that they are about is known."""
    closed = slot.selection is not None and all(b in env for b in slot.selection.parents)
    if closed:
        return slot.selection
    return None


def taken(bound: Bound, binder: ir.Binder, env: Slots) -> np.ndarray:
    """The ids that a binder takes."""
    ids = env[binder].members
    if ids is None:
        return elements.ids(bound, binder.domain)
    return ids


def filled(ranges: Ranges, vacant: np.ndarray) -> Ranges:
    """The same where vacant combinations have the elements of another: they are not met, what is made
    of them weighs nothing."""
    assert ranges.start is not None and ranges.size is not None
    count = counted(ranges)
    if not (count > 0).any():
        return ranges
    other = np.unravel_index(int(np.argmax(count > 0)), count.shape)

    def borrowed(array: np.ndarray) -> np.ndarray:
        """The array with the entries of vacant places taken from other ones."""
        return np.where(vacant, array[other], array)

    return replace(
        ranges,
        start=borrowed(ranges.start),
        size=borrowed(ranges.size),
        skip=None if ranges.skip is None else borrowed(ranges.skip),
        accept=None if ranges.accept is None else borrowed(ranges.accept),
    )


def counted(ranges: Ranges) -> np.ndarray:
    """How many elements each combination has, or a share of them; 0 where none."""
    assert ranges.size is not None
    if ranges.skip is None:
        count = ranges.size
    else:
        count = ranges.size - (ranges.skip >= 0)
    if ranges.accept is None:
        return count
    return count * ranges.accept
