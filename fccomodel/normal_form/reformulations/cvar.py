"""Tail means  ->  their variational form, with one new variable per member."""

from __future__ import annotations

import dataclasses

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import const, rewrite_problem
from fccomodel.library import reductions
from fccomodel.library.reductions.mean import MEAN
from fccomodel.library.reductions.sum import SUM
from fccomodel.normal_form.reformulations._base import Additions, Constant, Recover, Reformulation, same
from fccomodel.normal_form.reformulations._monotone import require_small
from fccomodel.normal_form.reformulations._threshold import Thresholds


def _apply(problem: ir.Problem, constant: Constant) -> tuple[ir.Problem, Recover, list[str]]:
    tails = [node for node in problem.expressions() if _is_tail(node)]
    if not tails:
        return problem, same, []
    require_small(problem, tails, "a tail mean")
    thresholds = Thresholds(problem)
    sentences: list[str] = []

    def rule(node: ir.Expr) -> ir.Expr | None:
        """The variational form of a tail mean, or None for any other node."""
        if not (isinstance(node, ir.Reduce) and _is_tail(node)):
            return None
        threshold = thresholds.new(node)
        excess = make("pos", make("sub", node.body, threshold, span=node.body.span), span=node.span)
        option = reductions.of(node).option
        assert option is not None
        tail, kind = node.options[option.name], SUM if option.counts else MEAN
        total = kind.over(node, excess)
        sentences.append(
            f"{problem.text(node)} = min over s of s + (1/{problem.text(tail) or '..'}) {kind.name} "
            "[e - s]_+: a scalar variable and the outer function f(u) = [u - s]_+"
        )
        return make("add", threshold, make("mul", make("div", const(1), tail), total), span=node.span)

    new = rewrite_problem(problem, rule)
    return (
        dataclasses.replace(new, variables=thresholds.variables, sets=thresholds.sets),
        thresholds.recover(),
        sentences,
    )


def _is_tail(node: ir.Expr) -> bool:
    """Whether the node is a tail mean."""
    return isinstance(node, ir.Reduce) and reductions.of(node).tail


reformulation = Reformulation(
    name="cvar",
    order=30,
    title="variational tail mean",
    needs="a tail mean that the problem wants small",
    cost=Additions(variables=1),
    formula="cvar_a[k] e = min_s s + (1/a) mean_k [e_k - s]_+;  topk(k) e = (1/k)(k s + sum [e - s]_+)",
    apply=_apply,
    removes=reductions.named(lambda kind: kind.tail),
    gives=("kinks outside",),
    cite="Rockafellar and Uryasev, 2000; alexr-2025 section 5",
)
