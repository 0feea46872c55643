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
from fccomodel.evaluation.sets import elements, selections
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
        if self.binders:
            at = np.unravel_index(self.places, self.shape)
        else:
            at = ()
        return tuple(ids[k] for ids, k in zip(self.lists, at, strict=True))

    def labels(self, name: str) -> list[str]:
        """The names of the members for people: ``name[k1,k2]``, or the name alone without binders."""
        if not self.binders:
            return [name] * len(self.places)
        return [f"{name}[{cell}]" for cell in self._cells]

    @cached_property
    def _cells(self) -> list[str]:
        """The names of each member's elements."""
        pairs = zip(self.binders, self.ids, strict=True)
        names = [elements.names_of(self.bound, b.domain, ids) for b, ids in pairs]
        return [",".join(cell) for cell in zip(*names, strict=True)]

    @cached_property
    def env(self) -> Env:
        """The elements of the binders: along an axis each if all combinations are members, else along one."""
        if self.whole:
            return {b: along(ids, new_axis()) for b, ids in zip(self.binders, self.lists, strict=True)}
        axis = new_axis()
        return {b: along(ids, axis) for b, ids in zip(self.binders, self.ids, strict=True)}

    def over(self, value: Named) -> torch.Tensor:
        """A value in ``env`` at all members: (members, *event)."""
        lengths = {axis: at.length(axis) for at in self.env.values() for axis in at.axes}
        full = spread(value, tuple(lengths)).expand((*lengths.values(), *value.event))
        return full.reshape(-1, *value.event)

    def of(self, grid: np.ndarray) -> np.ndarray:
        """The members' entries of an array over the product of the lists, in any shape."""
        return grid.reshape(-1)[self.places]


def members(bound: Bound, binders: Sequence[ir.Binder], condition: ir.Expr | None = None) -> Members:
    """The members of a family."""
    parts = selections.split(binders, condition)
    lists = tuple(selections.index(bound, alone(part)).rows for part in parts)
    env = {b: along(ids, new_axis()) for b, ids in zip(binders, lists, strict=True)}
    keep = accepted(bound, parts, env, tuple(len(ids) for ids in lists))
    return Members(
        owner=weakref.ref(bound), binders=tuple(binders), lists=lists, places=np.flatnonzero(keep.ravel())
    )


def of(bound: Bound, family: ir.Constraint | ir.Let) -> Members:
    """The members of a family of constraints or of lets, remembered for a bound problem."""
    return memory.remember(
        bound, ("members", family), lambda: members(bound, family.binders, family.condition)
    )


def without_empty(bound: Bound) -> Bound:
    """The bound problem without families of constraints that have no members; a note names these."""
    empty = {c.label for c in bound.problem.constraints if c.binders and not len(of(bound, c))}
    if not empty:
        return bound
    kept = tuple(c for c in bound.problem.constraints if c.label not in empty)
    names = ", ".join(f"`{label}`" for label in sorted(empty))
    have = "have" if len(empty) > 1 else "has"
    note = f"{names} {have} no members on these data, and ask{'' if len(empty) > 1 else 's'} for nothing"
    problem = replace(bound.problem, constraints=kept)
    return replace(bound, problem=problem, notes=(*bound.notes, note))


def alone(part: Selection) -> Selection:
    """A selection without its conditions with other binders."""
    return Selection(binder=part.binder, static=part.static)


def unmasked(part: Selection) -> Selection:
    """A selection by its keys, orders and excluded rows alone, which is a run of an order."""
    outer = [expr for _, expr in part.keys] + [order.around for order in part.orders]
    around = {b for expr in outer for b in ir.free_binders(expr)} | {*part.excludes}
    return replace(part, masks=(), parents=tuple(parent for parent in part.parents if parent in around))


def accepted(bound: Bound, parts: Sequence[Selection], env: Env, shape: tuple[int, ...]) -> np.ndarray:
    """Whether each combination of the elements in ``env`` satisfies the conditions between binders.

    The booleans have this shape, with a dim for each axis of ``env``.
    """
    keep = np.ones(shape, dtype=bool)
    axes = union(env.values())
    for part in parts:
        for condition in selections.relations(part):
            keep &= spread(selections.Conditions(bound).value(condition, env), axes).bool().numpy()
    return keep
