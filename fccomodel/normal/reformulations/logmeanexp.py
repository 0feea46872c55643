"""logmeanexp and pmean  ->  an outer function of a mean."""

from __future__ import annotations

import dataclasses

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import const, rewrite_problem
from fccomodel.normal.reformulations._base import Constant, Cost, Recover, Reformulation, same


def _apply(problem: ir.Problem, constant: Constant) -> tuple[ir.Problem, Recover, list[str]]:
    sentences: list[str] = []

    def rule(node: ir.Expr) -> ir.Expr | None:
        if not isinstance(node, ir.Reduce) or node.kind not in ("logmeanexp", "pmean"):
            return None
        if node.kind == "logmeanexp":
            theta = node.options.get("theta", const(1))
            inner = dataclasses.replace(node, kind="E", body=make("exp", make("div", node.body, theta)), options={})
            sentences.append(f"{problem.text(node)} = theta log E exp(e / theta): the outer function f(u) = theta log u")
            return make("mul", theta, make("log", inner, span=node.span), span=node.span)
        p = node.options["p"]
        inner = dataclasses.replace(node, kind="E", body=make("pow", node.body, p), options={})
        sentences.append(f"{problem.text(node)} = (E e^p)^(1/p): the outer function f(u) = u^(1/p)")
        return make("pow", inner, make("div", const(1), p), span=node.span)

    return rewrite_problem(problem, rule), same, sentences


reformulation = Reformulation(
    name="logmeanexp",
    order=40,
    formula="logmeanexp_t e = t log E exp(e/t);  pmean_p e = (E e^p)^(1/p)",
    apply=_apply,
    removes=("logmeanexp", "pmean"),
    cost=Cost(blocks=1),
    cite="alexr-2025 section 1 (entropic risk)",
)
