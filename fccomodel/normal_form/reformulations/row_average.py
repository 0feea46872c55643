"""The worst of groups of rows  ->  the mean over all rows. This is another problem, which sgd solves."""

from __future__ import annotations

import dataclasses

from fccomodel.core import ir
from fccomodel.core.rewrite import conjunction, conjuncts, rewrite_problem, substitute
from fccomodel.library import reductions
from fccomodel.normal_form.reformulations._base import Additions, Constant, Recover, Reformulation, same
from fccomodel.normal_form.reformulations._features import COUPLING
from fccomodel.normal_form.reformulations.group_average import SURROGATE, worst


def _apply(problem: ir.Problem, constant: Constant) -> tuple[ir.Problem, Recover, list[str]]:
    sentences: list[str] = []

    def rule(node: ir.Expr) -> ir.Expr | None:
        """The mean over all rows for the worst of groups, or None for any other node."""
        family = worst(node, problem)
        if family is None:
            rows = None
        else:
            rows = pooled(family)
        if rows is not None:
            sentences.append(f"{SURROGATE}, the mean over all rows in place of {problem.text(node)}")
        return rows

    return rewrite_problem(problem, rule), same, sentences


def pooled(family: ir.Reduce) -> ir.Expr | None:
    """The expectation over the rows of all members, if the members are expectations over rows; or None."""
    member = family.body
    while isinstance(member, ir.LetRef):
        chosen = {
            b: a for b, a in zip(member.let.binders, member.args, strict=True) if isinstance(a, ir.Element)
        }
        if len(chosen) < len(member.args):
            return None
        member = substitute(member.let.body, chosen)
    if not isinstance(member, ir.Reduce) or not reductions.of(member).average:
        return None
    binders = set(family.binders)
    condition = conjunction(c for c in conjuncts(member.condition) if binders.isdisjoint(ir.free_binders(c)))
    everything = dataclasses.replace(member, condition=condition, span=family.span)
    if binders.isdisjoint(ir.free_binders(everything)):
        return everything
    return None


reformulation = Reformulation(
    name="row_average",
    title="row average",
    order=6,
    role="surrogate",
    formula="cvar, topk, max, logmeanexp or max_q q.r over k of E[l | group k]  ->  E l, over the rows "
    "of all groups",
    needs="the groups partition the rows",
    apply=_apply,
    removes=("worst case", *sorted(COUPLING)),
    cost=Additions(number=0.5),
    cite="alexr-2025 section 6 (SGD)",
)
