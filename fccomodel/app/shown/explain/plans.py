"""A plan in words: reformulations, the algorithm, why it is this one, how its theorem's assumptions
are met, what others lack."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fccomodel.app.shown.explain.data import named
from fccomodel.core.diagnostics import Diagnostic
from fccomodel.plan import assumptions
from fccomodel.plan.candidates import GIVEN, Candidate
from fccomodel.plan.errors import NO_ALGORITHM
from fccomodel.plan.ranking import nearest
from fccomodel.structure import Analysis
from fccomodel.structure.why import wrap

#: The name of a paper at the beginning of a clause: ``sox-2022, ``, ``Ghadimi, Ruszczynski and Wang 2020, ``.
PAPER = re.compile(r".*?\d{4}, ")


def plan_lines(plan: Any, normal: Any, width: int) -> list[str]:
    """The chain of reformulations, the algorithm, how its theorem's assumptions are met, its rate, and
    what the others lack."""
    lines = []
    chain = getattr(getattr(normal, "chain", None), "steps", ())
    if chain:
        lines += ["", "Reformulations"]
    for step in chain:
        lines += items([f"{step.reformulation.title}: {sentence}" for sentence in step.sentences], width)
        lines += wrap(step.reformulation.account, width, "      ")
    record = getattr(plan, "algorithm_record", None)
    lines += ["", f"Algorithm  {plan.algorithm}"]
    unverified = getattr(plan, "unverified", ())
    if getattr(plan, "optimizer", ""):
        lines += wrap(plan.summary[0], width, "  ")
    elif record is not None and unverified:
        lines += wrap(f"{plan.title}; no theorem covers this run, which needs", width, "  ")
        lines += items(unverified, width)
    elif record is not None and not all(finding.holds for finding in plan.findings.values()):
        lines += wrap(
            f"{plan.title}, beyond {plan.promise.name}, which does not cover all of the model", width, "  "
        )
    elif record is not None:
        lines += wrap(f"{plan.title}, {plan.promise.name}", width, "  ")
        here = getattr(plan, "rate", "")
        promised = f"{GIVEN[plan.promise.gives]} in O({plan.promise.rate}) {plan.counts}"
        lines += wrap(promised + (f"; here {here}" if here else ""), width, "  ", "    ")
    lines += [
        line
        for text in (*choice_lines(plan), *backend_lines(plan))
        for line in wrap(text, width, "  ", "    ")
    ]
    if added := getattr(plan, "practice", ()):
        lines += ["", "Practice does without a theorem" if unverified else "Practice adds to the theorem"]
        lines += items(added, width)
    if getattr(plan, "findings", {}):
        lines += ["", "The algorithm's theorem assumes" if unverified else "Its theorem assumes"]
        for line in assumption_lines(plan):
            lines += wrap(line, width, "  - ", "    ")
    if constants := getattr(plan, "constants", None):
        lines += ["", "Constants of its schedule"]
        lines += items([*constant_lines(constants), *plan.schedule.sentences()], width)
    return lines + rejected_lines(getattr(plan, "others", ()), width)


def rejected_lines(others: Iterable[tuple[list[str], str]], width: int, title: str = "Rejected") -> list[str]:
    """Algorithms that share a reason, and the reason."""
    lines = [
        line
        for names, reason in others
        for line in wrap(f"{', '.join(names)}: {reason}", width, "  ", "      ")
    ]
    if lines:
        return ["", title, *lines]
    return []


def refused_lines(
    analysis: Analysis, refusal: Sequence[Diagnostic], candidates: Mapping[str, Candidate], width: int
) -> list[str]:
    """Why nothing solves a model: what the nearest algorithms lack, and what to change."""
    lines: list[str] = []
    for one in refusal:
        if one.span is None:
            place = ""
        else:
            place = " at {}:{}".format(*analysis.problem.source.place(one.span))
        lines += wrap(f"Not solved ({one.code}): {one.message}{place}.", width, "")
        if one.code == NO_ALGORITHM.id:
            lines += items(
                (f"{c.record.name} needs {'; '.join(c.lacks())}" for c in nearest(candidates)), width
            )
        elif one.reason:
            lines += wrap(one.reason, width, "  ")
        lines += [*wrap(f"Fix: {one.fix}", width, "  ", "       "), ""]
    return lines


def choice_lines(plan: Any) -> list[str]:
    """Why it is this algorithm: by its theorem, or by which measurements, and what the theorems alone
    would choose."""
    ranking = getattr(plan, "ranking", None)
    if ranking is None:
        return []
    if plan.interior and not named(plan):
        return ["chosen because no stochastic algorithm's theorem covers the model"]
    if plan.entrants:
        return [
            f"a race of {', '.join(plan.entrants)}: each takes a share of the budget, and the one that "
            "came furthest goes on"
        ]
    if named(plan):
        return ["chosen by name"]
    reasons = ranking.reasons()
    if reasons:
        return [f"chosen by {'; '.join(reasons)}"]
    return []


def backend_lines(plan: Any) -> list[str]:
    """What is asked to run the steps, where it is not what runs them of itself."""
    name, origin = getattr(plan, "options", {}).get("backend", ("auto", ""))
    if name in ("auto", "eager"):
        return []
    return [f"steps by the {name} backend ({origin})"]


def assumption_lines(plan: Any) -> list[str]:
    """One line per assumption: what, its clause in the paper of the theorem, how it is met, and why;
    what they take on trust."""
    if plan.promise is None:
        return []
    paper = (PAPER.match(plan.promise.name) or [""])[0]
    lines = [
        f"{name} ({plan.clauses[name].removeprefix(paper)}): "
        f"{finding.standing if finding.holds else 'does not hold'}; {finding.why}"
        for name, finding in plan.findings.items()
    ]
    trusted = any(words in line for line in lines for words in (assumptions.RANGE, assumptions.WEIGHTS))
    return lines + ([assumptions.TRUST] if trusted else [])


def constant_lines(constants: Any) -> list[str]:
    """One line per constant of a theorem's schedule, with its standing."""
    numbers = [f"n = {constants.n:,}, B1 = {constants.B1:,}, B2 = {constants.B2:,}, eps = {constants.eps:g}"]
    return numbers + [
        f"{name} = {getattr(constants, name):.3g} ({standing})"
        for name, standing in constants.standing.items()
    ]


def items(texts: Iterable[str], width: int) -> list[str]:
    """Each text behind a dash."""
    return [line for text in texts for line in wrap(text, width, "  - ", "    ")]
