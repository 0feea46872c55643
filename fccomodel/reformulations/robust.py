"""max over q in a simplex of a tilted average  ->  its dual: KL to log-mean-exp, chi2 and capped simplex to a threshold."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from fccomodel import diagnostics, ir
from fccomodel.reformulations._base import Constant, Recover, Reformulation, same
from fccomodel.reformulations._monotone import sign_of, wanted_small
from fccomodel.reformulations._threshold import Thresholds
from fccomodel.reformulations.cvar import refused
from fccomodel.rewrite import apply as make
from fccomodel.rewrite import const, rewrite_problem


@dataclass(frozen=True, kw_only=True)
class Tilted:
    """``max over q of sum[k in K] q[k] r - mu * penalty(q, uniform(K))``; ``total`` is the sum, ``penalty`` '' without one."""

    total: ir.Reduce
    risk: ir.Expr
    domain: ir.VectorSet
    penalty: str = ""
    mu: ir.Expr | None = None


def _apply(problem: ir.Problem, constant: Constant) -> tuple[ir.Problem, Recover, list[str]]:
    roots = [problem.objective.expr, *(c.body for c in problem.constraints)]
    found = {id(n): n for root in roots for n in ir.walk(root) if _is_inner_maximum(n)}
    if not found:
        return problem, same, []
    small = wanted_small(problem)
    errors = []
    for key, node in found.items():
        assert isinstance(node, ir.Reduce)
        parts = tilted(node, problem)
        if parts is None:
            errors.append(_no_dual(problem, node))
        elif parts.penalty == "chi2" and key not in small:
            errors.append(refused(problem, node, "the dual of the chi2 penalty"))
    if errors:
        raise diagnostics.FccoError(errors, problem.source)
    thresholds = Thresholds(problem)
    sentences: list[str] = []

    def rule(node: ir.Expr) -> ir.Expr | None:
        if not (isinstance(node, ir.Reduce) and _is_inner_maximum(node)):
            return None
        parts = tilted(node, problem)
        assert parts is not None
        text = problem.text(node)
        common = dataclasses.replace(parts.total, body=parts.risk, options={}, span=node.span)
        if parts.penalty == "kl":
            assert parts.mu is not None
            sentences.append(f"{text} = mu log mean exp(r / mu), the dual of the KL penalty")
            return dataclasses.replace(common, kind="logmeanexp", options={"theta": parts.mu})
        if parts.penalty == "chi2":
            assert parts.mu is not None
            sentences.append(f"{text} = min over s of s - mu + (mu/4) mean [(r - s)/mu + 2]_+^2, the dual of the chi2 penalty")
            s = thresholds.new(node)
            scaled = make("add", make("div", make("sub", parts.risk, s), parts.mu), const(2))
            mean = dataclasses.replace(common, kind="mean", body=make("sqhinge", scaled, span=parts.risk.span))
            return make("add", make("sub", s, parts.mu), make("mul", make("div", parts.mu, const(4)), mean), span=node.span)
        if parts.domain.family == "capped_simplex":
            sentences.append(f"{text} = cvar(tail = alpha) r, the dual of the capped simplex")
            return dataclasses.replace(common, kind="cvar", options={"tail": parts.domain.args[-1]})
        sentences.append(f"{text} = max r, the value at a vertex of the simplex")
        return dataclasses.replace(common, kind="max")

    new = rewrite_problem(problem, rule)
    return dataclasses.replace(new, variables=thresholds.variables, sets=thresholds.sets), thresholds.recover(), sentences


def _is_inner_maximum(node: ir.Expr) -> bool:
    return isinstance(node, ir.Reduce) and any(isinstance(b.domain, ir.VectorSet) for b in node.binders)


def tilted(node: ir.Reduce, problem: ir.Problem) -> Tilted | None:
    """The parts of a maximum whose dual is known, or None."""
    domain = node.binders[0].domain
    if node.kind != "max" or len(node.binders) > 1 or node.condition is not None or not isinstance(domain, ir.VectorSet):
        return None
    if domain.family not in ("simplex", "capped_simplex"):
        return None
    body, q = node.body, node.binders[0]
    penalty = ""
    mu: ir.Expr | None = None
    if isinstance(body, ir.Apply) and body.op == "sub":
        body, cost = body.args
        mu = const(1)
        if isinstance(cost, ir.Apply) and cost.op == "mul":
            first, second = cost.args
            mu, cost = (first, second) if not ir.free_binders(first) else (second, first)
        known = isinstance(cost, ir.Apply) and cost.op in ("kl", "chi2") and _is(cost.args[0], q) and _uniform(cost.args[1])
        if not known or domain.family != "simplex" or sign_of(mu, problem) <= 0 or ir.variables_of(mu):
            return None
        assert isinstance(cost, ir.Apply)
        penalty = cost.op
    if not (isinstance(body, ir.Reduce) and body.kind == "sum" and isinstance(body.body, ir.Apply) and body.body.op == "mul"):
        return None
    if len(body.binders) != 1 or body.condition is not None:
        return None
    for weight, risk in (body.body.args, body.body.args[::-1]):
        if (
            isinstance(weight, ir.Item)
            and _is(weight.base, q)
            and q not in ir.free_binders(risk)
            and _at(weight, body.binders[0])
        ):
            return Tilted(total=body, risk=risk, domain=domain, penalty=penalty, mu=mu)
    return None


def _is(expr: ir.Expr, binder: ir.Binder) -> bool:
    return isinstance(expr, ir.Element) and expr.binder is binder


def _at(item: ir.Item, binder: ir.Binder) -> bool:
    """``q[k]`` with k the binder of the sum."""
    return len(item.indices) == 1 and _is(item.indices[0], binder)


def _uniform(expr: ir.Expr) -> bool:
    """``uniform(K)``: ones over the number of members."""
    match expr:
        case ir.Apply(op="div", args=(ir.Const(value=1), ir.Size())):
            return True
    return False


def _no_dual(problem: ir.Problem, node: ir.Expr) -> diagnostics.Diagnostic:
    return diagnostics.error(
        "F0602",
        f"no dual is known for {problem.text(node)}",
        span=node.span,
        reason="known are the maxima over q in simplex(K) or capped_simplex(K, a) of sum[k in K] q[k] * r, over the simplex also "
        "less mu * kl(q, uniform(K)) or mu * chi2(q, uniform(K)) with mu >= 0.",
        fix="write the maximum in one of these forms, or its dual yourself.",
    )


reformulation = Reformulation(
    name="robust",
    order=25,
    formula="max_{q in simplex} q.r - mu KL(q, 1/n) = mu log mean exp(r/mu);  - mu chi2(q, 1/n): "
    "min_s s - mu + (mu/4) mean [(r-s)/mu + 2]_+^2;  over the capped simplex: cvar",
    apply=_apply,
    removes=("inner maximum",),
    gives=("composition",),
    cite="alexr-2025 section 1; phi(t) = (t-1)^2 has phi*(s) = (s+2)_+^2/4 - 1",
)
