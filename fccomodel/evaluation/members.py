"""Families of constraints and quantities: which members there are on the bound data, and what their binders stand for."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation import elements, selections
from fccomodel.evaluation.axes import Named, new_axis, spread
from fccomodel.evaluation.elements import Pointwise


def family(
    bound: Bound, name: str, binders: tuple[ir.Binder, ...], body: ir.Expr, condition: ir.Expr | None = None
) -> tuple[Mapping[ir.Binder, Named], np.ndarray, list[str]]:
    """What the binders stand for (one axis each), the places of the members in that grid, and their labels ``name[k1,k2]``."""
    env: dict[ir.Binder, Named] = {}
    lists = []
    for binder in binders:
        own = selections.ids(bound, binder.domain)
        own = own[selections.occupied(bound, binder, own, body)]
        env[binder] = Named(torch.from_numpy(np.ascontiguousarray(own)), (new_axis(),))
        lists.append(own)
    shape = tuple(len(own) for own in lists)
    keep = np.ones(shape, dtype=bool)
    if condition is not None:
        found = Pointwise(bound).value(condition, env)
        axes = tuple(at.axes[0] for at in env.values())
        keep = np.broadcast_to(spread(found, axes).bool().numpy(), shape)
    places = np.flatnonzero(keep.ravel())
    if not binders:
        return env, places, [name]
    shown = [[elements.name_of(bound, b.domain, int(k)) for k in own] for b, own in zip(env, lists, strict=True)]
    members = list(itertools.product(*shown))
    return env, places, [f"{name}[{','.join(members[place])}]" for place in places]


def over(value: Named, env: Mapping[ir.Binder, Named], places: np.ndarray) -> torch.Tensor:
    """A value at the members of a family, one after the other: (members, *event)."""
    axes = tuple(at.axes[0] for at in env.values())
    full = spread(value, axes).expand([*(at.length(at.axes[0]) for at in env.values()), *value.event])
    return full.reshape(-1, *value.event)[torch.from_numpy(places)]
