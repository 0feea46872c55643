"""The explanation on one screen: problem, structure, the algorithm and why, and where the rest is found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fccomodel.app.shown.explain import notes
from fccomodel.app.shown.explain.data import normal_of
from fccomodel.app.shown.explain.plans import choice_lines, items, refused_lines
from fccomodel.app.shown.explain.words import verdict
from fccomodel.core import ir
from fccomodel.core.diagnostics import Diagnostic
from fccomodel.core.quoting import visible
from fccomodel.normal_form import NormalForm
from fccomodel.plan import Plan
from fccomodel.plan.candidates import GIVEN, Candidate
from fccomodel.structure import Analysis
from fccomodel.structure.facts import Facts
from fccomodel.structure.why import wrap

#: Lines of a screen.
HEIGHT = 24
#: Constraints that are listed, and tracked expectations.
LISTED_CONSTRAINTS = 4
LISTED_EXPECTATIONS = 2
#: Columns of a headline before its facts.
NAME_COLUMNS = 34


def to_screen(
    analysis: Analysis,
    plan: Plan | None,
    *,
    candidates: Mapping[str, Candidate],
    refusal: Sequence[Diagnostic],
    width: int,
    in_python: bool,
) -> str:
    """The explanation in at most HEIGHT lines, unless a refusal alone takes more.

    in_python   whether the last lines name attributes in Python, or options of the command

    The other arguments are those of ``to_text``.
    """
    lines = [analysis.problem.name, *refused_lines(analysis, refusal, candidates, width)]
    lines += _parts(analysis, width)
    lines += verdict(analysis, width)
    normal = normal_of(plan, candidates)
    if normal is not None:
        lines += _structure(normal, width)
    if plan is not None:
        lines += ["", *_algorithm(plan, width)]
    footer = ["", *wrap(_rest(analysis, plan, in_python), width, "")]
    room = HEIGHT - len(lines) - len(footer)
    lines += _notes(analysis, plan, width, room, "" if in_python else " (--all)")
    return visible("\n".join(line.rstrip() for line in [*lines, *footer]), "\n")


def _parts(analysis: Analysis, width: int) -> Iterator[str]:
    """A line for the objective and for each of the first constraints: name, facts, text."""
    objective = analysis.problem.objective
    name = f"{objective.sense} {objective.label or ''}".rstrip()
    yield _part(analysis, name, objective.expr, analysis.objective, width)
    constraints = analysis.problem.constraints
    for constraint in constraints[:LISTED_CONSTRAINTS]:
        facts = analysis.constraints[constraint.label]
        yield _part(analysis, f"subject to {constraint.label}", constraint.body, facts, width)
    more = len(constraints) - LISTED_CONSTRAINTS
    if more > 0:
        yield f"  and {more} more constraint{'s' * (more > 1)}"


def _part(analysis: Analysis, name: str, expr: ir.Expr, facts: Facts, width: int) -> str:
    """One line about an expression."""
    about = facts.curvature
    if not facts.constant:
        about += ", smooth" if facts.smooth else ", not smooth"
    line = f"  {name}: {about}".ljust(NAME_COLUMNS)
    return _cut(f"{line}  {analysis.problem.text(expr)}", width)


def _cut(line: str, width: int) -> str:
    """A line that fits into a width; what is left out is marked."""
    if len(line) <= width:
        return line
    return line[: width - 2].rstrip() + " …"


def _structure(normal: NormalForm, width: int) -> Iterator[str]:
    """What the model consists of: compositions with their tracked expectations, or plain expectations."""
    compositions = [term for term in normal.terms if term.kind == "composition"]
    for term in compositions[:LISTED_EXPECTATIONS]:
        blocks = ""
        if isinstance(term.n, int):
            blocks = f" ({term.n:,} block{'s' * (term.n != 1)})"
        tracked = term.inner[0] if term.inner else term.text
        yield _cut(f"A composition{blocks}, which needs an estimate of {tracked}", width)
    more = len(compositions) - LISTED_EXPECTATIONS
    if more > 0:
        yield f"and {more} more composition{'s' * (more > 1)}"
    kinds = {term.kind for term in normal.terms if term.label == "objective"}
    if "expectation" in kinds and "composition" not in kinds:
        yield "No composition in the objective: minibatches give its gradient without bias."
    labels = [term.label for term in normal.terms if term.kind == "expectation"]
    constrained = [label for label in dict.fromkeys(labels) if label != "objective"]
    if constrained:
        yield _cut(
            f"Compositions as penalties of constraints on expectations: {', '.join(constrained)}", width
        )


def _algorithm(plan: Plan, width: int) -> list[str]:
    """The algorithm, its guarantee, and the reasons for it."""
    lines = [f"Algorithm  {plan.algorithm}: {plan.title}"]
    promise = plan.promise
    if plan.unverified or promise is None:
        lines += wrap("no theorem covers this run", width, "  ")
    elif not all(finding.holds for finding in plan.findings.values()):
        lines += wrap("its theorem does not cover all of the model", width, "  ")
    else:
        lines += wrap(f"guarantee: {GIVEN[promise.gives]} in O({promise.rate}) {plan.counts}", width, "  ")
    for text in choice_lines(plan):
        lines += wrap(text, width, "  ")
    return lines


def _notes(analysis: Analysis, plan: Plan | None, width: int, room: int, where: str) -> list[str]:
    """The notes, or their number and ``where`` they are if there is no room for them."""
    warnings = list(notes.warnings(analysis, plan))
    if not warnings:
        return []
    lines = ["", "Note", *items(warnings, width)]
    if len(lines) <= room:
        return lines
    return ["", f"Notes: {len(warnings)}{where}"]


def _rest(analysis: Analysis, plan: Plan | None, in_python: bool) -> str:
    """Where the rest is found."""
    names = ["objective", *(c.label for c in analysis.problem.constraints[:1])]
    others = "what each algorithm lacks"
    if plan is not None:
        others = "what its theorem assumes, what practice adds, why not the other algorithms"
    if in_python:
        why, rest = " or ".join(f'.why("{name}")' for name in names), "print it"
    else:
        why, rest = " or ".join(f"--why {name}" for name in names), "--all"
    return f"The rules behind a line: {why}. Also constants, {others}: {rest}."
