"""max over q in a simplex of a tilted average  ->  its dual: KL to log-mean-exp, capped simplex to cvar, simplex to max."""

from __future__ import annotations

import dataclasses

from fccomodel import diagnostics, ir
from fccomodel.reformulations._base import Recover, Reformulation, same
from fccomodel.rewrite import const, rewrite_problem


def _apply(problem: ir.Problem) -> tuple[ir.Problem, Recover, list[str]]:
    sentences: list[str] = []
    refused: list[diagnostics.Diagnostic] = []

    def rule(node: ir.Expr) -> ir.Expr | None:
        if not (isinstance(node, ir.Reduce) and len(node.binders) == 1 and isinstance(node.binders[0].domain, ir.VectorSet)):
            return None
        parts = _parts(node)
        if node.kind != "max" or parts is None:
            refused.append(
                diagnostics.error(
                    "F0602",
                    f"no dual is known for {problem.text(node)}",
                    span=node.span,
                    reason="known are max[q in simplex(K)] or capped_simplex(K, a) of sum[k in K] q[k] * r[k], less mu * kl(q, uniform(K)) "
                    "or mu * chi2(q, uniform(K)).",
                    fix="write the maximum in one of these forms, or its dual yourself.",
                )
            )
            return None
        average, penalty, mu = parts
        total, risk = average
        family = node.binders[0].domain.family
        common = dataclasses.replace(total, body=risk, options={})
        if penalty == "kl":
            sentences.append(f"{problem.text(node)} = mu log mean exp(r / mu), the dual of the KL penalty")
            return dataclasses.replace(common, kind="logmeanexp", options={"theta": mu}, span=node.span)
        if family == "capped_simplex":
            sentences.append(f"{problem.text(node)} = cvar(tail = a) r, the dual of the capped simplex")
            return dataclasses.replace(common, kind="cvar", options={"tail": node.binders[0].domain.args[-1]}, span=node.span)
        sentences.append(f"{problem.text(node)} = max r, the value at a vertex of the simplex")
        return dataclasses.replace(common, kind="max", span=node.span)

    new = rewrite_problem(problem, rule)
    if refused:
        raise diagnostics.FccoError(refused, problem.source)
    return new, same, sentences


def _parts(node: ir.Reduce) -> tuple[tuple[ir.Reduce, ir.Expr], str | None, ir.Expr] | None:
    """((sum, r), penalty's name, mu) of ``sum q r - mu * penalty(q, uniform)``."""
    body, q = node.body, node.binders[0]
    penalty, mu = None, const(1)
    if isinstance(body, ir.Apply) and body.op == "sub":
        body, cost = body.args
        if isinstance(cost, ir.Apply) and cost.op == "mul" and not ir.variables_of(cost.args[0]):
            mu, cost = cost.args
        if not (isinstance(cost, ir.Apply) and cost.op == "kl" and _is(cost.args[0], q)):
            return None
        penalty = "kl"
    if not (isinstance(body, ir.Reduce) and body.kind == "sum" and isinstance(body.body, ir.Apply) and body.body.op == "mul"):
        return None
    for weight, risk in (body.body.args, body.body.args[::-1]):
        if isinstance(weight, ir.Item) and _is(weight.base, q) and all(b is not q for b in ir.free_binders(risk)):
            if penalty and node.binders[0].domain.family != "simplex":
                return None
            return (body, risk), penalty, mu
    return None


def _is(expr: ir.Expr, binder: ir.Binder) -> bool:
    return isinstance(expr, ir.Element) and expr.binder is binder


reformulation = Reformulation(
    name="robust",
    order=25,
    formula="max_{q in simplex} q.r - mu KL(q, 1/n) = mu log mean exp(r/mu);  max over the capped simplex = cvar",
    apply=_apply,
    removes=("inner maximum",),
    gives=("composition",),
    cite="alexr-2025 section 1",
)
