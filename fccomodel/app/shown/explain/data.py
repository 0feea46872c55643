"""The explanation of a model as plain values."""

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
from fccomodel.normal_form import NormalForm
from fccomodel.normal_form.terms import Term
from fccomodel.plan import Plan
from fccomodel.plan.assumptions import Finding
from fccomodel.plan.candidates import Candidate
from fccomodel.plan.ranking import rank, rejected
from fccomodel.structure import RULES, Analysis
from fccomodel.structure.facts import Fact, Facts


def to_json(
    analysis: Analysis,
    plan: Plan | None = None,
    *,
    candidates: Mapping[str, Candidate] | None = None,
    refusal: Sequence[Diagnostic] = (),
) -> dict[str, Any]:
    """The whole explanation as plain values.

    - ``objective`` and each of ``constraints`` have ``curvature`` (of the expression as the user wrote
      it; of c(w) in c(w) <= 0), ``smooth``, ``lipschitz``, ``gradient_lipschitz`` and
      ``weak_convexity``, ``monotone`` per variable, ``standing`` and ``reason``. A constant is a
      number, ``"finite"`` if it exists but is unknown, or None.
    - ``minimised`` is the objective's curvature in the direction that is minimised.
    - ``nodes`` has every expression that depends on a variable, the outermost first, with its text,
      its place, and each of its facts with rule, reason and standing.
    - ``algorithm`` and ``via`` come from the plan.
    - ``rejected`` has the requirements that each other algorithm misses.
    - ``refused`` has the reasons if no algorithm solves the model, else None.
    """
    problem = analysis.problem
    objective = problem.objective
    described = {
        "sense": objective.sense,
        "label": objective.label,
        "text": problem.text(objective.expr),
        **_facts_json(analysis.objective),
        "minimised": analysis.minimised.curvature,
    }
    constraints = {}
    for constraint in problem.constraints:
        constraints[constraint.label] = {
            "text": problem.text(constraint.body),
            "kind": constraint.kind,
            **_facts_json(analysis.constraints[constraint.label]),
        }
    if plan is not None:
        lacking = plan.rejected
    elif refusal and not candidates:
        messages = [diagnostic.message for diagnostic in refusal]
        lacking = dict.fromkeys(algorithms.all(), messages)
    else:
        judged = candidates or {}
        lacking = rejected(judged, None, rank(judged))
    normal = normal_of(plan, candidates)
    return {
        "model": problem.name,
        "convex": analysis.convex,
        "objective": described,
        "constraints": constraints,
        "nodes": _nodes_json(analysis),
        "algorithm": None if plan is None else plan.algorithm,
        "via": [] if plan is None else list(plan.via),
        "rejected": {name: list(lacks) for name, lacks in lacking.items()},
        "refused": [_refusal_json(analysis, diagnostic) for diagnostic in refusal] or None,
        **({} if plan is None or not plan.findings else plan_json(plan)),
        "structure": [] if normal is None else [_term_json(term) for term in normal.terms],
        "warnings": notes.warnings(analysis, plan),
    }


def normal_of(plan: Plan | None, candidates: Mapping[str, Candidate] | None) -> NormalForm | None:
    """The normal form of the plan's algorithm. Without a plan, the form that candidates were judged by."""
    if plan is not None:
        return plan.normal
    for candidate in (candidates or {}).values():
        return candidate.setting.normal
    return None


def _refusal_json(analysis: Analysis, diagnostic: Diagnostic) -> dict[str, Any]:
    """A diagnostic as plain values, with its line and column."""
    fields = {name: getattr(diagnostic, name) for name in ("code", "topic", "message", "reason", "fix")}
    place = None
    if diagnostic.span is not None:
        place = list(analysis.problem.source.place(diagnostic.span))
    return {**fields, "place": place}


def plan_json(plan: Plan) -> dict[str, Any]:
    """The plan: how assumptions are met, the rate, the constants of the schedule, and practices that
    the theorem does not cover."""
    constants, promise = plan.constants, plan.promise
    constants_json = None
    if constants:
        constants_json = {
            name: {"value": getattr(constants, name), "standing": standing}
            for name, standing in constants.standing.items()
        }
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
        "constants": constants_json,
        "steps": None if plan.schedule is None else plan.schedule.steps,
        "undefined": list(plan.undefined),
    }


def named(plan: Plan) -> bool:
    """Whether an option names the algorithm."""
    return bool(plan.options["algorithm"][1] != AUTOMATIC and not plan.entrants)


def findings_json(clauses: Mapping[str, str], findings: Mapping[str, Finding]) -> dict[str, dict[str, Any]]:
    """The assumptions of a theorem, and how each is met.

    clauses   for each assumption, the place in the paper that states it
    """
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
    """The facts about one expression."""
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
    """Every expression that depends on a variable, each once, the outermost first."""
    nodes: dict[int, ir.Expr] = {}
    for root in analysis.problem.roots:
        for node in reversed(list(ir.walk(root))):
            if not isinstance(node, ir.LetRef):
                nodes[id(node)] = node
    return [_node_json(analysis, node) for node in nodes.values() if not analysis.see(node).constant]


def _node_json(analysis: Analysis, node: ir.Expr) -> dict[str, Any]:
    """One expression with its facts."""
    f = analysis.see(node)
    facts = {}
    for fact in f.facts():
        if fact.holds:
            facts[fact.kind] = {
                "says": str(fact),
                "rule": fact.rule,
                "reason": fact.reason,
                "standing": str(fact.standing),
            }
    return {
        "text": analysis.problem.text(node),
        "place": list(analysis.problem.source.place(node.span)),
        "curvature": f.curvature,
        "monotone": {name: f.monotone(name) for name in sorted(f.leaves)},
        "facts": facts,
        "undefined": [fact.reason for fact in f.domain],
    }


def _number(value: Amount) -> float | str | None:
    """A constant: a number, ``"finite"`` if it is unknown, None if there is none."""
    if not value.finite:
        return None
    if value.known:
        return value.value
    return "finite"


def _term_json(term: Term) -> dict[str, Any]:
    """A term: its texts and its sizes."""
    fields: dict[str, Any] = {"label": term.label, "text": term.text, "kind": term.kind, "outer": term.outer}
    return {**fields, "inner": list(term.inner), "n": term.n, "d1": term.d1, "depth": term.depth}


def reason(fact: Fact) -> str:
    """The name of the rule behind a fact, and its statement for this fact."""
    if fact.rule == "no rule":
        return fact.reason or "no rule gives it"
    if fact.reason:
        return f"{fact.rule}: {fact.reason}"
    return f"{fact.rule}: {RULES[fact.rule]}"
