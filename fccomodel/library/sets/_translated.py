"""A simple set translated by a vector; each of its functions comes from the function of the set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fccomodel.library.atoms import Interval
from fccomodel.library.sets.base import SimpleSet


def translated(simple: SimpleSet, centre: Any) -> SimpleSet:
    """The set C + c for a number or an array c.

    Functions of C are called at w - c, and points that they return get c added.
    """
    steps, cone = simple.in_steps, simple.cone
    return replace(
        simple,
        project=lambda v, *args: simple.project(v - centre, *args) + centre,
        in_steps=None if steps is None else lambda v, s, *args: steps(v - centre, s, *args) + centre,
        contains=lambda w, *args, tolerance=0.0: simple.contains(w - centre, *args, tolerance=tolerance),
        normals=lambda w, *args, tolerance=0.0: simple.normals(w - centre, *args, tolerance=tolerance),
        tangent=lambda s, w, *args, tolerance=0.0: simple.tangent(s, w - centre, *args, tolerance=tolerance),
        support=lambda s, *args: simple.support(s, *args) + (s * centre).sum(),
        entries=lambda *args: shifted(simple.entries(*args), centre),
        length=None,
        cone=None if cone is None else lambda k, w, *args: cone(k, w - centre, *args),
        round=False,
        levels={},
    )


def shifted(where: Interval, centre: Any) -> Interval:
    """An interval, moved by a number, an array, or the values in an interval."""
    if isinstance(centre, Interval):
        low, high = (centre.lo, centre.hi)
    else:
        low, high = (float(centre.min()), float(centre.max()))
    return Interval(where.lo + low, where.hi + high, where.lo_open, where.hi_open)
