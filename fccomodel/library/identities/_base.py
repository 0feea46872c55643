"""What an identity is, and what it may ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.library.atoms import Interval


@dataclass(frozen=True, eq=False, kw_only=True)
class Known:
    """What is known of a problem beside an expression of it.

    where  the interval that a scalar of numbers, params and sizes lies in
    size   the number that a dimension is, None where only data say
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
    apply: Callable[[ir.Expr, Known], ir.Expr | None]
    order: int = 0
