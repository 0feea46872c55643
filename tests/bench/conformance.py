"""Every algorithm on every conformance problem: the gap that it reaches, or what it lacks.

    python tests/bench/conformance.py [--algorithms a,b] [--problems p,q] [--iterations N]
    [--seconds S] [--small] [--jobs J]
                                      [--record FILE]
    python tests/bench/conformance.py --matrix FILE ... > tests/bench/conformance.md
    python tests/bench/conformance.py --matrix FILE ... --into tests/bench/conformance.md

gap: |objective - optimum|, relative above 1; violation beside it where there are constraints; above
the problem's tolerance ``!`` and epsilon of the KKT report, by which another stationary point
shows. Of a problem without known optimum the gap is that epsilon. ``--small``: minibatches.
``--record`` appends what was found, ``--matrix`` puts such records into one table. Vector oracles,
by full passes here, take a tenth of the iterations. ``--into`` puts the gaps of some records into
an earlier table.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from conformance.problems import ALL  # noqa: E402
from conformance.runs import bound_problem, outcome, planned  # noqa: E402

from fccomodel import algorithms, report  # noqa: E402
from fccomodel.core.diagnostics import FccoError  # noqa: E402

BY_NAME = {p.name: p for p in ALL}
SMALL = {"outer_batch": 3, "inner_batch": 6}


class Task(NamedTuple):
    """What is run, and for how long at most."""

    algorithm: str
    problem: str
    iterations: int
    seconds: float
    small: bool


Cell = tuple[Task, str, str]


def cell(task: Task) -> Cell:
    """The task, what was reached, and why nothing was."""
    began, problem, record = time.perf_counter(), BY_NAME[task.problem], algorithms.all()[task.algorithm]
    sizes = SMALL if task.small else {}
    iterations = task.iterations if record.oracle == "blocks" or task.small else task.iterations // 10
    try:
        found = outcome(problem, task.algorithm, iterations=iterations, seconds=task.seconds, **sizes)
    except FccoError as error:
        return task, "", f"cannot: {error.diagnostics[0].message}"
    if found.missing:
        return task, "", shortened(found.missing)
    if other := planned(problem, algorithm=task.algorithm).surrogates:
        return task, "", "it solves another problem here: " + other[0].replace("_", " ")
    violation = max(found.violation, 0.0)
    text = f"{found.gap:.0e}" + (f" / {violation:.0e}" if found.multipliers else "")
    if max(found.gap, violation) > problem.tolerance:
        text += f" ! KKT {float(report.report(bound_problem(problem), found.variables).epsilon):.0e}"
    return task, f"{text:30}{found.oracles:>12,.0f} oracle calls{time.perf_counter() - began:7.1f} s", ""


def shortened(reason: str) -> str:
    """The clause, and what is missing, without where."""
    clause, _, lack = reason.partition(" asks for it; ")
    return f"{clause}: {lack.split(': ')[0]}" if lack else reason


def table(found: Iterable[Cell]) -> Iterable[str]:
    """Lines by algorithm: what was reached, then refusals, problems of one reason together."""
    name, refused = "", defaultdict(list)

    def reasons() -> Iterable[str]:
        for reason, problems in refused.items():
            yield f"  refused: {', '.join(problems)}\n    {reason}"
        refused.clear()

    for task, reached, reason in found:
        if task.algorithm != name:
            yield from reasons()
            name = task.algorithm
            yield f"\n{name}"
        if reason:
            refused[reason].append(task.problem)
        else:
            yield f"  {task.problem:24}{reached}"
    yield from reasons()


def recorded(found: Iterable[Cell], file: str | None) -> Iterable[Cell]:
    """The same cells, each also a line of a file."""
    for one in found:
        if file is not None:
            with open(file, "a") as out:
                out.write(json.dumps(one) + "\n")
        yield one


def matrix(files: Iterable[str]) -> Iterable[str]:
    """Markdown: gaps by problem and algorithm, small batches behind a stroke; letters for what was
    refused, explained below."""
    shown: dict[tuple[str, str], dict[bool, str]] = defaultdict(dict)
    reasons: dict[str, str] = {}
    for name, problem, small, gap, reason in gaps(files):
        shown[problem, name][small] = gap or reasons.setdefault(
            general(reason.split(": ", 1)[-1]), _letter(len(reasons))
        )
    for oracle in ("blocks", "vector"):
        names = [
            n
            for n, a in sorted(algorithms.all().items())
            if a.oracle == oracle and any(n == m for _, m in shown)
        ]
        yield f"| | {' | '.join(names)} |"
        yield "|---" * (len(names) + 1) + "|"
        for problem in BY_NAME:
            cells = (
                " / ".join(dict.fromkeys(v for _, v in sorted(shown[problem, n].items()))) for n in names
            )
            yield f"| {problem} | {' | '.join(cells)} |"
        yield ""
    yield from (f"- {letter}: {reason}" for reason, letter in reasons.items())


def gaps(files: Iterable[str]) -> Iterable[tuple[str, str, bool, str, str]]:
    """Algorithm, problem, small batches, gap (in bold above the tolerance; empty where it was refused)
    and why it was."""
    for line in (line for file in files for line in Path(file).read_text().splitlines()):
        (name, problem, *_, small), reached, reason = json.loads(line)
        gap = "".join(reached.split("KKT")[0].split("oracle")[0].split()[:1])
        yield name, problem, small, f"**{gap}**" if "!" in reached else gap, reason


def renewed(page: str, files: Iterable[str]) -> str:
    """An earlier page with the gaps of some records."""
    found = {(name, problem, small): gap for name, problem, small, gap, _ in gaps(files) if gap}
    lines, names = page.splitlines(), [""]
    for at, line in enumerate(lines):
        first, *rest = [cell.strip() for cell in line.split("|")[1:-1]] or [""]
        if line.startswith("| |"):
            names = rest
        elif first in BY_NAME:
            for k, (name, before) in enumerate(zip(names, rest, strict=True)):
                full, *small = before.split(" / ")
                both = (
                    found.get((name, first, False), full),
                    found.get((name, first, True), (small or [full])[0]),
                )
                rest[k] = " / ".join(dict.fromkeys(both))
            lines[at] = f"| {' | '.join([first, *rest])} |"
    return "\n".join(lines) + "\n"


def general(lack: str) -> str:
    """What is missing, without the part of the model that it is missing in."""
    for words in (
        "is not a maximum",
        "is not over the rows",
        "does not pick one group",
        "is an expectation inside",
    ):
        if words in lack:
            return words + lack.partition(words)[2].partition(" logmeanexp")[0].rstrip(".")
    return lack.rstrip(".")


def _letter(k: int) -> str:
    return chr(97 + k) if k < 26 else _letter(k // 26 - 1) + _letter(k % 26)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--algorithms", default="")
    parser.add_argument("--problems", default="")
    parser.add_argument("--iterations", type=int, default=4000)
    parser.add_argument("--seconds", type=float, default=6.0, help="limit of each run")
    parser.add_argument("--small", action="store_true", help="three blocks and six inner samples a step")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--record", help="append every cell to this file")
    parser.add_argument("--matrix", nargs="*", help="of records, and nothing is run")
    parser.add_argument("--into", type=Path, help="a page whose table takes the gaps of these records")
    arguments = parser.parse_args()
    if arguments.into:
        arguments.into.write_text(renewed(arguments.into.read_text(), arguments.matrix))
        return
    if arguments.matrix:
        print("\n".join(matrix(arguments.matrix)))
        return
    torch.set_num_threads(1)
    names = arguments.algorithms.split(",") if arguments.algorithms else sorted(algorithms.all())
    chosen = arguments.problems.split(",") if arguments.problems else list(BY_NAME)
    rest = (arguments.iterations, arguments.seconds, arguments.small)
    tasks = [Task(name, problem, *rest) for name in names for problem in chosen]
    with multiprocessing.get_context("fork").Pool(arguments.jobs) as pool:
        for line in table(recorded(pool.imap(cell, tasks), arguments.record)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
