"""What was found about a model and why: as data, in words, and as the derivation of one of its properties."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isinf
from typing import Any

from fccomodel import algorithms
from fccomodel.core import ir
from fccomodel.core.diagnostics import Diagnostic
from fccomodel.core.options import AUTOMATIC
from fccomodel.core.quoting import visible
from fccomodel.data.bound import Bound, mapped
from fccomodel.library.amounts import Amount
from fccomodel.plan import assumptions
from fccomodel.plan.assumptions import Finding
from fccomodel.plan.candidates import Candidate
from fccomodel.plan.errors import NO_ALGORITHM
from fccomodel.plan.ranking import alike, nearest, rank, rejected
from fccomodel.structure import RULES, Analysis
from fccomodel.structure import why as derivation
from fccomodel.structure.facts import Fact, Facts, Standing
from fccomodel.structure.why import first, kinks, lost_convexity, unknown, wrap

WIDTH = 80
#: The name of a paper at the beginning of a clause: ``sox-2022, ``, ``Ghadimi, Ruszczynski and Wang 2020, ``.
PAPER = re.compile(r".*?\d{4}, ")
#: Bytes that full passes and reports hold for a row of a table whose vectors stay in files: its place, and values of its own.
PER_ROW = 250


# ------------------------------------------------------------------------------------------------------------------- data
def to_json(
    analysis: Analysis,
    plan: Any = None,
    *,
    candidates: Mapping[str, Candidate] | None = None,
    refusal: Sequence[Diagnostic] = (),
) -> dict[str, Any]:
    """Everything of the explanation as plain values.

    ``objective`` and each of ``constraints`` hold ``curvature`` (of the expression as the user wrote it; of c(w) in c(w) <= 0),
    ``smooth``, ``lipschitz``, ``gradient_lipschitz`` and ``weak_convexity`` (a number, ``"finite"`` where one exists that is not
    known, or None), ``monotone`` per variable, ``standing``, ``reason``. ``minimised`` is the objective's curvature in the
    direction that is minimised. ``nodes`` has every expression that the variables enter, outermost first: its text, its place,
    and each of its facts with rule, reason and standing. ``algorithm``, ``via`` and ``rejected`` come from a plan; where there is
    none, ``refused`` says what the model lacks (None elsewhere), and ``rejected`` what each of the candidates does.
    """
    problem = analysis.problem
    objective = problem.objective
    head = {"sense": objective.sense, "label": objective.label, "text": problem.text(objective.expr)}
    normal = normal_of(plan, candidates)
    formless = {name: [one.message for one in refusal] for name in algorithms.all()} if refusal and not candidates else {}
    lacking = getattr(plan, "rejected", {}) if plan is not None else formless or _unsuited(candidates or {})
    return {
        "model": problem.name,
        "convex": analysis.convex,
        "objective": head | _facts_json(analysis.objective) | {"minimised": analysis.minimised.curvature},
        "constraints": {
            c.label: {"text": problem.text(c.body), "kind": c.kind} | _facts_json(analysis.constraints[c.label])
            for c in problem.constraints
        },
        "nodes": _nodes_json(analysis),
        "algorithm": getattr(plan, "algorithm", None),
        "via": list(getattr(plan, "via", ())),
        "rejected": {name: list(lacks) for name, lacks in lacking.items()},
        "refused": [_refusal_json(analysis, one) for one in refusal] or None,
        **(plan_json(plan) if getattr(plan, "findings", None) else {}),
        "structure": [_term_json(t) for t in getattr(normal, "terms", ())],
        "warnings": warnings(analysis),
    }


def _unsuited(candidates: Mapping[str, Candidate]) -> dict[str, list[str]]:
    """What each algorithm lacks where none is chosen."""
    return rejected(candidates, None, rank(candidates))


def normal_of(plan: Any, candidates: Mapping[str, Candidate] | None) -> Any:
    """The form that the plan's algorithm takes; of what nothing solves, that which all were judged by."""
    judged = next((one.setting.normal for one in (candidates or {}).values()), None)
    return judged if plan is None else getattr(plan, "normal", None)


def _refusal_json(analysis: Analysis, one: Diagnostic) -> dict[str, Any]:
    told = {name: getattr(one, name) for name in ("code", "topic", "message", "reason", "fix")}
    return told | {"place": None if one.span is None else list(analysis.problem.source.place(one.span))}


def plan_json(plan: Any) -> dict[str, Any]:
    """How the theorem's assumptions are met, its rate, the constants of its schedule, and what it does not cover."""
    record, constants = plan.algorithm_record, plan.constants
    return {
        "theorem": plan.promise.name,
        "choice": {**plan.ranking.to_json(), "named": _named(plan), "entrants": list(plan.entrants)},
        "unverified": list(plan.unverified),
        "assumptions": findings_json(record, plan.findings),
        "practice": list(plan.practice),
        "rate": {"formula": plan.promise.rate, "counts": record.counts, "here": plan.rate},
        "constants": {name: {"value": getattr(constants, name), "standing": s} for name, s in constants.standing.items()}
        if constants
        else None,
        "steps": plan.schedule.steps if constants else None,
        "undefined": list(plan.undefined),
    }


def _named(plan: Any) -> bool:
    """The algorithm is the one that an option names."""
    return bool(plan.options["algorithm"][1] != AUTOMATIC and not plan.entrants)


def findings_json(record: Any, findings: Mapping[str, Finding]) -> dict[str, dict[str, Any]]:
    """How each assumption of an algorithm's theorem is met."""
    return {
        name: {
            "clause": record.requires[name],
            "holds": finding.holds,
            "standing": str(finding.standing) if finding.holds else None,
            "why": finding.why,
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
        fact.kind: {"says": str(fact), "rule": fact.rule, "reason": fact.reason, "standing": str(fact.standing)}
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
    return value.value if value.known else "finite"


def _term_json(term: Any) -> dict[str, Any]:
    names = ("label", "text", "kind", "outer", "inner", "n", "d1", "depth")
    fields = {name: getattr(term, name) for name in names if hasattr(term, name)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}


def reason(fact: Fact) -> str:
    """The rule's name, and what it says here."""
    if fact.rule == "no rule":
        return fact.reason or "no rule gives it"
    return f"{fact.rule}: {fact.reason}" if fact.reason else f"{fact.rule}: {RULES[fact.rule]}"


def warnings(analysis: Analysis) -> list[str]:
    """What the reader should know: assumptions in use, conditions not proved, and the lint of the model."""
    said = []
    roots = [analysis.objective, *analysis.constraints.values()]
    for root in roots:
        said += [f"{f.reason}: {analysis.problem.text(f.subject)}" for f in root.domain]
    left = analysis.left_to_binding.items()
    said += [f"{needs}: `{analysis.problem.text(argument)}`, which is checked when it is bound" for argument, needs in left]
    for root in roots:
        for fact in _behind([root.curvature_fact, root.differentiable, root.gradient, root.lipschitz]):
            if fact.standing == Standing.ASSUMED and not any(u.standing == Standing.ASSUMED for u in fact.uses):
                said.append(f"assumed, not proved: {fact.reason or RULES[fact.rule]}")
    said += [getattr(w, "message", str(w)) for w in analysis.problem.warnings]
    said += _large(analysis)
    return list(dict.fromkeys(said))


def _large(analysis: Analysis) -> list[str]:
    """What will be large on the data: of so many elements a report may take some."""
    if analysis.bound is None:
        return []
    from fccomodel.report import estimated

    said = _in_files(analysis.bound)
    if (whole := estimated.amount(analysis.bound)) <= estimated.FEW or not estimated.thinnable(analysis.bound):
        return said
    drawn = "where the budget is short of that, the report is of rows drawn at random"
    return [*said, f"{whole:.1e} elements are evaluated: {drawn}"]


def _in_files(bound: Bound) -> list[str]:
    """What of the tables stays in files, and what must be in memory."""
    said = []
    for name, table in bound.tables.items():
        kept = {column: values for column, values in table.columns.items() if mapped(values)}
        for column, values in kept.items():
            shape = " x ".join(f"{size:,}" for size in values.shape)
            said.append(f"{name}.{column} ({shape}, {values.dtype}) stays in its file of {_size(values.nbytes)}")
        if kept:
            size = _size(table.n * PER_ROW)
            said.append(f"in memory are about {size} for the {table.n:,} rows of {name}: {PER_ROW} bytes each, and blocks")
    return said


def _size(count: int) -> str:
    """Bytes as people say them."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB"


def _behind(facts: Iterable[Fact]) -> Iterator[Fact]:
    """All facts that some follow from, themselves included, each once."""
    seen: set[int] = set()
    stack = list(facts)
    while stack:
        fact = stack.pop()
        if id(fact) not in seen:
            seen.add(id(fact))
            yield fact
            stack.extend(fact.uses)


# ------------------------------------------------------------------------------------------------------------------ words
def to_text(
    analysis: Analysis,
    plan: Any = None,
    *,
    candidates: Mapping[str, Candidate] | None = None,
    refusal: Sequence[Diagnostic] = (),
    why: str | None = None,
    width: int = WIDTH,
) -> str:
    """The explanation in words, first why nothing solves the model where that is so (``refusal``); with ``why`` (``objective`` or
    a constraint's label), the derivation of its curvature."""
    if why is not None:
        return visible("\n".join(derivation.why(analysis, why, width)), "\n")
    problem = analysis.problem
    normal = normal_of(plan, candidates)
    objective = problem.objective
    lines = [problem.name, "", *_refused(analysis, refusal, candidates or {}, width)]
    name = f"{objective.sense} {objective.label}" if objective.label else objective.sense
    lines += _part(analysis, name, objective.expr, analysis.objective, width, objective.sense == "maximize")
    for c in problem.constraints:
        family = f"[{', '.join(f'{b.name} {b.kind} {b.domain.name}' for b in c.binders)}]" if c.binders else ""
        lines += ["", *_part(analysis, c.label + family, c.body, analysis.constraints[c.label], width)]
    lines += ["", *verdict(analysis, width)]
    if normal is not None:
        lines += _structure(normal, width)
    if plan is not None:
        lines += _plan(plan, normal, width)
    else:
        others = [(list(algorithms.all()), one.message) for one in refusal]
        others = alike(candidates, None, rank(candidates)) if candidates else others
        lines += _rejected(others, width, "Algorithms, and what each lacks")
    if noted := warnings(analysis):
        lines += ["", "Note"]
        lines += _items(noted, width)
    return visible("\n".join(line.rstrip() for line in lines), "\n")


def _items(texts: Iterable[str], width: int) -> list[str]:
    return [line for text in texts for line in wrap(text, width, "  - ", "    ")]


def _part(analysis: Analysis, name: str, expr: ir.Expr, f: Facts, width: int, maximised: bool = False) -> list[str]:
    """One expression: its headline, its text, and its facts with reasons."""
    head = f.curvature + (", smooth" if f.smooth and not f.constant else ", not smooth" if not f.smooth else "")
    lines = [f"{name}{head.rjust(max(width - len(name), len(head) + 2))}"]
    lines += wrap(analysis.problem.text(expr), width, "  | ")
    entries: list[tuple[str, Fact | None, str]] = [(f.curvature, f.curvature_fact, _bend(f) + reason(f.curvature_fact))]
    wanted = f.negated() if maximised else f
    if not wanted.convex and wanted.weakly_convex and not f.constant:
        entries.append(
            (f"not {'concave' if maximised else 'convex'}", None, first(analysis, lost_convexity(analysis, f, maximised)))
        )
    if not f.weakly_convex and not f.concave and not f.convex:
        entries[0] = ("curvature", f.below, first(analysis, unknown(analysis, f)))
    if f.smooth:
        said = f"its gradient is {_constant(f.gradient.value)}"
        entries.append(("smooth", f.gradient if f.gradient.holds else f.differentiable, said))
    else:
        entries.append(("not smooth", f.differentiable, first(analysis, kinks(analysis, f))))
    if f.is_lipschitz:
        value = f.lipschitz.value
        entries.append(
            ("Lipschitz", f.lipschitz, f"constant {value.value:.4g}" if value.known else "its constant depends on the data")
        )
    for title, fact, text in entries:
        standing = f" ({fact.standing})" if fact is not None and fact.standing != Standing.PROVED else ""
        lines += wrap(text + standing, width, f"    {title:<14} ")
    return lines


def _bend(f: Facts) -> str:
    """The constant of a weakly convex function, where it is a number."""
    value = f.below.value
    return f"constant {value.value:.4g}, " if f.curvature == "weakly convex" and value.known else ""


def _constant(value: Amount) -> str:
    if not value.finite:
        return "continuous; no global Lipschitz constant is known"
    return f"Lipschitz with constant {value.value:.4g}" if value.known else "Lipschitz, its constant depending on the data"


def verdict(analysis: Analysis, width: int) -> list[str]:
    if analysis.convex:
        return ["A convex problem: every point that meets the KKT conditions is a global minimum."]
    objective = analysis.minimised
    if all(f.weakly_convex for f in (objective, *analysis.constraints.values())):
        return wrap("Not convex as far as is known, but weakly convex: solvers converge to nearly stationary points.", width, "")
    return wrap(
        "Neither convexity nor weak convexity of every part is known on the whole of its domain (see --why).",
        width,
        "",
    )


def _term_text(normal: Any, term: Any) -> str:
    """A summand as the user wrote it; of one that a reformulation made, the new variable or what it was made from."""
    f = getattr(term, "f", None)
    if f is None:
        return term.text
    if isinstance(f, ir.Var) and f.name not in normal.problem.variables:
        return f"{f.name}, which a reformulation added"
    span = next((n.span for n in reversed(list(ir.walk(f))) if n.span != ir.NOWHERE), ir.NOWHERE)
    return term.text or f"from {normal.problem.source.text[span.start : span.end]}"


def _structure(normal: Any, width: int) -> list[str]:
    """Blocks f_i(E g_i), the regularisers, and what was done to kinks and sets."""
    lines = ["", "Structure"]
    for term in getattr(normal, "terms", ()):
        label, text = getattr(term, "label", ""), _term_text(normal, term)
        kind, n, d1 = getattr(term, "kind", ""), getattr(term, "n", None), getattr(term, "d1", None)
        size = "" if kind == "deterministic" else f", {n:,} block{'s' * (n != 1)}" if isinstance(n, int) else ""
        size += f" of {d1} expectations" if isinstance(d1, int) and d1 > 1 else ""
        lines += wrap(f"{label}: {text}", width, "  ", "    ")
        lines += wrap(f"{kind}{size}", width, "      ")
        for inner in getattr(term, "inner", ()) if kind == "composition" else ():
            lines += wrap(f"tracked: {inner}", width, "      ", "        ")
    for text, how, why in getattr(normal, "treatment", ()):
        if how in ("smoothed", "penalised"):  # told by the reformulation that did it
            continue
        lines += wrap(f"{how}: {text} ({why})", width, "  ", "    ")
    return lines


def _plan(plan: Any, normal: Any, width: int) -> list[str]:
    """The chain of reformulations, the algorithm, how its theorem's assumptions are met, its rate, and what the others lack."""
    lines = []
    chain = getattr(getattr(normal, "chain", None), "steps", ())
    if chain:
        lines += ["", "Reformulations"]
    for step in chain:
        lines += _items([f"{step.reformulation.title}: {sentence}" for sentence in step.sentences], width)
        lines += wrap(step.reformulation.account, width, "      ")
    record = getattr(plan, "algorithm_record", None)
    lines += ["", f"Algorithm  {plan.algorithm}"]
    unverified = getattr(plan, "unverified", ())
    if record is not None and unverified:
        lines += wrap(f"{record.title}; no theorem covers this run, which needs", width, "  ")
        lines += _items(unverified, width)
    elif record is not None and not all(finding.holds for finding in plan.findings.values()):
        lines += wrap(f"{record.title}, beyond {plan.promise.name}, which does not cover all of the model", width, "  ")
    elif record is not None:
        lines += wrap(f"{record.title}, {plan.promise.name}", width, "  ")
        here = getattr(plan, "rate", "")
        lines += wrap(f"O({plan.promise.rate}) {record.counts}" + (f"; here {here}" if here else ""), width, "  ", "    ")
    lines += [line for text in (*choice_lines(plan), *backend_lines(plan)) for line in wrap(text, width, "  ", "    ")]
    if added := getattr(plan, "practice", ()):
        lines += ["", "Practice does without a theorem" if unverified else "Practice adds to the theorem"]
        lines += _items(added, width)
    if getattr(plan, "findings", {}):
        lines += ["", "The algorithm's theorem assumes" if unverified else "Its theorem assumes"]
        for line in assumption_lines(plan):
            lines += wrap(line, width, "  - ", "    ")
    if constants := getattr(plan, "constants", None):
        lines += ["", "Constants of its schedule"]
        lines += _items([*constant_lines(constants), *plan.schedule.sentences()], width)
    return lines + _rejected(getattr(plan, "others", ()), width)


def _rejected(others: Iterable[tuple[list[str], str]], width: int, title: str = "Rejected") -> list[str]:
    """Algorithms that share a reason, and the reason."""
    lines = [line for names, reason in others for line in wrap(f"{', '.join(names)}: {reason}", width, "  ", "      ")]
    return ["", title, *lines] if lines else []


def _refused(analysis: Analysis, refusal: Sequence[Diagnostic], candidates: Mapping[str, Candidate], width: int) -> list[str]:
    """Why nothing solves a model: what the nearest algorithms lack, and what to change."""
    lines: list[str] = []
    for one in refusal:
        place = "" if one.span is None else " at {}:{}".format(*analysis.problem.source.place(one.span))
        lines += wrap(f"Not solved ({one.code}): {one.message}{place}.", width, "")
        if one.code == NO_ALGORITHM.id:
            lines += _items((f"{c.record.name} needs {'; '.join(c.lacks())}" for c in nearest(candidates)), width)
        elif one.reason:
            lines += wrap(one.reason, width, "  ")
        lines += [*wrap(f"Fix: {one.fix}", width, "  ", "       "), ""]
    return lines


def choice_lines(plan: Any) -> list[str]:
    """Why it is this algorithm: by its theorem, or by which measurements, and what the theorems alone would choose."""
    ranking = getattr(plan, "ranking", None)
    if ranking is None:
        return []
    if plan.entrants:
        return [f"a race of {', '.join(plan.entrants)}: each takes a share of the budget, and the one that came furthest goes on"]
    if _named(plan):
        return ["chosen by name"]
    reasons = ranking.reasons()
    return [f"chosen by {'; '.join(reasons)}"] if reasons else []


def backend_lines(plan: Any) -> list[str]:
    """What is asked to run the steps, where it is not what runs them of itself."""
    name, origin = getattr(plan, "options", {}).get("backend", ("auto", ""))
    return [] if name in ("auto", "eager") else [f"steps by the {name} backend ({origin})"]


def assumption_lines(plan: Any) -> list[str]:
    """One line per assumption: what, its clause in the paper of the theorem, how it is met, and why; what they take on trust."""
    record = plan.algorithm_record
    paper = (PAPER.match(record.theorem) or [""])[0]
    lines = [
        f"{name} ({record.requires[name].removeprefix(paper)}): "
        f"{finding.standing if finding.holds else 'does not hold'}; {finding.why}"
        for name, finding in plan.findings.items()
    ]
    trusted = any(words in line for line in lines for words in (assumptions.RANGE, assumptions.WEIGHTS))
    return lines + ([assumptions.TRUST] if trusted else [])


def constant_lines(constants: Any) -> list[str]:
    """One line per constant of a theorem's schedule, with its standing."""
    numbers = [f"n = {constants.n:,}, B1 = {constants.B1:,}, B2 = {constants.B2:,}, eps = {constants.eps:g}"]
    return numbers + [f"{name} = {getattr(constants, name):.3g} ({standing})" for name, standing in constants.standing.items()]
