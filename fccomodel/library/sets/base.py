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
    """Generators of a normal cone: minus the unit vectors where ``low``, the unit vectors where
    ``high``, and ``rows``.

    low, high  the entries that a bound of their own holds, from below, from above; of the variable's shape
    rows       the gradients of the other active conditions, (conditions, entries)
    equation   these are equations, whose multiples of either sign are normals
    whole      the cone has no other generators
    """

    low: torch.Tensor
    high: torch.Tensor
    rows: torch.Tensor
    equation: bool = False
    whole: bool = True


@dataclass(frozen=True, kw_only=True, eq=False)
class SimpleSet(Domain):
    """A family of closed convex sets C; ``Domain`` says for which values of its arguments it has
    points.

    name             as models write it, also its key in the registry
    meaning          its formula
    arguments        names of its arguments, the last arguments of every function (numbers, or
                     tensors where the set has arrays)
    project          (v, *prepared) -> the nearest point of C
    in_steps         (v, steps, *prepared) -> the w in C with the least sum of (w - v)^2 / steps,
                     one step > 0 per entry: where a
                     gradient step of these sizes leads; None where it is not known, or ``project``
                     does it (``entrywise``)
    prepare          (*arguments) -> what ``project`` takes, computed once per solve
    contains         (w, *arguments, tolerance) -> whether w is within ``tolerance`` of satisfying
                     every condition
    tangent          (s, w, *arguments, tolerance) -> the nearest direction to s in C's tangent cone
                     at w, which is s less its
                     nearest normal; a condition within ``tolerance`` of its bound counts as active
    support          (s, *arguments) -> max over w in C of s.w
    entries          (*arguments) -> an interval that holds every entry of every point; arguments
                     may be known by intervals too
    bounded          (*intervals) -> whether C is bounded, of arguments in these intervals that are
                     finite numbers
    length           (shape, *intervals) -> the largest |w|_2 over C, inf where it is none or not
                     known; else from ``entries``
    cone             (cones, w, *arguments) states that w is in C (see ``library.cones``)
    normals          (w, *arguments, tolerance) -> what generates C's normal cone at w, of
                     conditions active within ``tolerance``
    entrywise        C is a product of intervals, one per entry
    round            C is a ball of the
                     Euclidean norm around 0
    cap              of weights, w >= 0 with sum 1: (n, *arguments) -> the largest that one of n
                     weights can be
    levels           how canonical models write C as a constraint: an atom f -> the arguments of the
                     set of all w with f(w) <= t,
                     where t >= 0
    tex              how mathematics writes it: its arguments by number, and ``<shape>``
    cite             where the projection is from
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
    tex: str = ""
    cite: str = ""

    @property
    def signature(self) -> str:
        """The set as models write it: ``ball(radius)``. A set of weights is written with its index,
        ``simplex(K)``."""
        names = (*(("K",) if self.cap is not None else ()), *self.arguments)
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

    def normal_distance(
        self, s: torch.Tensor, w: torch.Tensor, *arguments: Any, tolerance: float = 0.0
    ) -> torch.Tensor:
        """The Euclidean distance from s to the normal cone of C at w."""
        return self.tangent(s, w, *arguments, tolerance=tolerance).norm()

    def longest(self, shape: tuple[float, ...], *intervals: Interval) -> float:
        """The largest Euclidean norm of an array of this shape in C, of arguments in these intervals;
        inf: none, or not known."""
        if self.length is not None:
            return self.length(shape, *intervals)
        most, entries = self.entries(*intervals).mag, math.prod(shape)
        if inf in (most, entries):
            return inf
        return most * math.sqrt(entries)


def bounds(x: Any, largest: bool) -> float:
    """The smallest and largest entry of a number, an array, or the values in an interval."""
    if isinstance(x, Interval):
        if largest:
            return x.hi
        return x.lo
    if not hasattr(x, "max"):
        return float(x)
    return float(x.max() if largest else x.min())


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
