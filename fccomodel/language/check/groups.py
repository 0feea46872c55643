"""``E(empty = drop)[...] e``: binders around such a reduction skip the elements for which it is empty."""

from __future__ import annotations

import dataclasses

from fccomodel.core import ir
from fccomodel.core.rewrite import Rewriter, conjunction, exists


def leave_out(problem: ir.Problem) -> ir.Problem:
    """The problem with a condition for each reduction that is dropped where it is empty.

    ``mean[k in G] E(empty = drop)[z ~ D | z.g == k] e`` then ranges over the ``k`` for which some
    ``z`` has ``z.g == k``. The condition goes to the innermost reduction, family of constraints or
    family of lets that binds one of its indices.
    """
    roots = (*problem.roots, *(let.body for let in problem.lets.values()))
    if not any(is_dropped(node) for node in ir.walk(*roots)):
        return problem
    dropping = Dropping()
    return dataclasses.replace(
        problem,
        objective=dataclasses.replace(problem.objective, expr=dropping.rewrite(problem.objective.expr)),
        constraints=tuple(dropping.constraint(c) for c in problem.constraints),
        lets={name: dropping.let(let) for name, let in problem.lets.items()},
    )


def is_dropped(node: ir.Expr) -> bool:
    """Whether a node is a reduction that is left out where it is empty."""
    if not isinstance(node, ir.Reduce):
        return False
    option = node.options.get("empty")
    return isinstance(option, ir.Label) and option.text == "drop"


class Dropping:
    """Rewrites expressions.

    asked  by the id of a rewritten node, its conditions on the binders around it
    lets   by the id of a let, the let, the let with its conditions, and the conditions as families of
           truth values
    """

    def __init__(self) -> None:
        self.rewrite = Rewriter(self.rule)
        self.asked: dict[int, tuple[ir.Expr, ...]] = {}
        self.lets: dict[int, tuple[ir.Let, ir.Let, tuple[ir.Let, ...]]] = {}

    def constraint(self, constraint: ir.Constraint) -> ir.Constraint:
        """The constraint with the conditions on its indices."""
        body = self.rewrite(constraint.body)
        condition = conjunction([constraint.condition, *self.about(body, constraint.binders)])
        return dataclasses.replace(constraint, body=body, condition=condition)

    def let(self, let: ir.Let) -> ir.Let:
        """The let with the conditions on its indices."""
        ref = ir.LetRef(let=let, args=tuple(ir.Element(binder=b) for b in let.binders))
        rewritten = self.rewrite(ref)
        assert isinstance(rewritten, ir.LetRef)
        return rewritten.let

    def about(self, body: ir.Expr, binders: tuple[ir.Binder, ...]) -> list[ir.Expr]:
        """The conditions of a rewritten body on these binders."""
        return [
            condition
            for condition in self.asked[id(body)]
            if any(binder in binders for binder in ir.free_binders(condition))
        ]

    def rule(self, node: ir.Expr) -> ir.Expr | None:
        """The rewritten node; notes its conditions in ``asked``."""
        below = {id(c): c for child in node.children for c in self.asked[id(child)]}
        asked = list(below.values())
        rewritten = node
        if isinstance(node, ir.Reduce):
            rewritten, asked = self.reduce(node, asked)
        elif isinstance(node, ir.LetRef):
            rewritten = self.use(node)
            args = dict(zip(rewritten.let.binders, node.args, strict=True))
            for member in self.lets[id(rewritten.let)][2]:
                places = tuple(args[b] for b in member.binders)
                if any(isinstance(place, ir.Element) for place in places):
                    asked.append(ir.LetRef(let=member, args=places, span=node.span))
        self.asked[id(rewritten)] = tuple(asked)
        return rewritten

    def reduce(self, node: ir.Reduce, asked: list[ir.Expr]) -> tuple[ir.Reduce, list[ir.Expr]]:
        """A reduction under the conditions on its binders, and the conditions that are left."""
        conditions, restricted = self.about(node.body, node.binders), node
        if conditions:
            restricted = dataclasses.replace(node, condition=conjunction([node.condition, *conditions]))
        outer = [condition for condition in asked if condition not in conditions]
        if is_dropped(node):
            nonempty = exists(restricted)
            if nonempty is not None and ir.free_binders(nonempty):
                outer.append(nonempty)
        return restricted, outer

    def use(self, node: ir.LetRef) -> ir.LetRef:
        """A use of a let under the conditions on its indices."""
        let = node.let
        if id(let) not in self.lets:
            conditions, restricted = self.about(let.body, let.binders), let
            if conditions:
                restricted = dataclasses.replace(let, condition=conjunction(conditions))
            memberships = tuple(_membership(let, condition) for condition in conditions)
            self.lets[id(let)] = self.lets[id(restricted)] = (let, restricted, memberships)
        restricted = self.lets[id(let)][1]
        if restricted is node.let:
            return node
        return dataclasses.replace(node, let=restricted)


def _membership(let: ir.Let, condition: ir.Expr) -> ir.Let:
    """A condition on the indices of a let as a family of truth values."""
    binders = tuple(binder for binder in let.binders if binder in ir.free_binders(condition))
    return dataclasses.replace(let, binders=binders, body=condition)
