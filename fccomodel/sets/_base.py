"""What a simple set is.

``project`` uses methods of torch tensors alone, so that its source stands by itself in a solver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fccomodel.atoms import Interval

if TYPE_CHECKING:
    import torch


def as_given(*args: Any) -> tuple[Any, ...]:
    """The arguments themselves."""
    return args


@dataclass(frozen=True, kw_only=True)
class SimpleSet:
    """A family of closed convex sets C.

    name             as models write it, also its key in the registry
    meaning          its formula
    arguments        names of its arguments, the last arguments of every function (numbers, or tensors where the set has arrays)
    project          (v, *prepared) -> the nearest point of C
    prepare          (*arguments) -> what ``project`` takes, computed once per solve
    contains         (w, *arguments, tolerance) -> whether w is within ``tolerance`` of satisfying every condition
    normal_distance  (s, w, *arguments, tolerance) -> the Euclidean distance of s to C's normal cone at w; a condition within
                     ``tolerance`` of its bound counts as active
    support          (s, *arguments) -> max over w in C of s.w
    empty            (shape, *arguments) -> why C has no points, '' if it has some
    entries          (*arguments) -> an interval that holds every entry of every point
    active           (w, *arguments, tolerance) -> the entries that a bound of their own holds, and the gradients of the other
                     conditions that are active, by row; None where C is a product of intervals and has no others
    entrywise        C is a product of intervals, one per entry
    cite             where the projection is from
    """

    name: str
    meaning: str
    arguments: tuple[str, ...]
    project: Callable[..., torch.Tensor]
    contains: Callable[..., bool]
    normal_distance: Callable[..., torch.Tensor]
    support: Callable[..., torch.Tensor]
    empty: Callable[..., str]
    entries: Callable[..., Interval]
    prepare: Callable[..., tuple[Any, ...]] = as_given
    active: Callable[..., tuple[torch.Tensor, torch.Tensor]] | None = None
    entrywise: bool = False
    cite: str = ""


def bounds(x: Any, largest: bool) -> float:
    """The extreme entry of a number or an array."""
    if not hasattr(x, "max"):
        return float(x)
    return float(x.max() if largest else x.min())


def sums(w: torch.Tensor) -> torch.Tensor:
    """The gradients of the sums over the last axis, by row."""
    return w.new_ones(w.numel() // w.shape[-1]).diag().repeat_interleave(w.shape[-1], 1)


def distance_on_line(s: torch.Tensor, free: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """The least over t of the norm of (s - t where free, (s - t)_+ where low, (t - s)_+ where high).

    That is the distance to the normal cone of {w : sum w = 1, bounds} at a point whose entries are free, at the lower bound or
    at the upper one.
    """

    def residual(t: torch.Tensor) -> torch.Tensor:
        return (s - t) * free + (s - t).relu() * low - (t - s).relu() * high

    left, right = s.min(), s.max()
    for _ in range(200):
        middle = (left + right) / 2
        too_low = residual(middle).sum() > 0
        left, right = middle.where(too_low, left), right.where(too_low, middle)
    return residual((left + right) / 2).norm()
