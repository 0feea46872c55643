"""The largest of a family  ->  a bound on all members: a new variable and a constraint per member."""

from __future__ import annotations

import dataclasses

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import rewrite_problem
from fccomodel.normal_form.reformulations._base import Additions, Constant, Recover, Reformulation, same
from fccomodel.normal_form.reformulations._features import is_inner_maximum, is_largest
from fccomodel.normal_form.reformulations._monotone import require_small
from fccomodel.normal_form.reformulations._threshold import Thresholds


def _apply(problem: ir.Problem, constant: Constant) -> tuple[ir.Problem, Recover, list[str]]:
    maxima = [node for node in problem.expressions() if _is_largest(node)]
    if not maxima:
        return problem, same, []
    require_small(problem, maxima, "a maximum")
    thresholds = Thresholds(problem)
    bounds: list[ir.Constraint] = []
    sentences: list[str] = []

    def rule(node: ir.Expr) -> ir.Expr | None:
        """The new variable for a maximum over a family, or None for any other node."""
        if not isinstance(node, ir.Reduce) or not _is_largest(node):
            return None
        binders = (*ir.free_binders(node), *node.binders)
        upper_bound = thresholds.new(node)
        bounds.append(
            ir.Constraint(
                label=next(reversed(thresholds.added)),
                body=make("sub", node.body, upper_bound, span=node.span),
                written=(node.body, "<=", upper_bound),
                binders=binders,
                condition=node.condition,
                span=node.span,
            )
        )
        sentences.append(
            f"{problem.text(node)} = min s subject to e <= s for every member: a variable and a "
            "constraint family"
        )
        return upper_bound

    new = rewrite_problem(problem, rule)
    new = dataclasses.replace(
        new, variables=thresholds.variables, sets=thresholds.sets, constraints=(*new.constraints, *bounds)
    )
    return new, thresholds.recover(), sentences


def _is_largest(node: ir.Expr) -> bool:
    """Whether the node is a maximum over a set that is no set of vectors."""
    return is_largest(node) and not is_inner_maximum(node)


reformulation = Reformulation(
    name="worst_group",
    title="worst group",
    order=50,
    role="epigraph",
    formula="max_k e_k = min s  subject to  e_k <= s for every k;  the multipliers are the weights q_k "
    "of the worst case",
    apply=_apply,
    needs="a maximum that the problem wants small",
    removes=("worst case", "kinks outside"),
    gives=("constraints",),
    cost=Additions(variables=1, blocks=1, number=3.0),
    cite="epigraph form: Boyd and Vandenberghe, 2004, section 4.1.3",
)
