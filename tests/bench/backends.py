"""Backends beside the eager loop: the same trajectory, time per step, start-up, and the steps after which a start has paid.

    python tests/bench/backends.py [--rounds 15] [--write] [--cases N ...]

Libraries are made in a folder of their own, cold, then loaded again, warm. Both sides take turns in blocks of 64 steps, draws
included; medians, ratios round by round; float32, one thread. ``differs`` is the largest difference of an entry of w after 200
steps in float64, by a library of its own. ``--write`` puts the table into ``backends.md``, with that of all conformance problems:
the function that is compiled, run as it is, against the eager loop.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

import steps  # noqa: E402
from conformance.problems import ALL  # noqa: E402
from conformance.runs import bound_problem, planned  # noqa: E402
from emitted_models import Made, finish, make  # noqa: E402

from fccomodel import algorithms  # noqa: E402
from fccomodel.core.diagnostics import FccoError  # noqa: E402
from fccomodel.solver.backends import Unfit, compiled, cuda_graph  # noqa: E402
from fccomodel.solver.backends._leap import Leap  # noqa: E402
from fccomodel.solver.backends._several import Several  # noqa: E402

BLOCK = 64
CASES = {
    "KL pAUC, linear, SOX": (steps.PAUC, False, {"algorithm": "sox"}),
    "KL pAUC, linear, SONEX": (steps.PAUC, False, {"algorithm": "sonex"}),
    "14 constraints, linear, SONEX": (steps.GROUPS, False, {"algorithm": "sonex"}),
    "KL pAUC, MLP 64-64, SOX, momentum": (steps.PAUC, True, {"algorithm": "sox", "step": "momentum"}),
    "14 constraints, MLP 64-64, SONEX, momentum": (steps.GROUPS, True, {"algorithm": "sonex", "step": "momentum"}),
}


class Again:
    """In the place of a graph: the same work on the host."""

    def __init__(self, work: Any):
        self.replay = work


def ran(made: Made, leap: Any, iterations: int = 200) -> Any:
    """A run of the program's own loop, in double precision."""
    module = made.solver
    solver = replace(module.SOLVER, leap=leap)
    with module.no_grad():
        return module.solve(solver, dict(made.program.data), iterations=iterations, seconds=None, dtype=torch.float64)


def differs(made: Made, leap: Any) -> float:
    """Largest difference of an entry of w, of the size of the largest entry where that is above 1."""
    eager, other = ran(made, None), ran(made, leap)
    assert eager.iterations == other.iterations
    return float((eager.w - other.w).abs().max() / eager.w.abs().max().clamp(min=1))


def stepping(made: Made, leap: Any) -> Any:
    """A block of steps as the loop takes them: eager, or by a leap."""
    module = made.solver
    solver, rng, h = module.SOLVER, torch.Generator().manual_seed(0), module.Settings()
    with module.no_grad():
        data = solver.prepare(solver.as_namespace(dict(made.program.data), "cpu", torch.float32))
        w = solver.start(rng, "cpu", torch.float32)
        state = SimpleNamespace(w=w, w_prev=w.clone(), met=0)
        u, c = solver.buffers("cpu", torch.float32), solver.centres("cpu", torch.float32)
    solver.step_sizes(h, lambda *_, **__: 1e-3)
    solver.begin(state, h)
    run = SimpleNamespace(state=state, u=u, c=c, average=w.clone(), kept=0, count=0, done=0, length=1e12)
    step = leap or module.one_step

    def block() -> None:
        with module.no_grad():
            run.ahead = module.drawn(solver, data, rng, BLOCK)
            while run.ahead:
                step(run, solver, data, h, h, None)

    return block


def seconds(work: Any) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def library(made: Made, dtype: torch.dtype) -> tuple[Leap, float, float]:
    """The leap, and seconds of making and of loading what it calls."""
    several = Several.of(made.solver, made.program, "cpu", dtype)
    cold = seconds(lambda: compiled.leap(several))
    began = time.perf_counter()
    leap, _ = compiled.leap(several)
    return leap, cold, time.perf_counter() - began


def line(name: str, rounds: int) -> str:
    """A case's row of the table."""
    body, net, options = CASES[name]
    made = make("bench", steps.model(body, net), **options)
    leap, cold, warm = library(made, torch.float32)
    eager, other = stepping(made, None), stepping(made, leap)
    eager(), other()
    pairs = [(seconds(eager) / BLOCK, seconds(other) / BLOCK) for _ in range(rounds)]
    a, b = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(y / x for x, y in pairs)
    apart = differs(made, library(made, torch.float64)[0])
    saved = a * (1 - ratio)
    return (
        f"| {name} | {1e6 * a:.0f} | {1e6 * b:.0f} | {ratio:.2f} | {cold:.0f} | {warm:.2f} "
        f"| {cold / saved:,.0f} | {warm / saved:,.0f} | {apart:.0e} |"
    )


def conformance() -> list[str]:
    """By algorithm: the largest difference over all problems, or why its steps are taken one by one."""
    found: dict[str, list[float]] = defaultdict(list)
    refused: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for problem in ALL:
        for record in (one for one in algorithms.all().values() if one.oracle == "blocks"):
            given = {**problem.options, "algorithm": record.name, "outer_batch": 3, "inner_batch": 6}
            bound = bound_problem(problem)
            try:
                planned(problem, **given)
            except FccoError:
                continue
            made = finish(problem.name, bound.problem, bound, given)
            try:
                several = Several.of(made.solver, made.program, "cpu", torch.float64)
                found[record.name].append(differs(made, Leap(several, cuda_graph.Captured(several, Again))))
            except Unfit as unfit:
                refused[record.name][str(unfit)] += 1
    lines = [f"| {name} | {len(each)} | {max(each):.0e} |  |" for name, each in found.items() if name not in refused]
    return lines + [
        f"| {name} | {len(found[name])} | {f'{max(found[name]):.0e}' if found[name] else ''} | {n} problems: {why} |"
        for name, each in refused.items() for why, n in each.items()
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cases", type=int, nargs="*", help="numbers of cases; all unless given")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    head = "| case | eager, µs | compiled, µs | ratio | cold, s | warm, s | pays after, cold | warm | differs |"
    text = [head, "|---" * 9 + "|"]
    print("\n".join(text), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        for name in [list(CASES)[k] for k in asked.cases or range(len(CASES))]:
            text.append(line(name, asked.rounds))
            print(text[-1], flush=True)
    if asked.write:
        every = ["| algorithm | problems | differs | not taken |", "|---|---|---|---|", *conformance()]
        print("\n".join(every), flush=True)
        about = __doc__.partition("\n\n")[2].partition("\n\n")[2].strip().partition("``--write``")[0].strip()
        page = ["# Backends", "", about, "", *text, "", "All conformance problems, 200 steps:", "", *every, ""]
        HERE.with_suffix(".md").write_text("\n".join(page))


if __name__ == "__main__":
    main()
