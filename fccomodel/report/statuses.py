"""The verdict of a report as one word, for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.report.verdicts import grades

if TYPE_CHECKING:
    from fccomodel.report import KKTReport

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


def word(report: KKTReport) -> str:
    """The verdict in one word.

    One of ``solved``, ``roughly``, ``stationary``, ``roughly_stationary``, ``loose_bound``,
    ``not_best``, ``saddle``, ``infeasible``, ``infeasible_nearby``, ``unbounded``, ``unattained``,
    ``stopped_feasible`` or ``stopped_infeasible``.
    """
    if report.failure:
        return report.failure
    for grade in sorted(WORDS, key=len, reverse=True):
        if report.verdict.startswith(grade):
            return WORDS[grade]
    violation = report.relative.get("feasibility", report.feasibility)
    if violation <= FEASIBLE:
        return "stopped_feasible"
    return "stopped_infeasible"
