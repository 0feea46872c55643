"""What was found about a model and why: as data, in words, and as the derivation of one of its properties."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isinf
from typing import Any

from fccomodel import diagnostics, ir
from fccomodel.facts import Amount, Fact, Facts, Standing
from fccomodel.structure import RULES, Analysis

WIDTH = 80
CURVATURE = ("below", "above")


# ------------------------------------------------------------------------------------------------------------------- data
def to_json(analysis: Analysis, plan: Any = None, *, normal: Any = None) -> dict[str, Any]:
    """Everything of the explanation as plain values.

    ``objective`` and each of ``constraints`` hold ``curvature`` (of the expression as the user wrote it; of c(w) in c(w) <= 0),
    ``smooth``, ``lipschitz``, ``gradient_lipschitz`` and ``weak_convexity`` (a number, ``"finite"`` where one exists that is not
    known, or None), ``monotone`` per variable, ``standing``, ``reason``. ``minimised`` is the objective's curvature in the
    direction that is minimised. ``algorithm``, ``via`` and ``rejected`` come from a plan.
    """
    problem = analysis.problem
    objective = problem.objective
    head = {"sense": objective.sense, "label": objective.label, "text": problem.text(objective.expr)}
    normal = normal if normal is not None else getattr(plan, "normal", None)
    return {
        "model": problem.name,
        "convex": analysis.convex,
        "objective": head | _facts_json(analysis.objective) | {"minimised": analysis.minimised.curvature},
        "constraints": {
            c.label: {"text": problem.text(c.body), "kind": c.kind} | _facts_json(analysis.constraints[c.label])
            for c in problem.constraints
        },
        "algorithm": getattr(plan, "algorithm", None),
        "via": list(getattr(plan, "via", ())),
        "rejected": {name: list(lacks) for name, lacks in getattr(plan, "rejected", {}).items()},
        "structure": [_term_json(t) for t in getattr(normal, "terms", ())],
        "warnings": warnings(analysis),
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


def _number(value: Amount) -> float | str | None:
    if not value.finite:
        return None
    return value.value if value.known else "finite"


def _term_json(term: Any) -> dict[str, Any]:
    names = ("label", "text", "kind", "outer", "inner", "n", "d1", "depth")
    found = {name: getattr(term, name) for name in names if hasattr(term, name)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


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
    for root in roots:
        for fact in _behind([root.curvature_fact, root.differentiable, root.gradient, root.lipschitz]):
            if fact.standing == Standing.ASSUMED and not any(u.standing == Standing.ASSUMED for u in fact.uses):
                said.append(f"assumed, not proved: {fact.reason or RULES[fact.rule]}")
    said += [getattr(w, "message", str(w)) for w in analysis.problem.warnings]
    return list(dict.fromkeys(said))


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
def to_text(analysis: Analysis, plan: Any = None, *, normal: Any = None, why: str | None = None, width: int = WIDTH) -> str:
    """The explanation in words; with ``why`` (``objective`` or a constraint's label), the derivation of its curvature."""
    if why is not None:
        return "\n".join(_why(analysis, why, width))
    problem = analysis.problem
    normal = normal if normal is not None else getattr(plan, "normal", None)
    objective = problem.objective
    lines = [problem.name, ""]
    name = f"{objective.sense} {objective.label}" if objective.label else objective.sense
    lines += _part(analysis, name, objective.expr, analysis.objective, width, objective.sense == "maximize")
    for c in problem.constraints:
        family = f"[{', '.join(f'{b.name} {b.kind} {b.domain.name}' for b in c.binders)}]" if c.binders else ""
        lines += ["", *_part(analysis, c.label + family, c.body, analysis.constraints[c.label], width)]
    lines += ["", *_verdict(analysis, width)]
    if normal is not None:
        lines += _structure(normal, width)
    if plan is not None:
        lines += _plan(plan, normal, width)
    if noted := warnings(analysis):
        lines += ["", "Note"]
        lines += _items(noted, width)
    return "\n".join(line.rstrip() for line in lines)


def _wrap(text: str, width: int, first: str = "  ", rest: str | None = None) -> list[str]:
    """Text in lines of at most ``width`` columns; words are not broken."""
    rest = " " * len(first) if rest is None else rest
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def _items(texts: Iterable[str], width: int) -> list[str]:
    return [line for text in texts for line in _wrap(text, width, "  - ", "    ")]


def _part(analysis: Analysis, name: str, expr: ir.Expr, f: Facts, width: int, maximised: bool = False) -> list[str]:
    """One expression: its headline, its text, and its facts with reasons."""
    head = f.curvature + (", smooth" if f.smooth and not f.constant else ", not smooth" if not f.smooth else "")
    lines = [f"{name}{head.rjust(max(width - len(name), len(head) + 2))}"]
    lines += _wrap(analysis.problem.text(expr), width, "  | ")
    entries: list[tuple[str, Fact | None, str]] = [(_shape(f), f.curvature_fact, reason(f.curvature_fact))]
    wanted = f.negated() if maximised else f
    if not wanted.convex and wanted.weakly_convex and not f.constant:
        entries.append(
            (f"not {'concave' if maximised else 'convex'}", None, _first(analysis, _lost_convexity(analysis, f, maximised)))
        )
    if not f.weakly_convex and not f.concave and not f.convex:
        entries[0] = ("curvature", f.below, _first(analysis, _unknown(analysis, f)))
    if f.smooth:
        said = f"its gradient is {_constant(f.gradient.value)}"
        entries.append(("smooth", f.differentiable, said))
    else:
        entries.append(("not smooth", f.differentiable, _first(analysis, _kinks(analysis, f))))
    if f.is_lipschitz:
        value = f.lipschitz.value
        entries.append(
            ("Lipschitz", f.lipschitz, f"constant {value.value:.4g}" if value.known else "its constant depends on the data")
        )
    for title, fact, text in entries:
        standing = f" ({fact.standing})" if fact is not None and fact.standing != Standing.PROVED else ""
        lines += _wrap(text + standing, width, f"    {title:<14} ")
    return lines


def _shape(f: Facts) -> str:
    value = f.below.value
    return f"{value.value:.3g}-weak" if f.curvature == "weakly convex" and value.known else f.curvature


def _constant(value: Amount) -> str:
    if not value.finite:
        return "continuous, without a global Lipschitz constant"
    return f"Lipschitz with constant {value.value:.4g}" if value.known else "Lipschitz, its constant depending on the data"


def _verdict(analysis: Analysis, width: int) -> list[str]:
    if analysis.convex:
        return ["A convex problem: every stationary point is a global minimum."]
    found = analysis.minimised
    if all(f.weakly_convex for f in (found, *analysis.constraints.values())):
        return _wrap("Not convex as far as is known, but weakly convex: solvers converge to nearly stationary points.", width, "")
    return _wrap(
        "Neither convexity nor weak convexity of every part is known (see --why): no theorem covers the problem as it is.",
        width,
        "",
    )


def _structure(normal: Any, width: int) -> list[str]:
    """Blocks f_i(E g_i), the regularisers, and what was done to kinks and sets."""
    lines = ["", "Structure"]
    for term in getattr(normal, "terms", ()):
        label, text = getattr(term, "label", ""), getattr(term, "text", "")
        kind, n, d1 = getattr(term, "kind", ""), getattr(term, "n", None), getattr(term, "d1", None)
        size = "" if kind == "deterministic" else f", {n:,} block{'s' * (n != 1)}" if isinstance(n, int) else ""
        size += f" of {d1} expectations" if isinstance(d1, int) and d1 > 1 else ""
        lines += _wrap(f"{label}: {text}", width, "  ", "    ")
        lines += _wrap(f"{kind}{size}", width, "      ")
        for inner in getattr(term, "inner", ()) if kind == "composition" else ():
            lines += _wrap(f"tracked: {inner}", width, "      ", "        ")
    for text, how, why in getattr(normal, "treatment", ()):
        lines += _wrap(f"{how}: {text} ({why})", width, "  ", "    ")
    return lines


def _plan(plan: Any, normal: Any, width: int) -> list[str]:
    """The chain of reformulations, the algorithm with its reasons, and the rejected ones."""
    lines = []
    chain = getattr(getattr(normal, "chain", None), "steps", ())
    if chain or getattr(plan, "via", ()):
        lines += ["", "Reformulations"]
        told = {name for name, _ in chain}
        lines += _items([f"{name}: {sentence}" for name, sentences in chain for sentence in sentences], width)
        lines += _items([name for name in plan.via if name not in told], width)
    record = getattr(plan, "algorithm_record", None)
    about = [str(getattr(record, field, "")) for field in ("title", "theorem", "rate")]
    lines += ["", f"Algorithm  {plan.algorithm}"]
    if any(about):
        lines += _wrap(", ".join(text for text in about if text), width, "  ")
    facts: Mapping[str, str] = getattr(plan, "facts", {})
    requires = getattr(record, "requires", {})
    for name, why in facts.items():
        if not requires or name in requires:
            lines += _wrap(f"{name}: {why}", width, "  - ", "    ")
    if rejected := getattr(plan, "rejected", {}):
        lines += ["", "Rejected"]
        for name, lacks in rejected.items():
            lines += _wrap("; ".join(lacks), width, f"  {name:<12} ")
    return lines


# -------------------------------------------------------------------------------------------------------------------- why
def _why(analysis: Analysis, subject: str, width: int) -> list[str]:
    """The derivation of one part's curvature, and where a stronger property is lost."""
    f, expr, maximised = _subject(analysis, subject)
    fact = f.curvature_fact
    lines = [f"{subject}: {f.curvature} ({fact.standing})" if f.curvature != "unknown" else f"{subject}: unknown curvature", ""]
    rules: dict[str, None] = {}
    if f.curvature == "unknown":
        for node, words, fix in _unknown(analysis, f):
            lines += _failure(analysis, node, words, fix, width)
    else:
        lines += _tree(analysis, fact, width, rules)
        wanted = f.negated() if maximised else f
        if not wanted.convex:
            lines += ["", f"Not {'concave' if maximised else 'convex'}, because"]
            for node, words, fix in _lost_convexity(analysis, f, maximised):
                lines += _failure(analysis, node, words, fix, width)
    if not f.smooth:
        lines += ["", "Not smooth, because"]
        for node, words, fix in _kinks(analysis, f):
            lines += _failure(analysis, node, words, fix, width)
    if rules:
        lines += ["", "Rules"]
        for name in rules:
            lines += _wrap(f"{name}: {RULES[name]}", width, "  ", "    ")
    return lines


def _subject(analysis: Analysis, name: str) -> tuple[Facts, ir.Expr, bool]:
    problem = analysis.problem
    if name in ("objective", problem.objective.label):
        return analysis.objective, problem.objective.expr, problem.objective.sense == "maximize"
    for c in problem.constraints:
        if c.label == name:
            return analysis.constraints[name], c.body, False
    labels = ["objective", *analysis.constraints]
    raise diagnostics.FccoError(
        [
            diagnostics.error(
                "F0691",
                f"the model has no `{name}` to explain",
                reason=f"It has {', '.join(labels)}.",
                fix=diagnostics.did_you_mean(name, labels) or "Name one of them.",
            )
        ],
        problem.source,
    )


def _shown(analysis: Analysis, expr: ir.Expr, width: int) -> str:
    """The user's text of an expression, shortened to fit a line."""
    text = analysis.problem.text(expr) or type(expr).__name__.lower()
    return text if len(text) <= width else f"{text[: width - 2].rstrip()} .."


def _failure(analysis: Analysis, node: ir.Expr, words: str, fix: str, width: int) -> list[str]:
    line, column = analysis.problem.source.place(node.span)
    lines = [f"  {line}:{column}  {_shown(analysis, node, width - 10)}"]
    lines += _wrap(words, width, "      ")
    return lines + (_wrap(f"Fix: {fix}", width, "      ", "           ") if fix else [])


def _tree(analysis: Analysis, root: Fact, width: int, rules: dict[str, None]) -> list[str]:
    """A fact and the facts it follows from, indented, each once; affine expressions are not taken apart."""
    lines: list[str] = []
    seen: set[int] = set()
    stack: list[tuple[Fact, int]] = [(root, 0)]
    while stack:
        fact, depth = stack.pop()
        fact = _through(fact)
        pad = "  " * min(depth, 14)
        text = _shown(analysis, fact.subject, max(24, width - len(pad)))
        see = analysis.see(fact.subject)
        flat = fact.kind in (*CURVATURE, "gradient", "differentiable") and see.affine
        what = "affine" if flat and not see.constant else str(fact)
        standing = "" if fact.standing == Standing.PROVED else f", {fact.standing}"
        lines.append(f"{pad}{text}")
        if id(fact) in seen and fact.uses:
            lines += _wrap(f"{what} (shown above)", width, f"{pad}  ")
            continue
        seen.add(id(fact))
        rules[fact.rule] = None
        said = f" ({fact.reason})" if fact.reason else ""
        lines += _wrap(f"{what} by `{fact.rule}`{said}{standing}", width, f"{pad}  ", f"{pad}    ")
        if not flat:
            stack.extend((use, depth + 1) for use in reversed(_told(fact)))
    return lines


def _told(fact: Fact) -> list[Fact]:
    """The facts worth showing below one: none about constants, and one where curvature from both sides says affine."""
    found: list[Fact] = []
    for use in fact.uses:
        if use.rule == "constant" or isinstance(use.subject, ir.Const):
            continue
        twin = next((u for u in found if u.subject is use.subject and u.kind in CURVATURE and use.kind in CURVATURE), None)
        if twin is None:
            found.append(use)
    return found


def _through(fact: Fact) -> Fact:
    """Skip a fact that only repeats the one it uses, as an entry of a vector does."""
    while (
        len(fact.uses) == 1
        and fact.uses[0].kind == fact.kind
        and fact.rule == fact.uses[0].rule
        and fact.reason == fact.uses[0].reason
    ):
        fact = fact.uses[0]
    return fact


# ------------------------------------------------------------------------------------------------------- where it is lost
Failure = tuple[ir.Expr, str, str]


def _first(analysis: Analysis, failures: list[Failure]) -> str:
    """The first of some failures, with its place in the model."""
    if not failures:
        return "no rule gives it"
    node, words, _ = failures[0]
    line, column = analysis.problem.source.place(node.span)
    more = f", and {len(failures) - 1} more (--why)" if len(failures) > 1 else ""
    return f"{words}: {_shown(analysis, node, 40)} at {line}:{column}{more}"


def _lowest(analysis: Analysis, expr: ir.Expr, good: Callable[[Facts], bool]) -> list[Facts]:
    """The expressions deepest down that lack a property while all they are made of have it."""
    found: list[Facts] = []
    seen: set[int] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, ir.LetRef):
            stack.append(node.let.body)
            continue
        children = [c.let.body if isinstance(c, ir.LetRef) else c for c in node.children]
        bad = [c for c in children if not good(analysis.see(c))]
        if bad:
            stack.extend(reversed(bad))
        elif not good(analysis.see(node)):
            found.append(analysis.see(node))
    return found


def _lost_convexity(analysis: Analysis, f: Facts, maximised: bool) -> list[Failure]:
    """The nodes where the composition rules first give neither convexity nor concavity; the whole where its sign is wrong."""
    kind = "above" if maximised else "below"
    nodes = _lowest(analysis, f.expr, lambda g: g.convex or g.concave)
    if not nodes:
        fact = getattr(f, kind)
        words = (
            fact.lacks
            or fact.reason
            or ("it is convex, and it is maximised" if maximised else "it is concave, and it is minimised")
        )
        return [(f.expr, words, fact.fix)]
    result = []
    for node in nodes:
        facts = [g for g in (getattr(node, kind), node.below, node.above) if g.lacks or g.rule == "no rule"]
        fact = facts[0] if facts else getattr(node, kind)
        result.append((node.expr, fact.lacks or fact.reason or RULES[fact.rule], fact.fix))
    return result


def _unknown(analysis: Analysis, f: Facts) -> list[Failure]:
    """The nodes where no curvature at all is known while that of their parts is."""
    nodes = _lowest(analysis, f.expr, lambda g: g.convex or g.concave or g.weakly_convex or g.weakly_concave)
    result = []
    for node in nodes or [f]:
        fact = node.below
        result.append((node.expr, fact.reason or fact.lacks or "no rule gives its curvature", fact.fix))
    return result


def _kinks(analysis: Analysis, f: Facts) -> list[Failure]:
    """The nodes that are not differentiable while all they are made of is."""
    nodes = _lowest(analysis, f.expr, lambda g: g.smooth)
    return [(n.expr, n.differentiable.reason or RULES[n.differentiable.rule], n.differentiable.fix) for n in nodes]
