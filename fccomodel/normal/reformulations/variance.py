"""variance e  ->  E e^2 - (E e)^2, with one draw for both expectations."""

from __future__ import annotations

import dataclasses

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import rewrite_problem
from fccomodel.normal.reformulations._base import Constant, Cost, Recover, Reformulation, same


def _apply(problem: ir.Problem, constant: Constant) -> tuple[ir.Problem, Recover, list[str]]:
    sentences: list[str] = []

    def rule(node: ir.Expr) -> ir.Expr | None:
        if not (isinstance(node, ir.Reduce) and node.kind == "variance"):
            return None
        sentences.append(
            f"{problem.text(node)} = E e^2 - (E e)^2: an outer function f(u) = -u^2 of the tracked mean, and a sampled mean"
        )
        mean = dataclasses.replace(node, kind="E")
        second = dataclasses.replace(node, kind="E", body=make("square", node.body, span=node.body.span))
        return make("sub", second, make("square", mean), span=node.span)

    return rewrite_problem(problem, rule), same, sentences


reformulation = Reformulation(
    name="variance",
    order=20,
    formula="variance[z] e = E[z] e^2 - (E[z] e)^2",
    apply=_apply,
    removes=("variance",),
    cost=Cost(blocks=1),
    cite="ascvrg-2021 section 4; hscg-2020 equation (33)",
)
