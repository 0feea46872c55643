"""cvar and topk  ->  their variational form, with one new variable per member."""

from __future__ import annotations

import dataclasses

from fccomodel import diagnostics, ir
from fccomodel.reformulations._base import Point, Recover, Reformulation, same
from fccomodel.reformulations._monotone import wanted_small
from fccomodel.rewrite import apply as make
from fccomodel.rewrite import const, rewrite_problem


def _apply(problem: ir.Problem) -> tuple[ir.Problem, Recover, list[str]]:
    found = [n for e in [problem.objective.expr, *(c.body for c in problem.constraints)] for n in ir.walk(e) if _is_tail(n)]
    if not found:
        return problem, same, []
    small = wanted_small(problem)
    wrong = [n for n in dict.fromkeys(found) if id(n) not in small]
    if wrong:
        raise diagnostics.FccoError([_refuse(problem, node) for node in wrong], problem.source)
    sentences: list[str] = []
    added: dict[str, ir.Variable] = {}
    sets = dict(problem.sets)

    def rule(node: ir.Expr) -> ir.Expr | None:
        if not _is_tail(node):
            return None
        family = ir.free_binders(node)
        name = f"{node.kind}_{len(added) + 1}"
        for binder in family:
            sets.setdefault(binder.domain.name, binder.domain)
        shape = tuple(binder.domain.name for binder in family)
        added[name] = ir.Variable(name=name, shape=shape, span=node.span)
        threshold: ir.Expr = ir.Var(name=name, shape=shape, span=node.span)
        if family:
            threshold = ir.Item(base=threshold, indices=tuple(ir.Element(binder=b) for b in family), span=node.span)
        excess = make("pos", make("sub", node.body, threshold, span=node.body.span), span=node.span)
        tail, kind = (node.options["tail"], "mean") if node.kind == "cvar" else (node.options["k"], "sum")
        total = dataclasses.replace(node, kind=kind, body=excess, options={})
        sentences.append(
            f"{problem.text(node)} = min over s of s + (1/{problem.text(tail) or '..'}) {kind} [e - s]_+: "
            "a scalar variable and the outer function f(u) = [u - s]_+"
        )
        return make("add", threshold, make("mul", make("div", const(1), tail), total), span=node.span)

    new = rewrite_problem(problem, rule)
    new = dataclasses.replace(new, variables=problem.variables | added, sets=sets)

    def recover(point: Point) -> Point:
        return {name: value for name, value in point.items() if name not in added}

    return new, recover, sentences


def _is_tail(node: ir.Expr) -> bool:
    return isinstance(node, ir.Reduce) and node.kind in ("cvar", "topk")


def _refuse(problem: ir.Problem, node: ir.Expr) -> diagnostics.Diagnostic:
    return diagnostics.error(
        "F0601",
        f"{problem.text(node)} stands where a smaller value is not always better",
        span=node.span,
        reason="a tail mean is the least of s + mean [e - s]_+ / tail over s, so it can be minimised or bounded above, not maximised.",
        fix="minimise it, bound it from above, or write the upper tail of the negated quantity.",
    )


reformulation = Reformulation(
    name="cvar",
    order=30,
    formula="cvar_a[k] e = min_s s + (1/a) mean_k [e_k - s]_+;  topk(k) e = (1/k)(k s + sum [e - s]_+)",
    apply=_apply,
    removes=("cvar", "topk"),
    gives=("composition",),
    cite="Rockafellar and Uryasev, 2000; alexr-2025 section 5",
)
