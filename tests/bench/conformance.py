"""Every algorithm on every conformance problem: the gap that it reaches, or what it lacks.

    python tests/bench/conformance.py [--algorithms a,b] [--problems p,q] [--iterations N] [--small] [--out table.txt]

gap: |objective - optimum|, relative above 1; violation beside it where there are constraints. ``--small``: minibatches.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from conformance.problems import ALL  # noqa: E402
from conformance.runs import Outcome, outcome  # noqa: E402

from fccomodel import algorithms  # noqa: E402
from fccomodel.diagnostics import FccoError  # noqa: E402


def cell(found: Outcome) -> str:
    if found.missing:
        return "-"
    return f"{found.gap:.0e}" + (f" / {max(found.violation, 0.0):.0e}" if found.violation else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithms", default="")
    parser.add_argument("--problems", default="")
    parser.add_argument("--iterations", type=int, default=4000)
    parser.add_argument("--small", action="store_true", help="three blocks and six inner samples a step")
    parser.add_argument("--out", help="write the table here too")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    names = arguments.algorithms.split(",") if arguments.algorithms else sorted(algorithms.all())
    chosen = [p for p in ALL if not arguments.problems or p.name in arguments.problems.split(",")]
    sizes = {"outer_batch": 3, "inner_batch": 6} if arguments.small else {}
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    wide = max(len(p.name) for p in chosen) + 2
    reasons: dict[tuple[str, str], str] = {}
    for name in names:
        say(f"\n{name}")
        for problem in chosen:
            began = time.perf_counter()
            try:
                found = outcome(problem, name, iterations=arguments.iterations, **sizes)
            except FccoError as error:
                reasons[name, problem.name] = str(error).splitlines()[0]
                say(f"  {problem.name:{wide}}cannot: {reasons[name, problem.name][:90]}")
                continue
            text = f"refused: {found.missing[:100]}" if found.missing else f"{cell(found):20}{found.oracles:>12,.0f} oracle calls"
            say(f"  {problem.name:{wide}}{text}" + ("" if found.missing else f"{time.perf_counter() - began:8.1f} s"))
    if arguments.out:
        Path(arguments.out).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
