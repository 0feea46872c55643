"""Constraints whose gradients are multiples of one another wherever they are taken: one of them
bounds an expression from above, and another one a multiple of it."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.core.rewrite import substitute
from fccomodel.library.identities import multiples, same_set
from fccomodel.library.linear import LinearTerm, joined, terms

#: Constraints of one kind that are compared with one another, at most.
MOST_COMPARED = 60


@dataclass(frozen=True, kw_only=True)
class Parallel:
    """Two inequalities a <= 0 and b <= 0 with a = c b + a constant.

    equation  a = c b, c < 0: the two together say that a = 0
    """

    first: ir.Constraint
    second: ir.Constraint
    equation: bool

    @property
    def said(self) -> str:
        """The finding in words."""
        both = f"{self.first.label} and {self.second.label}"
        if self.equation:
            return f"{both} together are an equation: their gradients are opposite"
        return f"{both} bound multiples of one expression: their gradients depend on one another"


def parallel(constraints: Sequence[ir.Constraint]) -> Iterator[Parallel]:
    """The pairs of inequalities whose gradients are parallel at every point."""
    alike: defaultdict[tuple[object, ...], list[tuple[ir.Constraint, ir.Expr]]] = defaultdict(list)
    for c in constraints:
        if c.kind != "le" or c.condition is not None:
            continue
        moving = [t for t in terms(c.body) if ir.variables_of(t.core)]
        signature = (ir.variables_of(c.body), len(moving), c.body.shape, len(c.binders))
        alike[signature].append((c, joined(moving, c.body.span)))
    for some in alike.values():
        for (a, of_a), (b, of_b) in itertools.combinations(some[:MOST_COMPARED], 2):
            renamed = _members(b, a)
            if renamed is None or multiples(of_a, _over(of_b, renamed)) is None:
                continue
            whole = multiples(a.body, _over(b.body, renamed))
            yield Parallel(first=a, second=b, equation=whole is not None and _negative(whole))


def _members(b: ir.Constraint, a: ir.Constraint) -> dict[ir.Binder, ir.Expr] | None:
    """The members of a for those of b, by the binder of b; None if the two are over different sets."""
    pairs = list(zip(a.binders, b.binders, strict=True))
    if not all(same_set(x.domain, y.domain) for x, y in pairs):
        return None
    return {y: ir.Element(binder=x, shape=()) for x, y in pairs}


def _over(body: ir.Expr, members: dict[ir.Binder, ir.Expr]) -> ir.Expr:
    """A body with these members in the place of its binders."""
    if members:
        return substitute(body, members)
    return body


def _negative(product: LinearTerm) -> bool:
    """Whether the factor of a product ``c r^2`` is a negative number."""
    return product.sign < 0 and all(isinstance(by, ir.Const) and by.value > 0 for _, by in product.factors)
