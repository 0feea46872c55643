"""The verdict of a report as one word, for programs."""

from __future__ import annotations

from fccomodel.report.verdicts import grades

#: Violation, relative to its constraint's scale, up to which constraints count as met.
FEASIBLE = grades.FEASIBLE
#: Words by the grade that a verdict begins with.
WORDS = {
    "Solved to high accuracy": "solved",
    "Solved": "solved",
    "Solved roughly": "roughly",
    "Stationary to high accuracy": "stationary",
    "Stationary": "stationary",
    "Roughly stationary": "roughly_stationary",
    grades.OPEN: "loose_bound",
    grades.BEATEN: "not_best",
    grades.SADDLE: "saddle",
}


#: Statuses of a run whose problem has no solution. They are words themselves.
FAILURES = ("infeasible", "infeasible_nearby", "unbounded", "unattained")


def word(verdict: str, status: str, violation: float) -> str:
    """The verdict in one word.

    verdict     the report's text
    status      the status of the run
    violation   the largest one, relative to its constraint's scale

    The word is one of those in ``WORDS`` and ``FAILURES``, or ``stopped_feasible``, or
    ``stopped_infeasible``.
    """
    if status in FAILURES:
        return status
    for grade in sorted(WORDS, key=len, reverse=True):
        if verdict.startswith(grade):
            return WORDS[grade]
    if violation <= FEASIBLE:
        return "stopped_feasible"
    return "stopped_infeasible"
