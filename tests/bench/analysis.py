"""The analysis on random expressions: against CVXPY, and its claims against random points.

    python tests/bench/analysis.py [--expressions N] [--seed S]

An expression counts as compared where CVXPY has all of its functions; its claims are tried wherever
its domain is proved.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from support.claims import kinds, tried  # noqa: E402
from support.cvxpy_mirror import compared  # noqa: E402
from support.random_expressions import base, text  # noqa: E402


def main(count: int, first: int) -> int:
    warnings.simplefilter("ignore")
    seeds, free, compact = range(first, first + count), base(), base(compact=True)
    failures: list[str] = []
    print(f"{count:,} random expressions, seeds {first} to {first + count - 1}\n")
    print(f"{'against CVXPY':38}{'compared':>10}{'proved by':>11}{'missed':>8}{'proved here':>13}")
    print(f"{'':38}{'':>10}{'CVXPY':>11}{'here':>8}{'alone':>13}")
    for name, problem, signs, bounds in (
        ("numbers for data", free, False, False),
        ("signs of params alone", free, True, False),
        ("bounded variables; DNLP too", compact, False, True),
    ):
        found = compared(problem, seeds, signs=signs, compact=bounds)
        theirs = f"{found.theirs}+{found.dnlp}" if bounds else str(found.theirs)
        print(f"  {name:36}{found.both:10,}{theirs:>11}{len(found.missed):8}{found.more:13}", flush=True)
        failures += found.missed
    claimed: Counter[str] = Counter()
    refuted, tests = 0, 0
    for seed in seeds:
        for problem in (free, compact):
            expr, wrong, known = tried(problem, seed)
            tests += len(known)
            claimed.update(kind for found in known for kind in kinds(found))
            refuted += bool(wrong)
            failures += [f"{seed}: {text(expr)}: {wrong[0]}"] if wrong else []
    print(
        f"\nclaims at random points: {tests:,} analyses (with and without data, free and bounded "
        f"variables), {refuted} refuted"
    )
    for kind, number in claimed.most_common():
        print(f"  {kind:28}{number:8,}")
    print("\n".join(["", *failures[:20]]) if failures else "")
    return 1 if failures else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--expressions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    sys.exit(main(given.expressions, given.seed))
