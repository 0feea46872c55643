"""Constraints as penalties in the objective."""

from __future__ import annotations

import dataclasses
from typing import Any

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.normal.penalty import Penalty
from fccomodel.normal.reformulations._base import Constant, Cost, Recover, Reformulation, same
from fccomodel.normal.smoothing import Smoother, envelopes


def penalty(*, name: str, le: str, eq: str, account: str, smooth: bool = False, **how: Any) -> Reformulation:
    """A penalty as a reformulation, by the atoms ``le`` and ``eq`` of a constraint's value.

    smooth   the penalty is replaced by its Moreau envelope, whose slope is the multiplier
    how      fields of ``Penalty`` (``factor``, ``scale``), and of ``Reformulation``
    """
    fields = {key: how.pop(key) for key in ("factor", "scale") if key in how}

    def apply(problem: ir.Problem, constant: Constant) -> tuple[ir.Problem, Recover, list[str]]:
        smoother = Smoother(constant=constant, first=len(envelopes(problem.objective.expr)))
        objective = problem.objective.expr
        for constraint in problem.constraints:
            if not ir.variables_of(constraint.body):
                continue
            made = Penalty(
                label=constraint.label,
                kind=constraint.kind,
                op=le if constraint.kind == "le" else eq,
                args=(constraint.body,),
                span=constraint.span,
                **fields,
            )
            term: ir.Expr = smoother.penalty(made) if smooth else made
            if constraint.binders:
                term = ir.Reduce(
                    kind="sum", binders=constraint.binders, condition=constraint.condition, body=term, span=constraint.span
                )
            objective = make("add", objective, term, span=constraint.span)
        new = dataclasses.replace(problem, objective=dataclasses.replace(problem.objective, expr=objective), constraints=())
        return new, same, [account] if problem.constraints else []

    return Reformulation(
        name=name, title=f"{name} penalty".replace("_", " "), role="penalty", apply=apply, removes=("constraints",),
        gives=("envelopes",) if smooth else ("kinks outside",) if "factor" not in fields else (),
        needs="multipliers exist", cost=Cost(blocks=1, number=2.0), **how,
    )  # fmt: skip
