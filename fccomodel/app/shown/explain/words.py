"""The explanation of a model in words, and the derivation of one of its properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fccomodel import algorithms
from fccomodel.app.shown.explain import notes
from fccomodel.app.shown.explain.data import normal_of, reason
from fccomodel.app.shown.explain.plans import items, plan_lines, refused_lines, rejected_lines
from fccomodel.core import ir
from fccomodel.core.diagnostics import Diagnostic
from fccomodel.core.quoting import visible
from fccomodel.library.amounts import Amount
from fccomodel.normal_form import NormalForm
from fccomodel.normal_form.terms import Term
from fccomodel.plan import Plan
from fccomodel.plan.candidates import Candidate
from fccomodel.plan.ranking import alike, rank
from fccomodel.structure import Analysis
from fccomodel.structure import why as derivation
from fccomodel.structure.facts import Fact, Facts, Standing
from fccomodel.structure.why import first, kinks, lost_convexity, unknown, wrap

#: Columns of the text.
WIDTH = 80


def to_text(
    analysis: Analysis,
    plan: Plan | None = None,
    *,
    candidates: Mapping[str, Candidate] | None = None,
    refusal: Sequence[Diagnostic] = (),
    why: str | None = None,
    width: int = WIDTH,
) -> str:
    """The explanation in words.

    analysis     the facts about the model
    plan         the plan; None if no algorithm solves the model
    candidates   the algorithms as judged for the model, if there is no plan
    refusal      the reasons, if there is no plan; they come first
    why          ``objective`` or the label of a constraint: only the derivation of its curvature
    width        columns of the text
    """
    if why is not None:
        return visible("\n".join(derivation.why(analysis, why, width)), "\n")
    problem = analysis.problem
    normal = normal_of(plan, candidates)
    objective = problem.objective
    lines = [problem.name, "", *refused_lines(analysis, refusal, candidates or {}, width)]
    name = f"{objective.sense} {objective.label or ''}".rstrip()
    maximised = objective.sense == "maximize"
    lines += _part(analysis, name, objective.expr, analysis.objective, width, maximised)
    for constraint in problem.constraints:
        name = constraint.label
        if constraint.binders:
            binders = [f"{b.name} {b.kind} {b.domain.name}" for b in constraint.binders]
            name += f"[{', '.join(binders)}]"
        facts = analysis.constraints[constraint.label]
        lines += ["", *_part(analysis, name, constraint.body, facts, width)]
    lines += ["", *verdict(analysis, width)]
    if normal is not None:
        lines += _structure(normal, width)
    if plan is not None:
        lines += plan_lines(plan, width)
    else:
        others = [(list(algorithms.all()), one.message) for one in refusal]
        if candidates:
            others = alike(candidates, None, rank(candidates))
        lines += rejected_lines(others, width, "Algorithms, and what each lacks")
    warnings = notes.warnings(analysis, plan)
    if warnings:
        lines += ["", "Note"]
        lines += items(warnings, width)
    return visible("\n".join(line.rstrip() for line in lines), "\n")


def _part(
    analysis: Analysis, name: str, expr: ir.Expr, f: Facts, width: int, maximised: bool = False
) -> list[str]:
    """One expression: its headline, its text, and its facts with reasons."""
    head = f.curvature
    if not f.smooth:
        head += ", not smooth"
    elif not f.constant:
        head += ", smooth"
    lines = [f"{name}{head.rjust(max(width - len(name), len(head) + 2))}"]
    lines += wrap(analysis.problem.text(expr), width, "  | ")
    for title, fact, text in _entries(analysis, f, maximised):
        if fact is not None and fact.standing != Standing.PROVED:
            text += f" ({fact.standing})"
        lines += wrap(text, width, f"    {title:<14} ")
    return lines


def _entries(analysis: Analysis, f: Facts, maximised: bool) -> list[tuple[str, Fact | None, str]]:
    """The properties of an expression: a title, the fact behind it, and the reason."""
    if f.weakly_convex or f.concave or f.convex:
        text = _weak_convexity(f) + reason(f.curvature_fact)
        entries: list[tuple[str, Fact | None, str]] = [(f.curvature, f.curvature_fact, text)]
    else:
        entries = [("curvature", f.below, first(analysis, unknown(analysis, f)))]
    wanted = f.negated() if maximised else f
    if not wanted.convex and wanted.weakly_convex and not f.constant:
        title = "not concave" if maximised else "not convex"
        entries.append((title, None, first(analysis, lost_convexity(analysis, f, maximised))))
    if not f.smooth:
        entries.append(("not smooth", f.differentiable, first(analysis, kinks(analysis, f))))
    else:
        text = f"its gradient is {_constant(f.gradient.value)}"
        entries.append(("smooth", f.gradient if f.gradient.holds else f.differentiable, text))
    if f.is_lipschitz and f.lipschitz.value.known:
        entries.append(("Lipschitz", f.lipschitz, f"constant {f.lipschitz.value.value:.4g}"))
    elif f.is_lipschitz:
        entries.append(("Lipschitz", f.lipschitz, "its constant depends on the data"))
    return entries


def _weak_convexity(f: Facts) -> str:
    """The constant of a weakly convex function, if it is known; else an empty text."""
    value = f.below.value
    if f.curvature == "weakly convex" and value.known:
        return f"constant {value.value:.4g}, "
    return ""


def _constant(value: Amount) -> str:
    """The Lipschitz constant of a gradient, in words."""
    if not value.finite:
        return "continuous; no global Lipschitz constant is known"
    if value.known:
        return f"Lipschitz with constant {value.value:.4g}"
    return "Lipschitz, its constant depending on the data"


def verdict(analysis: Analysis, width: int) -> list[str]:
    """The claim about an answer that the problem's curvature allows."""
    if analysis.convex:
        return ["A convex problem: every point that meets the KKT conditions is a global minimum."]
    objective = analysis.minimised
    if all(f.weakly_convex for f in (objective, *analysis.constraints.values())):
        return wrap(
            "Not convex as far as is known, but weakly convex: solvers converge to nearly stationary points.",
            width,
            "",
        )
    return wrap(
        "Neither convexity nor weak convexity of every part is known on the whole of its domain (see --why).",
        width,
        "",
    )


def _term_text(normal: NormalForm, term: Term) -> str:
    """A summand as the user wrote it.

    If a reformulation made the summand, the new variable, or the text that it was made from.
    """
    f = term.f
    if isinstance(f, ir.Var) and f.name not in normal.problem.variables:
        return f"{f.name}, which a reformulation added"
    span = next((n.span for n in reversed(list(ir.walk(f))) if n.span != ir.NOWHERE), ir.NOWHERE)
    return term.text or f"from {normal.problem.source.text[span.start : span.end]}"


def _structure(normal: NormalForm, width: int) -> list[str]:
    """The terms f_i(E g_i), the regularisers, and the treatment of kinks and sets."""
    lines = ["", "Structure"]
    for term in normal.terms:
        size = str(term.kind)
        if term.kind != "deterministic" and isinstance(term.n, int):
            size += f", {term.n:,} block" if term.n == 1 else f", {term.n:,} blocks"
        if term.d1 > 1:
            size += f" of {term.d1} expectations"
        lines += wrap(f"{term.label}: {_term_text(normal, term)}", width, "  ", "    ")
        lines += wrap(size, width, "      ")
        if term.kind == "composition":
            for inner in term.inner:
                lines += wrap(f"tracked: {inner}", width, "      ", "        ")
    for text, treatment, why in normal.treatment:
        # Smoothing and penalties are told with the reformulations.
        if treatment not in ("smoothed", "penalised"):
            lines += wrap(f"{treatment}: {text} ({why})", width, "  ", "    ")
    return lines
