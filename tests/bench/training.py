"""Networks trained on five problems, each in several ways with the same budget.

    python tests/bench/training.py [PROBLEM ...] [--seconds 10 20 60] [--ways solve hand] [--out FILE]

| way | what it is |
|---|---|
| solve | ``solve(budget="20s")``, with its report |
| optimizer | the same with ``optimizer=`` Adam |
| criterion | the criterion in a plain loop, Adam |
| hand | the same formulas by hand, Adam: moving averages, an augmented Lagrangian |
| libauc | a loss of LibAUC in that loop; it has no constraints |
| cooper | the formulas by hand, constraints by Cooper's Lagrangian |

Budgets are seconds of the processor, of one thread: the clock that ``solve`` reads is that of the
processor too, so a busy machine takes steps from nobody. Each run is a process of its own. Objective
and largest violation are those of the model on rows that nobody trained on; ``seconds`` is all that
the way took, after data were read: with ``solve`` its planning and its report. ``MB`` is the largest
memory of the process.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

time.perf_counter = time.process_time

import torch  # noqa: E402
from training_problems import PROBLEMS, ByHand, Problem, averaged  # noqa: E402

#: learning rate of Adam in every loop, and of the multipliers by Cooper
RATE = 1e-3
DUAL_RATE = 1e-2
#: weight of violations in the augmented Lagrangian by hand
PENALTY = 10.0
Net = torch.nn.Module
Trained = tuple[Net, int]


def adam(parameters: Any) -> torch.optim.Optimizer:
    """The optimizer of every loop."""
    return torch.optim.Adam(parameters, lr=RATE)


def by_solve(problem: Problem, seconds: float, **how: Any) -> Trained:
    """A solve with this budget."""
    result = problem.bound(problem.train).solve(budget=f"{seconds:g}s", unverified=True, seed=0, **how)
    return result.module(problem.net).float(), result.outcome.solution.iterations


def by_optimizer(problem: Problem, seconds: float) -> Trained:
    """A solve whose steps Adam takes."""
    return by_solve(problem, seconds, optimizer=adam)


def by_criterion(problem: Problem, seconds: float) -> Trained:
    """The criterion in a plain loop."""
    criterion, net = problem.bound(problem.train).criterion(batch=problem.batch), problem.network()
    columns = [torch.from_numpy(problem.train[name]) for name in problem.inputs]

    def batches() -> Any:
        sampler = criterion.sampler(seed=0)
        while True:
            yield from sampler

    def loss(rows: list[int]) -> torch.Tensor:
        if len(columns) == 1:
            return criterion(rows, **{problem.net: net(columns[0][rows])})
        outputs = net(torch.cat([column[rows] for column in columns])).chunk(len(columns))
        return criterion(rows, **{problem.net: dict(zip(problem.inputs, outputs, strict=True))})

    return net, trained(
        [*net.parameters(), *criterion.parameters()], batches(), loss, seconds, criterion.step
    )


def by_hand(problem: Problem, seconds: float) -> Trained:
    """The formulas by hand."""
    net, made = problem.network(), problem.by_hand(problem.train)
    means = torch.full((made.count,), torch.nan)

    def loss(rows: Any) -> torch.Tensor:
        objective, constraints = made.parts(net, rows)
        averaged(means, constraints.detach())
        weights = torch.relu(PENALTY * means)
        return objective + (weights * constraints)[~constraints.isnan()].sum()

    return net, trained([*net.parameters()], made.batches(), loss, seconds)


def by_libauc(problem: Problem, seconds: float) -> Trained:
    """A loss of LibAUC in the plain loop."""
    assert problem.libauc is not None
    net, of = problem.network(), problem.libauc(problem.train)
    batches = problem.by_hand(problem.train).batches()
    return net, trained([*net.parameters()], batches, lambda rows: of(net, rows), seconds)


def by_cooper(problem: Problem, seconds: float) -> Trained:
    """The formulas by hand, with Cooper's simultaneous steps on its Lagrangian."""
    import cooper

    net, made = problem.network(), problem.by_hand(problem.train)

    class Constrained(cooper.ConstrainedMinimizationProblem):
        """The problem of a batch, as Cooper takes it."""

        def __init__(self, by_hand: ByHand) -> None:
            super().__init__()
            self.bounds = cooper.Constraint(
                constraint_type=cooper.ConstraintType.INEQUALITY,
                multiplier=cooper.multipliers.DenseMultiplier(num_constraints=by_hand.count),
                formulation_type=cooper.formulations.Lagrangian,
            )

        def compute_cmp_state(self, rows: Any) -> Any:
            """Objective and constraints of a batch; those without a row count as met."""
            objective, constraints = made.parts(net, rows)
            state = cooper.ConstraintState(violation=constraints.nan_to_num(0.0))
            return cooper.CMPState(loss=objective, observed_constraints={self.bounds: state})

    constrained, batches, steps = Constrained(made), made.batches(), 0
    both = cooper.optim.SimultaneousOptimizer(
        cmp=constrained,
        primal_optimizers=adam(net.parameters()),
        dual_optimizers=torch.optim.SGD(constrained.dual_parameters(), lr=DUAL_RATE, maximize=True),
    )
    began = time.process_time()
    while time.process_time() - began < seconds:
        both.roll(compute_cmp_state_kwargs={"rows": next(batches)})
        steps += 1
    return net, steps


def trained(
    parameters: list[Any],
    batches: Any,
    loss: Callable[[Any], torch.Tensor],
    seconds: float,
    after: Callable[[], None] = lambda: None,
) -> int:
    """Adam until the seconds of the processor are over; how many steps."""
    optimizer, began, steps = adam(parameters), time.process_time(), 0
    while time.process_time() - began < seconds:
        value = loss(next(batches))
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        after()
        steps += 1
    return steps


WAYS: Mapping[str, Callable[[Problem, float], Trained]] = {
    "solve": by_solve,
    "optimizer": by_optimizer,
    "criterion": by_criterion,
    "hand": by_hand,
    "libauc": by_libauc,
    "cooper": by_cooper,
}


def missing(way: str, problem: Problem) -> str:
    """Why a problem has no such way; "" if it has."""
    package = {"libauc": "libauc", "cooper": "cooper"}.get(way)
    if package and importlib.util.find_spec(package) is None:
        return f"{package} is not installed"
    if way == "libauc" and problem.libauc is None:
        return "LibAUC has no such loss"
    if way == "cooper" and not problem.by_hand(problem.train).count:
        return "the problem has no constraints, which are all that Cooper is about"
    return ""


def one(name: str, way: str, seconds: float) -> dict[str, Any]:
    """A run of this process, judged on rows that nobody trained on."""
    from fccomodel.execution.training.looks import Looks

    torch.set_num_threads(1)
    problem = PROBLEMS[name]()
    why = missing(way, problem)
    if why:
        return {"why": why}
    adam([torch.nn.Parameter(torch.zeros(1))])  # torch loads its compiler with the first optimizer: 2.5 s
    began = time.process_time()
    net, steps = WAYS[way](problem, seconds)
    spent = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    level = Looks(problem.bound(problem.held).bound, 0).at({problem.net: net}, {})
    found = {"seconds": spent, "steps": steps, "objective": level.objective}
    return {**found, "violation": level.violation, "memory": memory}


def row(name: str, way: str, seconds: float) -> str:
    """A line of the table, from a process of its own."""
    asked = [sys.executable, str(Path(__file__).resolve()), name, "--one", way, "--seconds", str(seconds)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    if done.returncode:
        found = {"why": (done.stderr.strip().splitlines() or ["it failed"])[-1]}
    else:
        found = json.loads(done.stdout.strip().splitlines()[-1])
    begin = f"| {name} | {seconds:g} s | {way} |"
    if "why" in found:
        return f"{begin} – | – | – | – | – | {found['why']} |"
    numbers = f"{found['seconds']:.1f} | {found['steps']:,} | {found['objective']:.4f}"
    return f"{begin} {numbers} | {found['violation']:.4f} | {found['memory']:.0f} | |"


def main() -> None:
    """Prints a table, line by line."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help=", ".join(PROBLEMS))
    parser.add_argument("--seconds", type=float, nargs="+", default=[10.0, 20.0, 60.0])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--one", choices=WAYS, help="one run in this process, its numbers as JSON")
    parser.add_argument("--out", type=Path, help="a file that the lines are added to")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one(arguments.problems[0], arguments.one, arguments.seconds[0])))
        return
    head = "| problem | budget | way | seconds | steps | objective | violation | MB | |"
    lines = [head, "|---" * 9 + "|"]
    print("\n".join(lines))
    for name in arguments.problems or list(PROBLEMS):
        for seconds in arguments.seconds:
            for way in arguments.ways:
                lines.append(row(name, way, seconds))
                print(lines[-1], flush=True)
                if arguments.out is not None:
                    arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
