"""New variables for the thresholds of variational forms, one per member of the family around each."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from fccomodel.core import ir
from fccomodel.core.rewrite import const
from fccomodel.normal_form.reformulations._base import Point, Recover


class Thresholds:
    """Collects the variables that a reformulation adds; ``recover`` drops them from a point."""

    def __init__(self, problem: ir.Problem):
        self.problem = problem
        self.added: dict[str, ir.Variable] = {}
        self.sets = dict(problem.sets)

    def new(self, node: ir.Reduce, least: float = -inf) -> ir.Expr:
        """The threshold of ``node`` as an expression; it is at least ``least``, where it begins at 1."""
        family = ir.free_binders(node)
        name = f"{node.kind}_{len(self.added) + 1}"
        while name in self.problem.variables or name in self.added:
            name += "_"
        for domain in (binder.domain for binder in family):
            if not _of_a_dim(domain):
                self.sets.setdefault(domain.name, domain)
        shape = tuple(binder.domain.name for binder in family)
        self.added[name] = ir.Variable(name=name, shape=shape, span=node.span)
        if least > -inf:
            box = ir.VectorSet(
                name=f"box({least:g}, inf)", family="box", args=(const(least), const(inf)), shape=shape
            )
            self.added[name] = replace(self.added[name], sets=(box,), start=const(1))
        whole = ir.Var(name=name, shape=shape, span=node.span)
        if not family:
            return whole
        return ir.Item(base=whole, indices=tuple(ir.Element(binder=b) for b in family), span=node.span)

    @property
    def variables(self) -> dict[str, ir.Variable]:
        """The problem's variables and the added ones."""
        return {**self.problem.variables, **self.added}

    def recover(self) -> Recover:
        """The function that drops the added variables from a point."""
        added = set(self.added)

        def back(point: Point) -> Point:
            """The point without the added variables."""
            return {name: value for name, value in point.items() if name not in added}

        return back


def _of_a_dim(domain: ir.Set) -> bool:
    """Whether the set holds the indices of a ``dim``, whose name it has."""
    return (
        isinstance(domain, ir.ValueSet)
        and isinstance(domain.high, ir.Size)
        and domain.high.dim == domain.name
    )
