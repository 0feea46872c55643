"""The canonical form. Identities are applied from the inside out until none applies, and sums over
sets are expanded."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache

from fccomodel.core import ir
from fccomodel.core.registry import records
from fccomodel.core.rewrite import Rewriter, rewrite_problem
from fccomodel.library.atoms import Interval
from fccomodel.library.identities._base import Identity, Knowledge
from fccomodel.library.identities._spread import Expansion
from fccomodel.library.ranges import Ranges, declared


@cache
def all() -> Mapping[str, Identity]:  # noqa: A001 - the registry's verb, as in the other registries
    """Every identity by its name, in alphabetical order."""
    return records("fccomodel.library.identities", Identity)


@cache
def _in_order() -> tuple[Identity, ...]:
    return tuple(sorted(all().values(), key=lambda identity: (identity.order, identity.name)))


def canonical(problem: ir.Problem, size: Callable[[ir.Dim], int | None] | None = None) -> ir.Problem:
    """The problem in canonical form, in which equal ways of writing become one.

    Every value stays the same at every point, and every place is still that of the user's text.
    ``size`` gives the dimensions that are known.
    """
    return Canonical(known(problem, size)).problem(problem)


def after(problem: ir.Problem, identity: Identity) -> ir.Problem:
    """The problem after one identity, applied from the inside out; the same object if it applies
    nowhere."""
    facts = known(problem)
    return _unless_same(problem, rewrite_problem(problem, lambda node: identity.apply(node, facts)))


def _unless_same(problem: ir.Problem, new: ir.Problem) -> ir.Problem:
    """The original problem if no expression of the new one has changed."""
    if [a for a, b in zip(new.roots, problem.roots, strict=True) if a is not b]:
        return new
    return problem


def known(problem: ir.Problem, size: Callable[[ir.Dim], int | None] | None = None) -> Knowledge:
    """The knowledge that the declarations of a problem give."""

    def leaf(node: ir.Expr) -> Interval:
        """The interval of a leaf: a parameter's by its bounds and value."""
        if isinstance(node, ir.Param):
            parameter = problem.params.get(node.name)
        else:
            parameter = None
        if parameter is None:
            return Interval()
        return declared(parameter)

    def given(dim: ir.Dim) -> int | None:
        """The number of a dim, or None."""
        if isinstance(dim, int):
            return dim
        return problem.sizes.get(dim)

    return Knowledge(where=Ranges(leaf), size=size or given)


class Canonical:
    """Brings expressions of one problem to canonical form."""

    def __init__(self, facts: Knowledge):
        self.facts = facts
        self.done: dict[int, ir.Expr] = {}

    def expr(self, expr: ir.Expr) -> ir.Expr:
        """The canonical form of one expression."""
        while True:
            new = Expansion(self.facts)(Rewriter(self.rule)(expr))
            if new is expr:
                return expr
            expr = new

    def rule(self, node: ir.Expr) -> ir.Expr | None:
        """A node with canonical children after the identities that apply to it, or None."""
        if id(node) in self.done:
            return None
        result: ir.Expr | None = None
        while (new := self._first(result or node)) is not None:
            result = new
        last = result or node
        if not [child for child in last.children if id(child) not in self.done]:
            self.done[id(last)] = last
        return result

    def _first(self, node: ir.Expr) -> ir.Expr | None:
        return next(
            (new for identity in _in_order() if (new := identity.apply(node, self.facts)) is not None), None
        )

    def problem(self, problem: ir.Problem) -> ir.Problem:
        """The problem with canonical objective and constraints; unchanged expressions are the same
        objects."""
        while True:
            new = _unless_same(problem, self._spread(rewrite_problem(problem, self.rule)))
            if new is problem:
                return problem
            problem = new

    def _spread(self, problem: ir.Problem) -> ir.Problem:
        spread = Expansion(self.facts)
        objective = dataclasses.replace(problem.objective, expr=spread(problem.objective.expr))
        constraints = tuple(dataclasses.replace(c, body=spread(c.body)) for c in problem.constraints)
        return dataclasses.replace(problem, objective=objective, constraints=constraints)
