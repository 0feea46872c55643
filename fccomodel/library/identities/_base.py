"""The record of an identity, and the knowledge about the problem that it may use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.library.atoms import Interval


@dataclass(frozen=True, eq=False, kw_only=True)
class Knowledge:
    """Knowledge about a problem besides an expression of it.

    where  the interval of a scalar of numbers, parameters and sizes
    size   the number that a dimension is, or None if only data decide it
    """

    where: Callable[[ir.Expr], Interval]
    size: Callable[[ir.Dim], int | None] = lambda dim: dim if isinstance(dim, int) else None


@dataclass(frozen=True, kw_only=True)
class Identity:
    """An equation between two ways of writing one value, used from left to right.

    formula  the equation; where the left side is defined, the right side is, and has its value
    apply    (node, known) -> the right side, of a node whose parts are canonical already; None
             where the node is no left side
    order    identities are tried in this order
    """

    name: str
    formula: str
    apply: Callable[[ir.Expr, Knowledge], ir.Expr | None]
    order: int = 0
