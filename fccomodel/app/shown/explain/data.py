"""What was found about a model and why, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isinf
from typing import Any

from fccomodel import algorithms
from fccomodel.app.shown.explain import notes
from fccomodel.core import ir
from fccomodel.core.diagnostics import Diagnostic
from fccomodel.core.options import AUTOMATIC
from fccomodel.library.amounts import Amount
from fccomodel.plan.assumptions import Finding
from fccomodel.plan.candidates import Candidate
from fccomodel.plan.ranking import rank, rejected
from fccomodel.structure import RULES, Analysis
from fccomodel.structure.facts import Fact, Facts


def to_json(
    analysis: Analysis,
    plan: Any = None,
    *,
    candidates: Mapping[str, Candidate] | None = None,
    refusal: Sequence[Diagnostic] = (),
) -> dict[str, Any]:
    """Everything of the explanation as plain values.

    ``objective`` and each of ``constraints`` hold ``curvature`` (of the expression as the user
    wrote it; of c(w) in c(w) <= 0), ``smooth``, ``lipschitz``, ``gradient_lipschitz`` and
    ``weak_convexity`` (a number, ``"finite"`` where one exists that is not known, or None),
    ``monotone`` per variable, ``standing``, ``reason``. ``minimised`` is the objective's curvature
    in the direction that is minimised. ``nodes`` has every expression that the variables enter,
    outermost first: its text, its place, and each of its facts with rule, reason and standing.
    ``algorithm``, ``via`` and ``rejected`` come from a plan; where there is none, ``refused`` says
    what the model lacks (None elsewhere), and ``rejected`` what each of the candidates does.
    """
    problem = analysis.problem
    objective = problem.objective
    head = {"sense": objective.sense, "label": objective.label, "text": problem.text(objective.expr)}
    normal = normal_of(plan, candidates)
    if refusal and not candidates:
        formless = {name: [one.message for one in refusal] for name in algorithms.all()}
    else:
        formless = {}
    if plan is not None:
        lacking = getattr(plan, "rejected", {})
    else:
        lacking = formless or _unsuited(candidates or {})
    return {
        "model": problem.name,
        "convex": analysis.convex,
        "objective": head | _facts_json(analysis.objective) | {"minimised": analysis.minimised.curvature},
        "constraints": {
            c.label: {"text": problem.text(c.body), "kind": c.kind}
            | _facts_json(analysis.constraints[c.label])
            for c in problem.constraints
        },
        "nodes": _nodes_json(analysis),
        "algorithm": getattr(plan, "algorithm", None),
        "via": list(getattr(plan, "via", ())),
        "rejected": {name: list(lacks) for name, lacks in lacking.items()},
        "refused": [_refusal_json(analysis, one) for one in refusal] or None,
        **(plan_json(plan) if getattr(plan, "findings", None) else {}),
        "structure": [_term_json(t) for t in getattr(normal, "terms", ())],
        "warnings": notes.warnings(analysis, plan),
    }


def _unsuited(candidates: Mapping[str, Candidate]) -> dict[str, list[str]]:
    """What each algorithm lacks where none is chosen."""
    return rejected(candidates, None, rank(candidates))


def normal_of(plan: Any, candidates: Mapping[str, Candidate] | None) -> Any:
    """The form that the plan's algorithm takes; of what nothing solves, that which all were judged by."""
    judged = next((one.setting.normal for one in (candidates or {}).values()), None)
    if plan is None:
        return judged
    return getattr(plan, "normal", None)


def _refusal_json(analysis: Analysis, one: Diagnostic) -> dict[str, Any]:
    told = {name: getattr(one, name) for name in ("code", "topic", "message", "reason", "fix")}
    return told | {"place": None if one.span is None else list(analysis.problem.source.place(one.span))}


def plan_json(plan: Any) -> dict[str, Any]:
    """How the theorem's assumptions are met, its rate, the constants of its schedule, and what it does
    not cover."""
    constants, promise = plan.constants, plan.promise
    return {
        "theorem": None if promise is None else promise.name,
        "guarantee": plan.guarantee,
        "choice": {**plan.ranking.to_json(), "named": named(plan), "entrants": list(plan.entrants)},
        "unverified": list(plan.unverified),
        "assumptions": findings_json(plan.clauses, plan.findings),
        "practice": list(plan.practice),
        "rate": {
            "formula": "" if promise is None else promise.rate,
            "counts": plan.counts,
            "here": plan.rate,
        },
        "constants": {
            name: {"value": getattr(constants, name), "standing": s} for name, s in constants.standing.items()
        }
        if constants
        else None,
        "steps": plan.schedule.steps if constants else None,
        "undefined": list(plan.undefined),
    }


def named(plan: Any) -> bool:
    """The algorithm is the one that an option names."""
    return bool(plan.options["algorithm"][1] != AUTOMATIC and not plan.entrants)


def findings_json(clauses: Mapping[str, str], findings: Mapping[str, Finding]) -> dict[str, dict[str, Any]]:
    """How each assumption of a theorem is met; ``clauses``: where the theorem states it."""
    return {
        name: {
            "clause": clauses[name],
            "holds": finding.holds,
            "standing": str(finding.standing) if finding.holds else None,
            "why": finding.why,
            "practice": finding.practice,
            "subject": finding.subject,
        }
        for name, finding in findings.items()
    }


def _facts_json(f: Facts) -> dict[str, Any]:
    fact = f.curvature_fact
    return {
        "curvature": f.curvature,
        "smooth": f.smooth,
        "lipschitz": _number(f.lipschitz.value),
        "gradient_lipschitz": _number(f.gradient.value) if f.smooth else None,
        "weak_convexity": _number(f.below.value),
        "range": [None if isinf(x) else x for x in f.interval.value[:2]],
        "monotone": {name: f.monotone(name) for name in sorted(f.leaves)},
        "standing": {"curvature": str(fact.standing), "smooth": str(f.differentiable.standing)},
        "reason": reason(fact),
    }


def _nodes_json(analysis: Analysis) -> list[dict[str, Any]]:
    problem = analysis.problem
    nodes: dict[int, ir.Expr] = {}
    for root in problem.roots:
        nodes |= {id(node): node for node in reversed(list(ir.walk(root))) if not isinstance(node, ir.LetRef)}
    return [_node_json(analysis, node) for node in nodes.values() if not analysis.see(node).constant]


def _node_json(analysis: Analysis, node: ir.Expr) -> dict[str, Any]:
    f, place = analysis.see(node), analysis.problem.source.place(node.span)
    facts = {
        fact.kind: {
            "says": str(fact),
            "rule": fact.rule,
            "reason": fact.reason,
            "standing": str(fact.standing),
        }
        for fact in f.facts()
        if fact.holds
    }
    return {
        "text": analysis.problem.text(node),
        "place": list(place),
        "curvature": f.curvature,
        "monotone": {name: f.monotone(name) for name in sorted(f.leaves)},
        "facts": facts,
        "undefined": [fact.reason for fact in f.domain],
    }


def _number(value: Amount) -> float | str | None:
    if not value.finite:
        return None
    if value.known:
        return value.value
    return "finite"


def _term_json(term: Any) -> dict[str, Any]:
    names = ("label", "text", "kind", "outer", "inner", "n", "d1", "depth")
    fields = {name: getattr(term, name) for name in names if hasattr(term, name)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}


def reason(fact: Fact) -> str:
    """The rule's name, and what it says here."""
    if fact.rule == "no rule":
        return fact.reason or "no rule gives it"
    if fact.reason:
        return f"{fact.rule}: {fact.reason}"
    return f"{fact.rule}: {RULES[fact.rule]}"
