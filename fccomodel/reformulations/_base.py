"""A reformulation: an equivalent (or boundedly different) problem, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from fccomodel import ir

Point = dict[str, np.ndarray]
Recover = Callable[[Point], Point]


def same(point: Point) -> Point:
    """The recovery of a reformulation that adds no variable."""
    return point


@dataclass(frozen=True, kw_only=True)
class Reformulation:
    """``apply(problem) -> (problem, recover, sentences)``; no sentence means that it had nothing to do.

    needs     what the problem must have for it to be exact (for the explanation)
    removes   features of a problem that are gone afterwards
    role      ``equivalent``: always applied;  ``penalty``: applied where an algorithm declares it
    gives     features that the result has
    cite      the source of its formula
    """

    name: str
    order: int
    formula: str
    apply: Callable[[ir.Problem], tuple[ir.Problem, Recover, list[str]]]
    role: str = "equivalent"
    needs: str = ""
    removes: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    cite: str = ""


@dataclass(frozen=True, kw_only=True)
class Chain:
    """What a sequence of reformulations did."""

    problem: ir.Problem
    steps: tuple[tuple[str, tuple[str, ...]], ...] = ()
    recovers: tuple[Recover, ...] = field(default=())

    def recover(self, point: Mapping[str, np.ndarray]) -> Point:
        """A point of the reformulated problem, as a point of the original."""
        result = dict(point)
        for recover in reversed(self.recovers):
            result = recover(result)
        return result
