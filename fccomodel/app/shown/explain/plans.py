"""A plan in words: reformulations, the algorithm with its reasons and assumptions, the rejected ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from fccomodel.algorithms import Constants
from fccomodel.app.shown.explain.data import named
from fccomodel.core.diagnostics import Diagnostic
from fccomodel.normal_form import NormalForm
from fccomodel.plan import Plan, assumptions
from fccomodel.plan.candidates import GIVEN, Candidate
from fccomodel.plan.errors import NO_ALGORITHM
from fccomodel.plan.ranking import nearest
from fccomodel.structure import Analysis
from fccomodel.structure.why import wrap

#: A paper at the beginning of a clause, as ``sox-2022, `` or ``Ghadimi, Ruszczynski and Wang 2020, ``.
PAPER = re.compile(r".*?\d{4}, ")


def plan_lines(plan: Plan, width: int) -> list[str]:
    """The plan, section by section.

    plan     the plan
    width    columns of the text
    """
    lines = _reformulation_lines(plan.normal, width)
    lines += _algorithm_lines(plan, width)
    if plan.practice:
        lines += [
            "",
            "Practice does without a theorem" if plan.unverified else "Practice adds to the theorem",
        ]
        lines += items(plan.practice, width)
    if plan.findings:
        lines += ["", "The algorithm's theorem assumes" if plan.unverified else "Its theorem assumes"]
        lines += items(assumption_lines(plan), width)
    if plan.schedule is not None:
        lines += ["", "Constants of its schedule"]
        lines += items([*constant_lines(plan.schedule.constants), *plan.schedule.sentences()], width)
    return lines + rejected_lines(plan.others, width)


def _reformulation_lines(normal: NormalForm, width: int) -> list[str]:
    """The chain of reformulations, with an account of each."""
    chain = normal.chain.steps
    lines = ["", "Reformulations"] if chain else []
    for step in chain:
        lines += items([f"{step.reformulation.title}: {sentence}" for sentence in step.sentences], width)
        lines += wrap(step.reformulation.account, width, "      ")
    return lines


def _algorithm_lines(plan: Plan, width: int) -> list[str]:
    """The algorithm, its theorem and rate, and the reasons for it."""
    lines = ["", f"Algorithm  {plan.algorithm}"]
    promise = plan.promise
    if plan.optimizer:
        lines += wrap(plan.summary[0], width, "  ")
    elif plan.unverified or promise is None:
        lines += wrap(f"{plan.title}; no theorem covers this run, which needs", width, "  ")
        lines += items(plan.unverified, width)
    elif not all(finding.holds for finding in plan.findings.values()):
        beyond = f"{plan.title}, beyond {promise.name}, which does not cover all of the model"
        lines += wrap(beyond, width, "  ")
    else:
        lines += wrap(f"{plan.title}, {promise.name}", width, "  ")
        rate = f"{GIVEN[promise.gives]} in O({promise.rate}) {plan.counts}"
        if plan.rate:
            rate += f"; here {plan.rate}"
        lines += wrap(rate, width, "  ", "    ")
    for text in (*choice_lines(plan), *backend_lines(plan)):
        lines += wrap(text, width, "  ", "    ")
    return lines


def rejected_lines(others: Iterable[tuple[list[str], str]], width: int, title: str = "Rejected") -> list[str]:
    """Rejected algorithms with the reason, under a title; algorithms with a common reason share a line."""
    lines = []
    for names, reason in others:
        lines += wrap(f"{', '.join(names)}: {reason}", width, "  ", "      ")
    if lines:
        return ["", title, *lines]
    return []


def refused_lines(
    analysis: Analysis, refusal: Sequence[Diagnostic], candidates: Mapping[str, Candidate], width: int
) -> list[str]:
    """The reasons why no algorithm solves a model, and the changes that would help.

    If no algorithm fits, the reasons are the requirements that the nearest algorithms miss.
    """
    lines: list[str] = []
    for diagnostic in refusal:
        place = ""
        if diagnostic.span is not None:
            place = " at {}:{}".format(*analysis.problem.source.place(diagnostic.span))
        lines += wrap(f"Not solved ({diagnostic.code}): {diagnostic.message}{place}.", width, "")
        if diagnostic.code == NO_ALGORITHM.id:
            for candidate in nearest(candidates):
                lines += items([f"{candidate.record.name} needs {'; '.join(candidate.lacks())}"], width)
        elif diagnostic.reason:
            lines += wrap(diagnostic.reason, width, "  ")
        lines += [*wrap(f"Fix: {diagnostic.fix}", width, "  ", "       "), ""]
    return lines


def choice_lines(plan: Plan) -> list[str]:
    """The reasons for the choice of the algorithm: its theorem, measurements, or its name in an option."""
    if plan.interior and not named(plan):
        return ["chosen because no stochastic algorithm's theorem covers the model"]
    if plan.entrants:
        return [
            f"a race of {', '.join(plan.entrants)}: each takes a share of the budget, and the one that "
            "came furthest goes on"
        ]
    if named(plan):
        return ["chosen by name"]
    reasons = plan.ranking.reasons()
    if reasons:
        return [f"chosen by {'; '.join(reasons)}"]
    return []


def backend_lines(plan: Plan) -> list[str]:
    """The backend that runs the steps, if it is neither automatic nor the eager one."""
    name, origin = plan.options.get("backend", ("auto", ""))
    if name in ("auto", "eager"):
        return []
    return [f"steps by the {name} backend ({origin})"]


def assumption_lines(plan: Plan) -> list[str]:
    """A line for each assumption: name, clause in the theorem's paper, standing, and reason.

    A last line explains the assumptions that are taken on trust, if there are any.
    """
    if plan.promise is None:
        return []
    match = PAPER.match(plan.promise.name)
    paper = match[0] if match else ""
    lines = []
    for name, finding in plan.findings.items():
        standing = finding.standing if finding.holds else "does not hold"
        lines.append(f"{name} ({plan.clauses[name].removeprefix(paper)}): {standing}; {finding.why}")
    trusted = (assumptions.RANGE, assumptions.WEIGHTS)
    if any(words in line for line in lines for words in trusted):
        lines.append(assumptions.TRUST)
    return lines


def constant_lines(constants: Constants) -> list[str]:
    """A line for each constant of a theorem's schedule, with its standing."""
    lines = [f"n = {constants.n:,}, B1 = {constants.B1:,}, B2 = {constants.B2:,}, eps = {constants.eps:g}"]
    for name, standing in constants.standing.items():
        lines.append(f"{name} = {getattr(constants, name):.3g} ({standing})")
    return lines


def items(texts: Iterable[str], width: int) -> list[str]:
    """The texts as a list: each behind a dash, wrapped to a width."""
    lines = []
    for text in texts:
        lines += wrap(text, width, "  - ", "    ")
    return lines
