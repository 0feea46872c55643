"""``(empty = drop)``: what ranges around such a reduction leaves out the elements for which it has no
elements itself."""

from __future__ import annotations

import dataclasses

from fccomodel.core import ir
from fccomodel.core.rewrite import Rewriter, conjunction, exists


def leave_out(problem: ir.Problem) -> ir.Problem:
    """The problem whose conditions say so: ``mean[k in G] E(empty = drop)[z ~ D | z.g == k] e`` ranges
    over the ``k`` for which some ``z`` has ``z.g == k``.

    Such a condition belongs to the innermost reduction, family of constraints or of lets that binds
    one of its indices.
    """
    roots = (*problem.roots, *(let.body for let in problem.lets.values()))
    if not any(drops(node) for node in ir.walk(*roots)):
        return problem
    dropping = Dropping()
    return dataclasses.replace(
        problem,
        objective=dataclasses.replace(problem.objective, expr=dropping.rewrite(problem.objective.expr)),
        constraints=tuple(dropping.constraint(c) for c in problem.constraints),
        lets={name: dropping.let(let) for name, let in problem.lets.items()},
    )


def drops(node: ir.Expr) -> bool:
    """A reduction that is left out where it has no elements."""
    return (
        isinstance(node, ir.Reduce)
        and isinstance(option := node.options.get("empty"), ir.Label)
        and option.text == "drop"
    )


class Dropping:
    """Rewrites expressions; ``asked`` holds, by the id of a rewritten node, the conditions that it
    asks of the binders around."""

    def __init__(self) -> None:
        self.rewrite = Rewriter(self.rule)
        self.asked: dict[int, tuple[ir.Expr, ...]] = {}
        self.lets: dict[int, tuple[ir.Let, ir.Let, tuple[ir.Let, ...]]] = {}

    def constraint(self, constraint: ir.Constraint) -> ir.Constraint:
        body = self.rewrite(constraint.body)
        condition = conjunction([constraint.condition, *self.about(body, constraint.binders)])
        return dataclasses.replace(constraint, body=body, condition=condition)

    def let(self, let: ir.Let) -> ir.Let:
        ref = ir.LetRef(let=let, args=tuple(ir.Element(binder=b) for b in let.binders))
        rewritten = self.rewrite(ref)
        assert isinstance(rewritten, ir.LetRef)
        return rewritten.let

    def about(self, body: ir.Expr, binders: tuple[ir.Binder, ...]) -> list[ir.Expr]:
        """What a rewritten body asks of these binders."""
        return [c for c in self.asked[id(body)] if any(b in binders for b in ir.free_binders(c))]

    def rule(self, node: ir.Expr) -> ir.Expr | None:
        below = (c for child in node.children for c in self.asked[id(child)])
        asked = list({id(c): c for c in below}.values())
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
        conditions = self.about(node.body, node.binders)
        if conditions:
            restricted = dataclasses.replace(node, condition=conjunction([node.condition, *conditions]))
        else:
            restricted = node
        outer = [c for c in asked if c not in conditions]
        if drops(node) and (nonempty := exists(restricted)) is not None and ir.free_binders(nonempty):
            outer.append(nonempty)
        return restricted, outer

    def use(self, node: ir.LetRef) -> ir.LetRef:
        """A use of a let whose family knows its members; kept with it, the families of truth values
        that say which there are."""
        if id(node.let) not in self.lets:
            conditions = self.about(node.let.body, node.let.binders)
            if conditions:
                restricted = dataclasses.replace(node.let, condition=conjunction(conditions))
            else:
                restricted = node.let
            bound = (tuple(b for b in node.let.binders if b in ir.free_binders(c)) for c in conditions)
            memberships = tuple(
                dataclasses.replace(node.let, binders=b, body=c)
                for b, c in zip(bound, conditions, strict=True)
            )
            self.lets[id(node.let)] = self.lets[id(restricted)] = (node.let, restricted, memberships)
        restricted = self.lets[id(node.let)][1]
        if restricted is node.let:
            return node
        return dataclasses.replace(node, let=restricted)
