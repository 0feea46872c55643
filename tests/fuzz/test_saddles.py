"""No saddle and no pole is called solved, and what is solved keeps its words: ``FUZZ=8000 pytest
tests/fuzz/test_saddles.py``."""

from __future__ import annotations

import os

import pytest
from fuzz.saddles import KINDS, Case, cases

import fccomodel

#: one of each kind in a usual run
CASES = max(int(os.environ.get("FUZZ", "0")) // 40, len(KINDS))
#: Budgets: of cases that must be solved, on a busy machine too, and of those that must not be called so.
SURE = "20s"
ENOUGH = "3s"
#: How near to an optimum a case without a saddle must end.
CLOSE = 1e-4
#: Failures that may be the truth where there is a pole.
ENDLESS = ("unbounded", "unattained")


def judged(case: Case) -> str:
    """What is false of the answer to a case; "" if nothing is."""
    problem = fccomodel.compile(case.text).bind(**({"data": case.data} if case.data else {}))
    budget = ENOUGH if case.optimum is None else SURE
    result = problem.solve(seed=0, budget=budget, **({} if case.start is None else {"start": case.start}))
    value = result.objective if "minimize" in case.text else -result.objective
    verdict = result.report.verdict
    if case.optimum is not None:
        right = verdict.startswith("Solved") and abs(value - case.optimum) <= CLOSE * max(
            1.0, abs(case.optimum)
        )
        return "" if right else f"{value:.6g} for {case.optimum:.6g}: {verdict}"
    if result.report.failure:
        return "" if result.report.failure in ENDLESS and case.bar == -float("inf") else verdict
    called = verdict.startswith(("Solved", "Stationary to"))
    return f"{value:.6g} above {case.bar:.6g}: {verdict}" if called and value >= case.bar else ""


@pytest.mark.parametrize(
    "name, case", list(cases(CASES)), ids=lambda part: part if isinstance(part, str) else ""
)
def test_saddles_and_poles(name: str, case: Case) -> None:
    false = judged(case)
    assert not false, f"{case.text}\n{false}"
