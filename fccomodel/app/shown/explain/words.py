"""What was found about a model and why, in words, and as the derivation of one of its properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fccomodel import algorithms
from fccomodel.app.shown.explain import notes
from fccomodel.app.shown.explain.data import normal_of, reason
from fccomodel.app.shown.explain.plans import items, plan_lines, refused_lines, rejected_lines
from fccomodel.core import ir
from fccomodel.core.diagnostics import Diagnostic
from fccomodel.core.quoting import visible
from fccomodel.library.amounts import Amount
from fccomodel.plan.candidates import Candidate
from fccomodel.plan.ranking import alike, rank
from fccomodel.structure import Analysis
from fccomodel.structure import why as derivation
from fccomodel.structure.facts import Fact, Facts, Standing
from fccomodel.structure.why import first, kinks, lost_convexity, unknown, wrap

WIDTH = 80


def to_text(
    analysis: Analysis,
    plan: Any = None,
    *,
    candidates: Mapping[str, Candidate] | None = None,
    refusal: Sequence[Diagnostic] = (),
    why: str | None = None,
    width: int = WIDTH,
) -> str:
    """The explanation in words, first why nothing solves the model where that is so (``refusal``);
    with ``why`` (``objective`` or a constraint's label), the derivation of its curvature."""
    if why is not None:
        return visible("\n".join(derivation.why(analysis, why, width)), "\n")
    problem = analysis.problem
    normal = normal_of(plan, candidates)
    objective = problem.objective
    lines = [problem.name, "", *refused_lines(analysis, refusal, candidates or {}, width)]
    if objective.label:
        name = f"{objective.sense} {objective.label}"
    else:
        name = objective.sense
    lines += _part(analysis, name, objective.expr, analysis.objective, width, objective.sense == "maximize")
    for c in problem.constraints:
        if c.binders:
            family = f"[{', '.join(f'{b.name} {b.kind} {b.domain.name}' for b in c.binders)}]"
        else:
            family = ""
        lines += ["", *_part(analysis, c.label + family, c.body, analysis.constraints[c.label], width)]
    lines += ["", *verdict(analysis, width)]
    if normal is not None:
        lines += _structure(normal, width)
    if plan is not None:
        lines += plan_lines(plan, normal, width)
    else:
        others = [(list(algorithms.all()), one.message) for one in refusal]
        if candidates:
            others = alike(candidates, None, rank(candidates))
        lines += rejected_lines(others, width, "Algorithms, and what each lacks")
    if noted := notes.warnings(analysis, plan):
        lines += ["", "Note"]
        lines += items(noted, width)
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
    entries: list[tuple[str, Fact | None, str]] = [
        (f.curvature, f.curvature_fact, _bend(f) + reason(f.curvature_fact))
    ]
    if maximised:
        wanted = f.negated()
    else:
        wanted = f
    if not wanted.convex and wanted.weakly_convex and not f.constant:
        entries.append(
            (
                f"not {'concave' if maximised else 'convex'}",
                None,
                first(analysis, lost_convexity(analysis, f, maximised)),
            )
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
            (
                "Lipschitz",
                f.lipschitz,
                f"constant {value.value:.4g}" if value.known else "its constant depends on the data",
            )
        )
    for title, fact, text in entries:
        if fact is not None and fact.standing != Standing.PROVED:
            standing = f" ({fact.standing})"
        else:
            standing = ""
        lines += wrap(text + standing, width, f"    {title:<14} ")
    return lines


def _bend(f: Facts) -> str:
    """The constant of a weakly convex function, where it is a number."""
    value = f.below.value
    if f.curvature == "weakly convex" and value.known:
        return f"constant {value.value:.4g}, "
    return ""


def _constant(value: Amount) -> str:
    if not value.finite:
        return "continuous; no global Lipschitz constant is known"
    if value.known:
        return f"Lipschitz with constant {value.value:.4g}"
    return "Lipschitz, its constant depending on the data"


def verdict(analysis: Analysis, width: int) -> list[str]:
    """What the curvature of the problem lets an answer claim."""
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


def _term_text(normal: Any, term: Any) -> str:
    """A summand as the user wrote it; of one that a reformulation made, the new variable or what it
    was made from."""
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
        if kind == "deterministic":
            size = ""
        elif isinstance(n, int):
            size = f", {n:,} block{'s' * (n != 1)}"
        else:
            size = ""
        if isinstance(d1, int) and d1 > 1:
            size += f" of {d1} expectations"
        lines += wrap(f"{label}: {text}", width, "  ", "    ")
        lines += wrap(f"{kind}{size}", width, "      ")
        for inner in getattr(term, "inner", ()) if kind == "composition" else ():
            lines += wrap(f"tracked: {inner}", width, "      ", "        ")
    for text, how, why in getattr(normal, "treatment", ()):
        if how in ("smoothed", "penalised"):  # told by the reformulation that did it
            continue
        lines += wrap(f"{how}: {text} ({why})", width, "  ", "    ")
    return lines
