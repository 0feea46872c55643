"""The same seed, the same answer: models solved twice, the second time by a clock that runs three
times as fast and unevenly.

    python tests/bench/same.py [--models 30] [--budget 120s]

same       variables and report agree to the bit
timed      the clock ended one of the runs, which the report says; these are not compared
other      neither: exit status 1
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Callable

import numpy as np
from books import MODELS

import fccomodel

CLOCK = time.perf_counter


def uneven(began: float) -> Callable[[], float]:
    return lambda: began + 3 * (CLOCK() - began) + 0.01 * math.sin(50 * CLOCK())


def compared(first: fccomodel.Result, second: fccomodel.Result) -> str:
    if first.outcome.solution.timed or second.outcome.solution.timed:
        return "timed"
    variables = all(np.array_equal(value, second.variables[name]) for name, value in first.variables.items())
    reports = [repr(r.report.to_json() | {"wall_s": 0}) for r in (first, second)]
    return "same" if variables and reports[0] == reports[1] else "other"


def solved(name: str, budget: str, clock: Callable[[], float]) -> fccomodel.Result:
    model = MODELS[name]()
    bound = fccomodel.compile(model.text).bind(data=model.data)
    time.perf_counter = clock
    try:
        return bound.solve(budget=budget)
    finally:
        time.perf_counter = CLOCK


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=30)
    parser.add_argument("--budget", default="120s")
    arguments = parser.parse_args()
    totals: Counter[str] = Counter()
    print(f"{'model':32}{'steps':>9}{'passes':>9}{'interior':>9}  compared")
    for name in list(MODELS)[:: max(len(MODELS) // arguments.models, 1)][: arguments.models]:
        try:
            pair = [solved(name, arguments.budget, clock) for clock in (CLOCK, uneven(CLOCK()))]
        except fccomodel.FccoError as error:
            print(f"{name:32}{error.diagnostics[0].code:>9}", flush=True)
            continue
        kind, solution = compared(*pair), pair[0].outcome.solution
        totals[kind] += 1
        print(
            f"{name:32}{solution.iterations:9,}{solution.passes:9,}{solution.interior:9,}  {kind}", flush=True
        )
    print(", ".join(f"{count} {kind}" for kind, count in totals.most_common()))
    return int(totals["other"] > 0)


if __name__ == "__main__":
    sys.exit(main())
