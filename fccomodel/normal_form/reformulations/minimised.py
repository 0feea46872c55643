"""maximize F  ->  minimize -F."""

from __future__ import annotations

import dataclasses

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.normal_form.reformulations._base import Constant, Recover, Reformulation, same


def _apply(problem: ir.Problem, constant: Constant) -> tuple[ir.Problem, Recover, list[str]]:
    objective = problem.objective
    if objective.sense == "minimize":
        return problem, same, []
    expr = make("neg", objective.expr, span=objective.expr.span)
    new = dataclasses.replace(problem, objective=dataclasses.replace(objective, sense="minimize", expr=expr))
    return new, same, ["maximize F becomes minimize -F; multipliers are those of the minimised problem"]


reformulation = Reformulation(
    name="minimised", order=10, formula="max F = -min(-F)", apply=_apply, removes=("maximize",)
)
