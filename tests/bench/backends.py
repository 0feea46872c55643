"""Backends beside the eager loop: the same trajectory, time per step, start-up, and the steps after
which a start has paid.

    python tests/bench/backends.py [--rounds 15] [--write] [--cases N ...]

Libraries are made in a folder of their own, cold, then loaded again, warm; graphs of traced steps
are made each time. The sides take turns in blocks of 1,024 steps, draws included; seconds of the
processor, medians, ratios by rounds; float32, one thread. ``differs`` is the largest difference of
an entry of w or of the average after 200 steps in float64, by a library of its own.

``--write`` puts the table into ``backends.md``, with that of all conformance problems, whose
libraries are made in haste (-O1).
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

import steps  # noqa: E402
from conformance.problems import ALL  # noqa: E402
from conformance.runs import bound_problem, planned  # noqa: E402
from support.emitted_models import Made, finish, make  # noqa: E402

from fccomodel import algorithms  # noqa: E402
from fccomodel.core.diagnostics import FccoError  # noqa: E402
from fccomodel.execution.backends import Unfit, compiled, traced  # noqa: E402
from fccomodel.execution.backends.steps.leap import Leap  # noqa: E402
from fccomodel.execution.backends.steps.several import Several  # noqa: E402

BLOCK = 1024
BACKENDS = (traced, compiled)
CASES = {
    "KL pAUC, linear, SOX": (steps.PAUC, False, {"algorithm": "sox"}),
    "KL pAUC, linear, SONEX": (steps.PAUC, False, {"algorithm": "sonex"}),
    "KL pAUC, linear, ALEXR2": (steps.PAUC, False, {"algorithm": "alexr2"}),
    "14 constraints, linear, SONEX": (steps.GROUPS, False, {"algorithm": "sonex"}),
    "KL pAUC, MLP 64-64, SOX, momentum": (steps.PAUC, True, {"algorithm": "sox", "step": "momentum"}),
    "14 constraints, MLP 64-64, SONEX, momentum": (
        steps.GROUPS,
        True,
        {"algorithm": "sonex", "step": "momentum"},
    ),
}


class Again:
    """In the place of a graph: the same work on the host."""

    def __init__(self, work: Any):
        self.replay = work


def begun(made: Made, dtype: torch.dtype, length: float, device: str = "cpu") -> tuple[SimpleNamespace, Any]:
    """A run as it begins, with what takes its next so many steps: eager, or by a leap."""
    module = made.solver
    solver, rng, h = module.SOLVER, torch.Generator(device=device).manual_seed(0), module.Settings()
    with module.no_grad():
        data = solver.prepare(solver.as_namespace(dict(made.program.data), device, dtype))
        w = solver.start(rng, device, dtype)
        u, c = solver.buffers(device, dtype), solver.centres(device, dtype)
        state = SimpleNamespace(w=w, w_prev=w.clone(), met=0)
        solver.step_sizes(h, lambda *_, **__: 1e-3)
        solver.begin(state, h)
        run = SimpleNamespace(
            state=state, u=u, c=c, average=w.clone(), kept=0, count=0, done=0, length=length
        )

    def on(count: int, leap: Any) -> None:
        with module.no_grad():
            run.ahead = module.drawn(solver, data, rng, count)
            while run.ahead:
                (leap or module.one_step)(run, solver, data, h, h, None)

    return run, on


def differs(made: Made, leap: Any) -> float:
    """Largest difference of an entry of w or of the average after 200 steps, over the largest entry
    where that is above 1."""
    found = []
    for one in (None, leap):
        run, on = begun(made, torch.float64, 200)
        on(200, one)
        found.append(torch.cat([run.state.w, run.average]))
    return float((found[0] - found[1]).abs().max() / found[0].abs().max().clamp(min=1))


def seconds(work: Any) -> float:
    """Of the processor, for this process and those that it has started."""
    began = sum(os.times()[:4])
    work()
    return sum(os.times()[:4]) - began


def started(made: Made, dtype: torch.dtype, one: Any) -> tuple[Leap, float, float]:
    """The leap of a backend, and seconds of making what it calls, cold, and once it is kept."""
    several = Several.of(made.solver, made.program, "cpu", dtype)
    cold = seconds(lambda: one.leap(several))
    found: list[Any] = []
    warm = seconds(lambda: found.append(one.leap(several)[0]))
    return found[0], cold, warm


def lines(name: str, rounds: int) -> list[str]:
    """A case's rows of the table."""
    body, net, options = CASES[name]
    made = make("bench", steps.model(body, net), **options)
    starts = [(one, *started(made, torch.float32, one)) for one in BACKENDS]
    leaps, sides = (
        [None, *(leap for _, leap, _, _ in starts)],
        [begun(made, torch.float32, math.inf)[1] for _ in range(1 + len(starts))],
    )

    def block(k: int) -> float:
        return seconds(lambda: sides[k](BLOCK, leaps[k])) / BLOCK

    every = range(len(sides))
    times = [[block(k) for k in every] for _ in range(rounds + 1)][1:]
    found = []
    for k, (one, _, cold, warm) in enumerate(starts, 1):
        a, b = (statistics.median(each[j] for each in times) for j in (0, k))
        ratio = statistics.median(each[k] / each[0] for each in times)
        apart, saved = differs(made, started(made, torch.float64, one)[0]), a * (1 - ratio)
        found.append(
            f"| {name} | {one.backend.name} | {1e6 * a:.0f} | {1e6 * b:.0f} | {ratio:.2f} | {cold:.2f} | "
            f"{warm:.2f} "
            f"| {cold / saved:,.0f} | {warm / saved:,.0f} | {apart:.0e} |"
        )
    return found


def conformance() -> list[str]:
    """By algorithm: the largest difference over all problems, or why its steps are taken one by one."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    refused: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for problem in ALL:
        for record in (one for one in algorithms.all().values() if one.oracle == "blocks"):
            given = {**problem.options, "algorithm": record.name, "outer_batch": 3, "inner_batch": 6}
            bound = bound_problem(problem)
            try:
                planned(problem, **given)
            except FccoError:
                continue
            made = finish(problem.name, bound.problem, bound, given)
            for one in BACKENDS:
                key = record.name, one.backend.name
                try:
                    several = Several.of(made.solver, made.program, "cpu", torch.float64)
                    found[key].append(differs(made, one.leap(several)[0]))
                except Unfit as unfit:
                    refused[key][str(unfit)] += 1
    every = [
        f"| {' | '.join(key)} | {len(each)} | {max(each):.0e} |  |"
        for key, each in found.items()
        if key not in refused
    ]
    return sorted(every) + [
        f"| {' | '.join(key)} | {len(found[key])} | {f'{max(found[key]):.0e}' if found[key] else ''} | "
        f"{n} problems: {why} |"
        for key, each in refused.items() for why, n in each.items()
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cases", type=int, nargs="*", help="numbers of cases; all unless given")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    head = (
        "| case | backend | eager, µs | by it, µs | ratio | cold, s | warm, s | pays after, cold | "
        "warm | differs |"
    )
    text = [head, "|---" * 10 + "|"]
    print("\n".join(text), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        for name in [list(CASES)[k] for k in asked.cases or range(len(CASES))]:
            text += (rows := lines(name, asked.rounds))
            print("\n".join(rows), flush=True)
        compiled.FLAGS = ("-O1", *compiled.FLAGS[1:])
        every = ["| algorithm | backend | problems | differs | not taken |", "|---" * 5 + "|"]
        every += conformance() if asked.write else []
    if asked.write:
        print("\n".join(every), flush=True)
        about = __doc__.split("\n\n")[2]
        page = [
            "# Backends",
            "",
            about,
            "",
            *text,
            "",
            "All conformance problems, 200 steps:",
            "",
            *every,
            "",
        ]
        HERE.with_suffix(".md").write_text("\n".join(page))


if __name__ == "__main__":
    main()
