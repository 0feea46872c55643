"""Models of textbooks, solved with default options, against CVXPY of the same problems written by
hand.

    python tests/bench/textbook.py [--only name ...] [--budget 25s] [--show] [--table textbook.md]

off        objective less CVXPY's, relative to the larger of CVXPY's and 0.01
epsilon    the residual that the report gives            gap  the distance to the optimum that it
           proves, relative as ``off``
s          processor seconds from the text to the report CVXPY  its processor seconds, by Clarabel
right      off and violation at most 1e-5, the verdict "Solved" (not roughly), within 10 s or three
           times CVXPY's; or the failure
           that is there
slow       the same, in more time                        unsolved  where the report says so, or an error
wrong      a verdict, a certified gap or a failure that is not true

Exit status 1 if any is not right.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import cvxpy as cp
from books import MODELS
from books.model import Model

import fccomodel

CLOSE, SECONDS, TIMES = 1e-5, 10.0, 3.0
TIGHT = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What CVXPY finds: a status of ours (``converged``, ``infeasible``, ``unbounded``), the optimum,
    and the seconds at default tolerances."""

    status: str
    optimum: float
    seconds: float


def reference(problem: cp.Problem) -> Reference:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.process_time()
        problem.solve(solver="CLARABEL")
        seconds, found = time.process_time() - began, problem.solution
        if problem.status in ("optimal", "optimal_inaccurate"):
            try:
                problem.solve(solver="CLARABEL", **TIGHT)
                found = problem.solution
            except cp.error.SolverError:
                pass
    status = found.status.partition("_")[0]
    return Reference(
        status="converged" if status == "optimal" else status, optimum=found.opt_val, seconds=seconds
    )


def judged(best: Reference, found: fccomodel.Result, off: float, scale: float, seconds: float) -> str:
    status, report = found.outcome.solution.status, found.report
    if best.status != "converged" or status in ("infeasible", "unbounded", "unattained"):
        claimed = report.verdict.startswith("Solved") or status in ("infeasible", "unbounded", "unattained")
        return "right" if status == best.status else "wrong" if claimed else "unsolved"
    claimed, gap = report.verdict.startswith("Solved"), None if report.gap is None else report.gap.value
    worse = off if found.outcome.planned.problem.objective.sense == "minimize" else -off
    close = abs(off) <= CLOSE and report.feasibility <= CLOSE
    if (
        gap is not None
        and worse > gap / scale + 1e-7
        or claimed
        and abs(off) > max(1e-3, 10 * report.epsilon / scale)
    ):
        return "wrong"
    if not (claimed and close) or report.verdict.startswith(("Solved roughly", "Solved locally, roughly")):
        return "unsolved"
    return "right" if seconds <= max(SECONDS, TIMES * best.seconds) else "slow"


def line(name: str, model: Model, budget: str | None) -> tuple[str, str]:
    """A line of the table, and how the model was judged."""
    best = reference(model.problem)
    scale = max(abs(best.optimum), 0.01)
    began = time.process_time()
    try:
        bound = fccomodel.compile(model.text).bind(data=model.data)
        found = bound.solve(seed=0, **({} if budget is None else {"budget": budget}))
    except fccomodel.FccoError as error:
        first, figures = error.diagnostics[0], f"{'':40}{time.process_time() - began:7.1f}{best.seconds:7.1f}"
        return f"{name:32}{figures}  unsolved {first.code} {first.message}", "unsolved"
    seconds, report = time.process_time() - began, found.report
    off = (found.objective - best.optimum) / scale
    kind = judged(best, found, off, scale, seconds)
    gap = "-" if report.gap is None or report.gap.value is None else f"{report.gap.value / scale:.0e}"
    figures = f"{off:10.1e}{report.epsilon:10.1e}{gap:>10}{report.feasibility:10.1e}{seconds:7.1f}{best.seconds:7.1f}"
    how = f" interior {found.outcome.solution.interior}" if found.outcome.solution.interior else ""
    return f"{name:32}{figures}  {kind:8} {report.verdict.partition(':')[0][:50]}{how}", kind


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", metavar="name", default=list(MODELS), help="these models")
    parser.add_argument("--budget", help="other than the default")
    parser.add_argument("--show", action="store_true", help="the texts of those that are not right")
    parser.add_argument("--table", type=Path, metavar="file", help="write the lines there, as Markdown")
    arguments = parser.parse_args()
    lines = [
        f"{'model':32}{'off':>10}{'epsilon':>10}{'gap':>10}{'violation':>10}{'s':>7}{'CVXPY':>7}  judged  "
        " verdict"
    ]
    print(lines[0])
    totals: Counter[str] = Counter()
    fccomodel.compile("var x; minimize (x - 1)^2;").bind().solve()  # imports take no model's time
    for name in arguments.only:
        model = MODELS[name]()
        shown, kind = line(name, model, arguments.budget)
        totals[kind] += 1
        print(shown, flush=True)
        lines.append(shown)
        if arguments.show and kind != "right":
            print(model.text.replace("; ", ";\n  "))
    lines.append(", ".join(f"{count} {kind}" for kind, count in totals.most_common()))
    print(lines[-1])
    if arguments.table is not None:
        heading = f"# Models of textbooks against CVXPY\n\n{__doc__.partition('Exit')[0].strip()}\n"
        arguments.table.write_text(
            heading + "\n```\n" + "\n".join(line.rstrip() for line in lines) + "\n```\n"
        )
    return int(totals["right"] < sum(totals.values()))


if __name__ == "__main__":
    sys.exit(main())
