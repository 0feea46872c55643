"""The worst of a family  ->  its plain mean. This is another problem, which sgd_uw solves."""

from __future__ import annotations

import dataclasses

from fccomodel.core import ir
from fccomodel.core.rewrite import rewrite_problem
from fccomodel.library import reductions
from fccomodel.library.reductions.mean import MEAN
from fccomodel.normal_form.reformulations._base import Additions, Constant, Recover, Reformulation, same
from fccomodel.normal_form.reformulations._features import COUPLING, is_inner_maximum
from fccomodel.normal_form.reformulations.robust import tilted

SURROGATE = "surrogate: solves another problem"


def worst(node: ir.Expr, problem: ir.Problem) -> ir.Reduce | None:
    """The reduction over a family that takes its worst member, with the members' risks; or None."""
    if not isinstance(node, ir.Reduce):
        return None
    if is_inner_maximum(node):
        parts = tilted(node, problem)
        if parts is None:
            return None
        return dataclasses.replace(parts.total, body=parts.risk, span=node.span)
    if reductions.of(node).worst:
        return node
    return None


def _apply(problem: ir.Problem, constant: Constant) -> tuple[ir.Problem, Recover, list[str]]:
    sentences: list[str] = []

    def rule(node: ir.Expr) -> ir.Expr | None:
        """The mean of a family for its worst member, or None for any other node."""
        family = worst(node, problem)
        if family is None:
            return None
        sentences.append(f"{SURROGATE}, the mean in place of {problem.text(node)}")
        return MEAN.over(family)

    return rewrite_problem(problem, rule), same, sentences


reformulation = Reformulation(
    name="group_average",
    title="group average",
    order=5,
    role="surrogate",
    formula="cvar, topk, max, logmeanexp or max_q q.r over k of r_k  ->  mean_k r_k",
    apply=_apply,
    removes=("worst case", *sorted(COUPLING)),
    cost=Additions(number=0.5),
    cite="alexr-2025 section 6 (SGD-UW)",
)
