"""The errors, structure, mathematics and algorithms of a model, as the page shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fccomodel import pipeline
from fccomodel.app.editor.document import Document
from fccomodel.app.generated import templates
from fccomodel.app.playground import errors
from fccomodel.app.shown import cards, explain
from fccomodel.core import ir
from fccomodel.core.diagnostics import Diagnostic, FccoError, refuse
from fccomodel.core.source import NOWHERE, Source, Span
from fccomodel.language.parse import parse
from fccomodel.language.statements.include import Include

if TYPE_CHECKING:
    from fccomodel.plan.candidates import Candidate
    from fccomodel.structure import Analysis

#: Largest number of expressions in a tree.
LARGEST_TREE = 300
#: The name of a text in messages.
NAME = "model"


def examples() -> list[dict[str, str]]:
    """The templates with their models: name, a sentence, and the text."""
    return [
        {"name": name, "about": about, "text": templates.model(name)}
        for name, about in templates.known().items()
    ]


def checked(text: str) -> list[dict[str, Any]]:
    """The errors and the lint notes of a text, with their places from 0. Reads no other file."""
    document = Document(text=text, name=NAME)
    try:
        included = _include(parse(document.source, document.known.read).statements)
    except FccoError:
        included = None
    if included is not None:
        return [_finding(included, included.span or NOWHERE, text)]
    return [_finding(finding.diagnostic, finding.span, text) for finding in document.findings]


def compiled(text: str) -> pipeline.Compiled:
    """The checked model of a text. Raises FccoError for its errors, and for an ``include``."""
    source = Source(text=text, name=NAME)
    included = _include(parse(source).statements)
    if included is not None:
        raise FccoError([included], source)
    return pipeline.compile_model(source)


def _include(statements: tuple[Any, ...]) -> Diagnostic | None:
    """The error of the first statement that includes a file, or None."""
    for statement in statements:
        if isinstance(statement, Include):
            return errors.no_include(statement.path, statement.span)
    return None


def _finding(diagnostic: Diagnostic, span: Span, text: str) -> dict[str, Any]:
    """A diagnostic with the offsets of its place in the text."""
    line = text.count("\n", 0, span.start) + 1
    return {
        "code": diagnostic.code,
        "topic": diagnostic.topic,
        "message": diagnostic.message,
        "reason": diagnostic.reason,
        "fix": diagnostic.fix,
        "severity": diagnostic.severity,
        "start": span.start,
        "end": max(span.end, span.start + 1),
        "line": line,
    }


# -------------------------------------------------------------------------------------- explanations
def explained(text: str) -> dict[str, Any]:
    """The explanation of a model without data. Raises FccoError for errors of the text.

    short        the explanation on one screen
    mathematics  rows of cells of MathML; [] without latex2mathml
    verdict      whether points that meet the KKT conditions are global minima
    parts        objective and constraints, each with its tree of facts
    chosen       the algorithm, and why; None if no algorithm solves the model
    algorithms   every algorithm, with what the model lacks for it
    notes        warnings
    """
    from fccomodel.app.python.solved import Explanation

    model = compiled(text)
    found = pipeline.explain(model, pipeline.Binding(), {})
    analysis = found.analysis
    chosen = None
    if found.plan is not None:
        why = explain.choice_lines(found.plan)
        chosen = {"name": found.plan.algorithm, "why": why}
    return {
        "short": str(Explanation(explained=found).short),
        "mathematics": mathematics(model.problem),
        "verdict": " ".join(line.strip() for line in explain.verdict(analysis, explain.WIDTH)),
        "parts": _parts(analysis),
        "chosen": chosen,
        "algorithms": [_algorithm(one) for one in cards.in_order(found.candidates)],
        "notes": list(explain.warnings(analysis, found.plan)),
    }


def _algorithm(candidate: Candidate) -> dict[str, Any]:
    """An algorithm with what its theorem gives for the model, or what the model lacks."""
    record = candidate.record
    return {
        "name": record.name,
        "title": record.title,
        "covers": candidate.covered,
        "says": cards.verdict_on(candidate),
    }


def mathematics(problem: ir.Problem) -> list[list[str]]:
    """The problem as rows of cells of MathML; [] if latex2mathml is not installed."""
    from fccomodel.app.shown.page import mathematics as rows

    try:
        return rows(problem)
    except FccoError:
        return []


def _parts(analysis: Analysis) -> list[dict[str, Any]]:
    """The objective and the constraints with their trees."""
    problem, left = analysis.problem, [LARGEST_TREE]
    name = f"{problem.objective.sense} {problem.objective.label or ''}".strip()
    parts = [{"name": name, "tree": _tree(analysis, problem.objective.expr, left)}]
    for constraint in problem.constraints:
        parts.append({"name": constraint.label, "tree": _tree(analysis, constraint.body, left)})
    return parts


def _tree(analysis: Analysis, node: ir.Expr, left: list[int]) -> dict[str, Any]:
    """An expression with its facts, and the parts of it that depend on variables.

    left   how many more expressions the tree may have, in a list of one
    """
    while isinstance(node, ir.LetRef):
        node = node.let.body
    left[0] -= 1
    facts = analysis.see(node)
    curvature = facts.curvature_fact
    inner = [child for child in node.children if isinstance(child, ir.Expr) and _varies(analysis, child)]
    return {
        "text": analysis.problem.text(node),
        "curvature": str(facts.curvature),
        "smooth": bool(facts.smooth),
        "monotone": {name: str(facts.monotone(name)) for name in sorted(facts.leaves)},
        "rule": curvature.rule,
        "reason": curvature.reason,
        "children": [_tree(analysis, child, left) for child in inner if left[0] > 0],
    }


def _varies(analysis: Analysis, node: ir.Expr) -> bool:
    """Whether an expression depends on a variable."""
    return bool(ir.variables_of(node)) and not analysis.see(node).constant


def template_of(name: str) -> str:
    """The name of a template. F0805 for an unknown one."""
    if name not in templates.known():
        refuse(errors.no_example(name, list(templates.known())))
    return name


def solved(result: Any) -> Mapping[str, Any]:
    """The status of an answer, its one sentence, its report, and its page if that can be made."""
    try:
        page = str(result.html())
    except FccoError:
        page = ""
    return {"status": result.status, "in_words": result.in_words, "report": str(result), "page": page}
