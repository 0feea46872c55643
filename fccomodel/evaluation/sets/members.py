"""The members of families of constraints and quantities on the bound data, and their names.

Emission, the answers of a run, reports and displays all iterate over a family with this module.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fccomodel.core import ir
from fccomodel.core.lazy import torch
from fccomodel.data.bound import Bound
from fccomodel.evaluation import memory
from fccomodel.evaluation.sets import elements, realising, selections
from fccomodel.evaluation.sets.axes import Env, Named, along, new_axis, spread, union
from fccomodel.evaluation.sets.selections import Selection


@dataclass(frozen=True, eq=False, kw_only=True)
class Members(memory.Owned):
    """The combinations of elements of some binders that a condition accepts.

    The elements of the first binder vary slowest.

    lists    ids of each binder's elements that satisfy the conditions on this binder alone
    places   the position of each member in the product of the lists, int64
    """

    owner: weakref.ref[Bound]
    binders: tuple[ir.Binder, ...]
    lists: tuple[np.ndarray, ...]
    places: np.ndarray

    def __len__(self) -> int:
        return len(self.places)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the product of the lists."""
        return tuple(len(ids) for ids in self.lists)

    @property
    def whole(self) -> bool:
        """Whether every combination of the lists is a member."""
        return len(self.places) == math.prod(self.shape)

    @cached_property
    def ids(self) -> tuple[np.ndarray, ...]:
        """For each binder, the id of its element in every member: int64, (members,)."""
        if not self.binders:
            return ()
        positions = np.unravel_index(self.places, self.shape)
        return tuple(ids[at] for ids, at in zip(self.lists, positions, strict=True))

    def labels(self, name: str) -> list[str]:
        """The names of the members for people: ``name[k1,k2]``, or the name alone without binders."""
        if not self.binders:
            return [name] * len(self.places)
        return [f"{name}[{cell}]" for cell in self._cells]

    @cached_property
    def _cells(self) -> list[str]:
        """The names of each member's elements."""
        names = []
        for binder, ids in zip(self.binders, self.ids, strict=True):
            names.append(elements.names_of(self.bound, binder.domain, ids))
        return [",".join(cell) for cell in zip(*names, strict=True)]

    @cached_property
    def env(self) -> Env:
        """The elements of the binders: along an axis each if all combinations are members, else along one."""
        if self.whole:
            return _grid(self.binders, self.lists)
        axis = new_axis()
        pairs = zip(self.binders, self.ids, strict=True)
        return {binder: along(ids, axis) for binder, ids in pairs}

    def over(self, value: Named) -> torch.Tensor:
        """A value in ``env`` at all members: (members, *event)."""
        lengths = {}
        for elements_of in self.env.values():
            for axis in elements_of.axes:
                lengths[axis] = elements_of.length(axis)
        grid_shape = (*lengths.values(), *value.event)
        full = spread(value, tuple(lengths)).expand(grid_shape)
        return full.reshape(-1, *value.event)

    def of(self, grid: np.ndarray) -> np.ndarray:
        """The members' entries of an array over the product of the lists, in any shape."""
        return grid.reshape(-1)[self.places]


def members(bound: Bound, binders: Sequence[ir.Binder], condition: ir.Expr | None = None) -> Members:
    """The members of a family."""
    parts = selections.split(binders, condition)
    lists = tuple(realising.index(bound, alone(part)).rows for part in parts)
    shape = tuple(len(ids) for ids in lists)
    keep = accepted(bound, parts, _grid(binders, lists), shape)
    return Members(
        owner=weakref.ref(bound),
        binders=tuple(binders),
        lists=lists,
        places=np.flatnonzero(keep.ravel()),
    )


def _grid(binders: Sequence[ir.Binder], lists: Sequence[np.ndarray]) -> Env:
    """The elements of each binder along an axis of its own."""
    return {binder: along(ids, new_axis()) for binder, ids in zip(binders, lists, strict=True)}


def of(bound: Bound, family: ir.Constraint | ir.Let) -> Members:
    """The members of a family of constraints or of lets, remembered for a bound problem."""

    def compute() -> Members:
        """The members from the conditions."""
        return members(bound, family.binders, family.condition)

    return memory.remember(bound, ("members", family), compute)


def without_empty(bound: Bound) -> Bound:
    """The bound problem without families of constraints that have no members; a note names these."""
    nonempty = tuple(c for c in bound.problem.constraints if not c.binders or len(of(bound, c)))
    if len(nonempty) == len(bound.problem.constraints):
        return bound
    kept_labels = {c.label for c in nonempty}
    empty = {c.label for c in bound.problem.constraints} - kept_labels
    problem = replace(bound.problem, constraints=nonempty)
    return replace(bound, problem=problem, notes=(*bound.notes, _empty_note(sorted(empty))))


def _empty_note(labels: Sequence[str]) -> str:
    """The note for users on families without members."""
    names = ", ".join(f"`{label}`" for label in labels)
    if len(labels) > 1:
        return f"{names} have no members on these data, and ask for nothing"
    return f"{names} has no members on these data, and asks for nothing"


def alone(part: Selection) -> Selection:
    """A selection without its conditions with other binders."""
    return Selection(binder=part.binder, static=part.static)


def unmasked(part: Selection) -> Selection:
    """A selection by its keys, orders and excluded rows alone, which is a run of an order."""
    outer = [expr for _, expr in part.keys]
    outer += [order.around for order in part.orders]
    around = set(part.excludes)
    for expr in outer:
        around.update(ir.free_binders(expr))
    parents = tuple(parent for parent in part.parents if parent in around)
    return replace(part, masks=(), parents=parents)


def accepted(bound: Bound, parts: Sequence[Selection], env: Env, shape: tuple[int, ...]) -> np.ndarray:
    """Whether each combination of the elements in ``env`` satisfies the conditions between binders.

    The booleans have this shape, with a dim for each axis of ``env``.
    """
    keep = np.ones(shape, dtype=bool)
    axes = union(env.values())
    for part in parts:
        for condition in selections.relations(part):
            truth = realising.Conditions(bound).value(condition, env)
            keep &= spread(truth, axes).bool().numpy()
    return keep
