"""Models whose answers are easily wrong: what ``solve`` says of each, and what is true.

    python tests/bench/traps.py [--only name ...] [--budget 10s] [--show]

truth      the optimum, or ``unbounded``, ``infeasible``, ``unattained`` (an infimum that no point has)
right      the verdict "Solved" within 1e-3 of the optimum (relative above 0.01) and of the
           constraints, or the failure that is
           there; of a model that is not convex, at another point that meets the conditions too
honest     neither: the report says itself that it is not solved, or the model is refused with a reason
wrong      "Solved" elsewhere, a failure that is not there, or a certified gap that is smaller than
           the true one

Exit status 1 if any is wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from books.traps import TRAPS, Trap

import fccomodel
from fccomodel.core.diagnostics import FccoError

CLOSE, LEAST = 1e-3, 1e-2
FAILURES = ("infeasible", "unbounded", "unattained")


def judged(trap: Trap, found: fccomodel.Result) -> str:
    """``right``, ``honest`` or ``wrong``."""
    report, status = found.report, found.outcome.status
    if isinstance(trap.truth, str):
        if status == trap.truth:
            return "right"
        if status in FAILURES:
            return "wrong"
        near = any(_near(found.objective, value) for value in trap.others)
        return "honest" if not report.solved else "right" if near else "wrong"
    off = found.objective - trap.truth
    worse = off if found.outcome.planned.problem.objective.sense == "minimize" else -off
    gap = None if report.gap is None else report.gap.value
    scale = max(abs(trap.truth), LEAST)
    if status in FAILURES or gap is not None and worse > max(gap, 0) + 1e-6 * scale + report.feasibility:
        return "wrong"
    if not report.solved:
        return "honest"
    near = any(_near(found.objective, value) for value in (trap.truth, *trap.others))
    return "right" if near and report.relative["feasibility"] <= CLOSE else "wrong"


def _near(value: float, true: float) -> bool:
    return abs(value - true) <= CLOSE * max(abs(true), LEAST)


def tried(trap: Trap, budget: str) -> tuple[str, str]:
    """How a trap was met, and what was said."""
    try:
        found = fccomodel.compile(trap.text).bind(data=trap.data).solve(seed=0, budget=budget)
    except FccoError as error:
        return "honest", f"{error.diagnostics[0].code} {error.diagnostics[0].message}"
    except Exception as error:
        return "wrong", repr(error)
    report = found.report
    said = report.verdict.partition(":")[0] if found.outcome.status not in FAILURES else found.outcome.status
    gap = "-" if report.gap is None or report.gap.value is None else f"{report.gap.value:.0e}"
    return judged(trap, found), f"{found.objective:14.8g}{report.epsilon:10.1e}{gap:>9}  {said[:60]}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", metavar="name", default=list(TRAPS), help="these models")
    parser.add_argument("--budget", default="10s")
    parser.add_argument("--show", action="store_true", help="the texts of those that are not right")
    arguments = parser.parse_args()
    totals: Counter[str] = Counter()
    print(f"{'model':40}{'truth':>14}  {'judged':8}{'objective':>14}{'epsilon':>10}{'gap':>9}  said, seconds")
    for name in arguments.only:
        began = time.process_time()
        kind, said = tried(TRAPS[name], arguments.budget)
        totals[kind] += 1
        truth = TRAPS[name].truth
        shown = truth if isinstance(truth, str) else f"{truth:.8g}"
        print(f"{name:40}{shown:>14}  {kind:8}{said}, {time.process_time() - began:.1f}", flush=True)
        if arguments.show and kind != "right":
            print(TRAPS[name].text)
    print(", ".join(f"{count} {kind}" for kind, count in totals.most_common()))
    return int(totals["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
