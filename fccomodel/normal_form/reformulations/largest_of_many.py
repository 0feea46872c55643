"""A maximum or minimum of many elements  ->  a tail mean, whose elements are sampled."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import const, rewrite_problem
from fccomodel.library import reductions
from fccomodel.library.reductions.sum import SUM
from fccomodel.library.reductions.topk import TOPK
from fccomodel.normal_form.reformulations._base import Additions, Constant, Recover, Reformulation, same

TOGETHER = 4096  # elements of a maximum that one step may see together
FEATURE = "largest of many"


def _apply(problem: ir.Problem, constant: Constant) -> tuple[ir.Problem, Recover, list[str]]:
    sentences: list[str] = []

    def rule(node: ir.Expr) -> ir.Expr | None:
        """The tail mean for a maximum or minimum of many elements, or None for any other node."""
        if not is_of_many(node, constant):
            return None
        assert isinstance(node, ir.Reduce)
        sentences.append(
            f"{problem.text(node)} by {TOPK.name}(k = 1) of the same elements, more than {TOGETHER:,}"
        )
        if reductions.of(node).sign > 0:
            return TOPK.over(node, k=const(1))
        negated = make("neg", node.body, span=node.body.span)
        return make("neg", TOPK.over(node, negated, k=const(1)), span=node.span)

    return rewrite_problem(problem, rule), same, sentences


def is_of_many(node: ir.Expr, constant: Constant) -> bool:
    """Whether the node is a maximum or minimum over more than ``TOGETHER`` elements, by a known count."""
    if not isinstance(node, ir.Reduce) or not reductions.of(node).extreme:
        return False
    if any(isinstance(b.domain, ir.VectorSet) for b in node.binders):
        return False
    count = constant(SUM.over(node, const(1)))
    return count is not None and count > TOGETHER


reformulation = Reformulation(
    name="largest_of_many",
    title="largest of many",
    order=20,
    needs=f"a maximum or minimum over more than {TOGETHER:,} elements",
    formula="max_k e_k = topk(k = 1) e = min_s s + sum_k [e_k - s]_+;  min_k e_k = -max_k -e_k",
    apply=_apply,
    removes=(FEATURE,),
    gives=("topk",),
    cost=Additions(number=0.1),
    cite="Rockafellar and Uryasev, 2000",
)
