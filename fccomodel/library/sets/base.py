"""The record that describes a simple set.

``project`` uses torch alone, so that its source and that of what it calls can stand by itself in a
solver.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from fccomodel.core.lazy import torch
from fccomodel.library.atoms import Domain, Interval


def as_given(*args: Any) -> tuple[Any, ...]:
    """The arguments themselves."""
    return args


@dataclass(frozen=True, kw_only=True)
class Normals:
    """Generators of a normal cone.

    low       mask of the entries at their own lower bound; minus their unit vectors are generators
    high      mask of the entries at their own upper bound; their unit vectors are generators
    rows      the gradients of the other active conditions, (conditions, entries), as generators
    equation  whether these conditions are equations; then minus the rows are generators too
    whole     whether the cone has no other generators
    """

    low: torch.Tensor
    high: torch.Tensor
    rows: torch.Tensor
    equation: bool = False
    whole: bool = True


@dataclass(frozen=True, kw_only=True, eq=False)
class SimpleSet(Domain):
    """A family of closed convex sets C; ``Domain`` describes the arguments for which C has points.

    Every function takes the arguments of the set last; they are numbers, or tensors if the set has
    array arguments. A condition within ``tolerance`` of its bound is active.

    name       the name in models and in the registry
    meaning    the formula
    arguments  names of the arguments
    project    (v, *prepared) -> the nearest point of C
    in_steps   (v, steps, *prepared) -> the w in C with the least sum of (w - v)^2 / steps, the result
               of a gradient step with one size > 0 per entry; None if it is not known, or if
               ``project`` computes it, as for an ``entrywise`` set
    prepare    (*arguments) -> the arguments of ``project``, computed once per solve
    contains   (w, *arguments, tolerance) -> whether w violates no condition by more than ``tolerance``
    tangent    (s, w, *arguments, tolerance) -> the direction in C's tangent cone at w that is nearest
               to s; it is s minus the nearest normal
    normals    (w, *arguments, tolerance) -> the generators of C's normal cone at w
    support    (s, *arguments) -> max over w in C of s.w
    entries    (*arguments) -> an interval that contains every entry of every point; an argument may be
               an interval too
    bounded    (*intervals) -> whether C is bounded for all finite arguments in the intervals
    length     (shape, *intervals) -> the largest |w|_2 over C, or inf; by default from ``entries``
    cone       (cones, w, *arguments) states that w is in C (see ``library.cones``)
    entrywise  whether C is a product of intervals, one per entry
    round      whether C is a ball of the Euclidean norm around 0
    cap        (n, *arguments) -> the largest that one of n weights can be, for a set of weights w >= 0
               with sum 1
    levels     constraints that define C in canonical models: by the atom f, a function of t >= 0 that
               gives the arguments of the set of all w with f(w) <= t
    square     whether its points are square matrices
    symmetric  whether its points are symmetric matrices
    tex        the mathematical notation, with the arguments by number and ``<shape>``
    cite       source of the projection
    """

    name: str
    meaning: str
    arguments: tuple[str, ...]
    project: Callable[..., torch.Tensor]
    contains: Callable[..., bool]
    normals: Callable[..., Normals]
    tangent: Callable[..., torch.Tensor]
    support: Callable[..., torch.Tensor]
    entries: Callable[..., Interval]
    bounded: Callable[..., bool] = lambda *_: True
    length: Callable[..., float] | None = None
    cone: Callable[..., Any] | None = None
    prepare: Callable[..., tuple[Any, ...]] = as_given
    entrywise: bool = False
    round: bool = False
    cap: Callable[..., float] | None = None
    in_steps: Callable[..., torch.Tensor] | None = None
    levels: Mapping[str, Callable[[float], tuple[float, ...]]] = field(default_factory=dict)
    square: bool = False
    symmetric: bool = False
    tex: str = ""
    cite: str = ""

    @property
    def signature(self) -> str:
        """The set as models write it: ``ball(radius)``. A set of weights is written with its index,
        ``simplex(K)``."""
        names = self.arguments
        if self.cap is not None:
            names = ("K", *names)
        if names:
            return f"{self.name}({', '.join(names)})"
        return self.name

    def empty(self, shape: tuple[int | str, ...], *arguments: Any) -> str:
        """Why C has no points of this shape, or '' if it has some."""
        violation = self.broken([np.asarray(a, dtype=float)[None] for a in arguments], self.arguments)
        if violation is None:
            return self.amiss(shape, *arguments)
        entry = ""
        if violation.entry:
            entry = f"[{', '.join(str(k + 1) for k in violation.entry)}]"
        name = self.arguments[violation.argument]
        return f"`{name}`{entry} is {violation.value:g}, and needs {violation.needs}."

    def nearest(self, v: torch.Tensor, *arguments: Any) -> torch.Tensor:
        """The point of C that is nearest to v."""
        return self.project(v, *self.prepare(*arguments))

    def normal_distance(
        self, s: torch.Tensor, w: torch.Tensor, *arguments: Any, tolerance: float = 0.0
    ) -> torch.Tensor:
        """The Euclidean distance from s to the normal cone of C at w."""
        return self.tangent(s, w, *arguments, tolerance=tolerance).norm()

    def longest(self, shape: tuple[float, ...], *intervals: Interval) -> float:
        """The largest Euclidean norm of an array of this shape in C, or inf if none is known.

        intervals  intervals of the arguments of C
        """
        if self.length is not None:
            return self.length(shape, *intervals)
        most = self.entries(*intervals).mag
        entries = math.prod(shape)
        if inf in (most, entries):
            return inf
        return most * math.sqrt(entries)


def bounds(x: Any, largest: bool) -> float:
    """The largest or the smallest entry of a number, an array, or the values in an interval."""
    if isinstance(x, Interval):
        if largest:
            return x.hi
        return x.lo
    if not hasattr(x, "max"):
        return float(x)
    if largest:
        return float(x.max())
    return float(x.min())


def everywhere(w: torch.Tensor, holds: bool) -> torch.Tensor:
    """A mask for all entries of w that is ``holds`` everywhere."""
    return torch.full_like(w, holds, dtype=torch.bool)


def without_entries(shape: tuple[int, ...], *arguments: Any) -> str:
    """Why a set of weights over an empty index has no points."""
    if shape and shape[-1] == 0:
        return "A simplex without entries has no point whose sum is 1."
    return ""


def sums(w: torch.Tensor) -> torch.Tensor:
    """The gradients of the sums over the last axis, one for each row."""
    return w.new_ones(w.numel() // w.shape[-1]).diag().repeat_interleave(w.shape[-1], 1)


def tangent_to_sum(s: torch.Tensor, normals: Normals) -> torch.Tensor:
    """The nearest d to s, along the last axis, with sum d = 0, d >= 0 where ``low`` and d <= 0 where
    ``high`` (no entry is both).

    d is s - t, cut at these bounds. Its sum falls with t, piecewise linearly, and bends where t
    passes the s of a bounded entry; between the two bends around 0, t is read off.
    """
    t, order = s.sort(-1, descending=True)
    low, high = normals.low.to(s.dtype).gather(-1, order), normals.high.to(s.dtype).gather(-1, order)

    def uncut(x: torch.Tensor) -> torch.Tensor:
        """Sums of x over the entries that are not cut: above the first bend, between two, ...,
        below the last."""
        free = (x * (1 - low)).sum(-1, keepdim=True)
        return torch.cat([free, free + (x * low - x * high).cumsum(-1)], -1)

    total, count = uncut(t), uncut(torch.ones_like(t))
    k = ((total[..., 1:] - t * count[..., 1:]) < 0).sum(-1, keepdim=True)  # bends above the root
    above, count = total.gather(-1, k), count.gather(-1, k)
    bend = t.gather(-1, k.clamp(max=t.shape[-1] - 1))
    d = s - torch.where(count > 0, above / count, bend)
    return torch.where(normals.high, -(-d).relu(), torch.where(normals.low, d.relu(), d))
