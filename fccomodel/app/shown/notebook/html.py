"""HTML for notebooks. It takes its colours from the page around it, light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from fccomodel.app.shown import display
from fccomodel.app.shown import explain as explaining
from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.quoting import visible
from fccomodel.structure.why import grounds, shown, steps, written

if TYPE_CHECKING:
    from fccomodel.pipeline import Explained, Outcome
    from fccomodel.plan import Plan
    from fccomodel.structure import Analysis
    from fccomodel.structure.facts import Fact, Facts

RESIDUALS = ("stationarity", "feasibility", "complementarity")
STYLE = """<style>
.fcco { --line: color-mix(in srgb, currentColor 22%, transparent);
  max-width: 54rem; line-height: 1.45; overflow-wrap: anywhere; }
.fcco .scroll { overflow-x: auto; }
.fcco .soft { opacity: .68; }
.fcco .good { color: #2b9348; }
.fcco .bad { color: #d6453d; }
.fcco table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .4rem 0;
  background: none; }
.fcco th, .fcco td { text-align: left !important; vertical-align: top;
  padding: .15rem .8rem .15rem 0; background: none; }
.fcco th { font-weight: 500; opacity: .68; }
.fcco .rows th, .fcco .rows td { border-bottom: 1px solid var(--line); }
.fcco .n { text-align: right !important; white-space: nowrap; }
.fcco .mathematics td { vertical-align: middle; padding: .1rem .3rem; white-space: nowrap; }
.fcco .verdict { border-left: .3rem solid; padding-left: .6rem; margin: .4rem 0; font-weight: 600; }
.fcco details > details, .fcco details > .inside { margin-left: 1.1rem; } .fcco summary { cursor: pointer; }
.fcco math { font-size: 1.2em; }
.fcco tr { background: none !important; }
.fcco .rows td { overflow-wrap: normal; }
.fcco pre { white-space: pre; overflow-x: auto; font-size: .85em; }
.fcco code { background: none !important; padding: 0; }
</style>"""


def page(*parts: str) -> str:
    """The parts below each other, with the style sheet."""
    return f'{STYLE}<div class="fcco">{"".join(parts)}</div>'


def text(words: object) -> str:
    """A user's text with its markup escaped."""
    return escape(visible(str(words), "\n"))


def unfolding(summary: str, *inside: str, opened: bool = False) -> str:
    """A line that unfolds to the parts inside."""
    return f"<details{' open' if opened else ''}><summary>{summary}</summary>{''.join(inside)}</details>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table of cells of HTML.

    numbers   places of the columns that are aligned to the right
    """

    def row(cells: Sequence[str], tag: str) -> str:
        """A row of cells."""
        rows_text = ""
        for k, cell in enumerate(cells):
            opening = f"<{tag} class=n>" if k in numbers else f"<{tag}>"
            rows_text += f"{opening}{cell}</{tag}>"
        return rows_text

    body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    return f'<div class="scroll"><table class="rows"><tr>{row(head, "th")}</tr>{body}</table></div>'


def listed(items: Iterable[object]) -> str:
    """A list of sentences."""
    return f"<ul>{''.join(f'<li>{text(item)}</li>' for item in items)}</ul>"


# ------------------------------------------------------------------------------------------- models
def model(problem: ir.Problem, rows: Mapping[str, int] | None = None) -> str | None:
    """A model in MathML, with the number of rows of each table; None if latex2mathml is missing."""
    from fccomodel.app.shown.page import mathematics

    try:
        lines = mathematics(problem)
    except FccoError:
        return None
    cells = ("".join(f"<td>{cell}</td>" for cell in line) for line in lines)
    typeset = "".join(f"<tr>{row}</tr>" for row in cells)
    data = ", ".join(f"{text(name)}: {n:,} rows" for name, n in (rows or {}).items())
    title = f"<b>{text(problem.name)}</b>"
    if data:
        title += f" <span class=soft>{data}</span>"
    return page(title, f'<div class="scroll"><table class="mathematics">{typeset}</table></div>')


# ------------------------------------------------------------------------------------- explanations
def explanation(explained: Explained) -> str:
    """The facts as a tree of rules and reasons, then the plan, or the reasons why there is none."""
    analysis = explained.analysis
    if explained.plan is not None:
        return page(*_structure(analysis, explained.plan), *plan(explained.plan))
    lacks = {name: one.lacks() for name, one in explained.candidates.items()}
    return page(*_refused(explained), *_structure(analysis), _lacking(lacks))


def _structure(analysis: Analysis, plan: Plan | None = None) -> list[str]:
    """The facts about the objective and about each constraint, the verdict, and the notes."""
    objective = analysis.problem.objective
    named = f"{objective.sense} {objective.label or 'objective'}"
    parts = [_part(analysis, named, objective.expr, analysis.objective)]
    parts += [
        _part(analysis, c.label, c.body, analysis.constraints[c.label]) for c in analysis.problem.constraints
    ]
    verdict = " ".join(line.strip() for line in explaining.verdict(analysis, display.WIDTH))
    warnings = explaining.warnings(analysis, plan)
    return [
        f"<p><b>{text(analysis.problem.name)}</b></p>",
        *parts,
        f"<p>{text(verdict)}</p>",
        listed(warnings) if warnings else "",
    ]


def _part(analysis: Analysis, name: str, expr: ir.Expr, facts: Facts) -> str:
    """One expression: its curvature, which unfolds to the derivations of its facts."""
    head = f"<b>{text(name)}</b>: {text(facts.curvature)}"
    if not facts.constant:
        head += ", smooth" if facts.smooth else ", not smooth"
    known = [facts.curvature_fact, facts.differentiable, facts.gradient, facts.lipschitz, facts.interval]
    trees = [_derivation(analysis, fact) for fact in known if fact.holds or fact is facts.curvature_fact]
    return unfolding(f"{head} <code>{text(analysis.problem.text(expr))}</code>", *trees)


def _derivation(analysis: Analysis, root: Fact) -> str:
    """A fact, which unfolds to the facts that it follows from."""
    opened, parts = 0, []
    for step in steps(analysis, root):
        parts.append("</details>" * max(0, opened - step.depth))
        opened = min(opened, step.depth)
        subject = ""
        if step.depth:
            subject = f" <code>{text(shown(analysis, step.fact.subject, display.WIDTH))}</code>"
        if step.again:
            source = "shown above"
        else:
            source = f"by {grounds(step.fact)}"
        place = _place(analysis, step.fact)
        line = f"{text(step.says)}{subject} <span class=soft>{text(source)}{place}</span>"
        if step.premises:
            parts.append(f"<details><summary>{line}</summary>")
            opened += 1
        else:
            parts.append(f'<div class="inside">{line}</div>')
    return "".join(parts) + "</details>" * opened


def _place(analysis: Analysis, fact: Fact) -> str:
    """The line and column of the expression that a fact is about."""
    span = written(fact.subject).span
    if span == ir.NOWHERE:
        return ""
    return ", at {}:{}".format(*analysis.problem.source.place(span))


def _refused(explained: Explained) -> list[str]:
    """The reasons why no algorithm solves the model."""
    parts = []
    for refusal in explained.refusal:
        parts.append(
            f'<div class="verdict bad">{text(refusal.code)}: {text(refusal.message)}</div>'
            f"<p>{text(refusal.reason)}<br>Fix: {text(refusal.fix)}</p>"
        )
    return parts


def plan(chosen: Plan) -> list[str]:
    """The algorithm, the assumptions of its theorem, and the requirements that other algorithms miss."""
    if chosen.unverified or chosen.promise is None:
        theorem = "no theorem covers this run"
    else:
        theorem = chosen.promise.name
    if chosen.unverified == () and not all(finding.holds for finding in chosen.findings.values()):
        theorem = f"beyond {theorem}, which does not cover all of the model"
    parts = [
        f"<p>Algorithm <b>{text(chosen.algorithm)}</b> <span class=soft>{text(chosen.title)}, "
        f"{text(theorem)}</span></p>"
    ]
    parts += [f"<p class=soft>{text(line)}</p>" for line in explaining.choice_lines(chosen)]
    rows = [
        (_assumption(name, chosen.clauses[name]), _standing(finding), text(finding.why))
        for name, finding in chosen.findings.items()
    ]
    if rows:
        parts.append(unfolding("assumptions of its theorem", table(("assumption", "standing", "why"), rows)))
    if chosen.practice:
        parts.append(unfolding("what practice adds", listed(chosen.practice)))
    return [*parts, _lacking(chosen.rejected)]


def _assumption(name: str, clause: str) -> str:
    """The name of an assumption above its clause in the paper."""
    return f"{text(name)}<br><span class=soft>{text(clause)}</span>"


def _standing(finding: Any) -> str:
    """The certainty of a finding, or the fact that the assumption does not hold."""
    if finding.holds:
        return text(finding.standing)
    return '<span class="bad">does not hold</span>'


def _lacking(rejected: Mapping[str, Sequence[str]]) -> str:
    """A table of the rejected algorithms with the requirements that they miss."""
    rows = [(text(name), text("; ".join(lacks))) for name, lacks in rejected.items()]
    if rows:
        return unfolding("other algorithms, and what each lacks", table(("algorithm", "why not"), rows))
    return ""


# ------------------------------------------------------------------------------------------ results
def result(outcome: Outcome, in_words: str, whole: str) -> str:
    """A result: objective, verdict, constraints, residuals and variables.

    in_words   one sentence on the answer
    whole      the report of a terminal as HTML, to which the last line unfolds
    """
    report, problem, solution = outcome.report, outcome.problem, outcome.solution
    goal, kinds = problem.objective, display.kinds(outcome.problem)
    facts = [outcome.answered.words, f"{outcome.wall_s:.1f} s"]
    parts = [
        f"<b>{text(problem.name)}</b> <span class=soft>{text(' · '.join(facts))}</span><br>",
        f"{goal.sense} {text(goal.label or 'objective')} = <b>{display.number(report.objective)}</b>",
        f'<div class="verdict {"good" if report.solved else "bad"}">{text(report.verdict)}</div>',
        f"<p>{text(in_words)}</p>",
    ]
    violations = {
        label: display.violation(label, row.value, kinds) for label, row in report.constraints.items()
    }
    order = sorted(violations, key=lambda label: -violations[label])
    rows = []
    for label in order[: display.MOST_ROWS]:
        holds = violations[label] <= display.TOLERANCE
        rows.append(_constraint(label, report.constraints[label], holds))
    if rows:
        parts.append(table(("", "constraint", "as written", "value", "multiplier"), rows, numbers=(3, 4)))
    if len(order) > len(rows):
        parts.append(f"<p class=soft>{len(order) - len(rows):,} more constraints have smaller values</p>")
    residuals = (f"{name} {display.residual(getattr(report, name))}" for name in RESIDUALS)
    parts.append(f"<p class=soft>KKT: {', '.join(residuals)}</p>")
    for line in display.variable_lines(outcome.bound, solution.variables):
        name, _, value = line.plain.partition("  ")
        parts.append(f"<div>at <b>{text(name)}</b> {text(value)}</div>")
    parts.append(unfolding("the whole report", whole))
    return page(*parts)


def _constraint(label: str, row: Any, holds: bool) -> tuple[str, ...]:
    """The cells of one constraint."""
    if holds:
        mark = '<span class="good">✓</span>'
    else:
        mark = '<span class="bad">✗</span>'
    if row.left is None:
        sides = ""
    else:
        sides = f"{display.number(row.left, 4)} {text(row.relation)} {display.number(row.right, 4)}"
    return (
        mark,
        text(label),
        sides,
        f"{row.value:+.1e}" if row.value else "0",
        display.number(row.multiplier, 4),
    )
