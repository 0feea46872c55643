"""Constrained networks on real data: default solves beside Adam with an augmented Lagrangian, tuned by
hand, and Cooper.

    python tests/bench/networks.py [PROBLEM ...] [--only NAME ...] [--rows 12000] [--seconds 2 5]
    [--table networks.md]

Each row is the lowest objective over all rows at a violation of at most 1e-3, after so many counted
seconds of one thread (``core/work.py``: a busy machine takes nothing from anyone's time), in
float32 steps from the same network; all are judged by the same code in float64. Ours are default
solves with these budgets, the clock standing still. The others' points are looked at sixteen times,
which is not counted; of all settings (learning rate, penalty or dual rate, batch) the one with the
lowest end is named, and the best at each time shown, in hindsight, with cosine decay over the
longest. Cooper is ``pip install cooper-optim``.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

time.perf_counter = lambda: 0.0  # stages and ends by counted work alone

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import torch  # noqa: E402

import fccomodel  # noqa: E402
from fccomodel.core.work import priced  # noqa: E402

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
SECONDS, FEASIBLE, LOOKS, ROWS = (2.0, 5.0), 1e-3, 16, 12_000
Scores, Values = list[torch.Tensor], tuple[torch.Tensor, torch.Tensor]
Curve = dict[float, float]
HEAD = "dim d; data D : table(x: real[d], y: {-1, 1}, g: G); net s : real[d] -> real; var w = params(s);"
SPLIT = "set P = {z in D | z.y == 1}; set N = {z in D | z.y == -1};"


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """A model, and the same by hand: rows x with labels y (-1 or 1) in strata, and from the scores of
    some rows of each stratum and its ``shares`` of all rows the objective and the constraints, each
    at most 0."""

    text: str
    x: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    strata: list[np.ndarray]
    values: Callable[[Scores, list[torch.Tensor], torch.Tensor], Values]

    @property
    def shares(self) -> torch.Tensor:
        return torch.tensor([len(rows) / len(self.x) for rows in self.strata])


def standard(frame: pd.DataFrame) -> np.ndarray:
    x = frame.to_numpy(dtype=np.float64)
    return (x - x.mean(0)) / np.maximum(x.std(0), 1e-12)


def table(name: str) -> pd.DataFrame:
    """Every so many rows of a table, ``ROWS`` in all."""
    whole = pd.read_parquet(DATA / f"{name}.parquet")
    return whole.iloc[np.linspace(0, len(whole) - 1, min(ROWS, len(whole))).astype(int)].reset_index(
        drop=True
    )


def loss(s: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.softplus(-y * s)


def mean_loss(
    scores: Scores, labels: list[torch.Tensor], shares: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The mean loss over all rows and those of the strata."""
    each = torch.stack([loss(s, y).mean() for s, y in zip(scores, labels, strict=True)])
    return shares.to(each.dtype) @ each, each


# ------------------------------------------------------------------------------------- the problems
def recall() -> Problem:
    """Who takes a bank's credit: nine of ten who do are to be found."""
    bank = table("bank_marketing")
    y = np.where(bank.pop("y").astype(str) == "yes", 1, -1)

    def values(scores: Scores, labels: list[torch.Tensor], shares: torch.Tensor) -> Values:
        return mean_loss(scores, labels, shares)[0], (0.9 - scores[0].sigmoid().mean()).reshape(1)

    return Problem(
        text=f"model recall; set G; {HEAD} {SPLIT} minimize E[z ~ D] log1pexp(-z.y * s(w; z.x));"
        "subject to recall: E[p ~ P] sigmoid(s(w; p.x)) >= 0.9;",
        x=standard(pd.get_dummies(bank)), y=y, groups=y, strata=[np.flatnonzero(y == k) for k in (1, -1)], values=values,
    )  # fmt: skip


def rates() -> Problem:
    """Incomes: women and men are to be called rich at nearly the same rate."""
    adult = table("adult").drop(columns=["fnlwgt", "split", "native-country"])
    y = np.where(adult.pop("income").astype(str) == ">50K", 1, -1)
    women = (adult.pop("sex").astype(str) == "Female").to_numpy()

    def values(scores: Scores, labels: list[torch.Tensor], shares: torch.Tensor) -> Values:
        gap = scores[0].sigmoid().mean() - scores[1].sigmoid().mean()
        return mean_loss(scores, labels, shares)[0], torch.stack([gap - 0.02, -gap - 0.02])

    return Problem(
        text=f"model rates; set G; {HEAD} set A = {{z in D | z.g == 'women'}}; set B = {{z in D | z.g == "
             f"'men'}};"
             "minimize E[z ~ D] log1pexp(-z.y * s(w; z.x));"
             "subject to rates: abs(E[a ~ A] sigmoid(s(w; a.x)) - E[b ~ B] sigmoid(s(w; b.x))) <= 0.02;".replace("'", '"'),
        x=standard(pd.get_dummies(adult)), y=y, groups=np.where(women, "women", "men"),
        strata=[np.flatnonzero(women), np.flatnonzero(~women)], values=values,
    )  # fmt: skip


def neyman_pearson() -> Problem:
    """One kind of forest in a hundred of another: its loss is bounded, that of the other is minimised."""
    cover = table("covtype_odds")
    y = np.where(cover.pop("label") == 1, 1, -1)

    def values(scores: Scores, labels: list[torch.Tensor], shares: torch.Tensor) -> Values:
        return loss(scores[1], labels[1]).mean(), (loss(scores[0], labels[0]).mean() - 0.05).reshape(1)

    return Problem(
        text=f"model neyman_pearson; set G; {HEAD} {SPLIT} minimize E[n ~ N] log1pexp(s(w; n.x));"
        "subject to found: E[p ~ P] log1pexp(-s(w; p.x)) <= 0.05;",
        x=standard(cover), y=y, groups=y, strata=[np.flatnonzero(y == k) for k in (1, -1)], values=values,
    )  # fmt: skip


def groups() -> Problem:
    """Kinds of forest by soil: on none of 14 soils is the mean loss to exceed a level."""
    cover = table("covtype_sample93k")
    y = np.where(cover.pop("Cover_Type") == 2, 1, -1)
    soil = cover.filter(like="Soil_Type").idxmax(axis=1)
    soil = soil.where(soil.isin(soil.value_counts().index[:13]), "other").to_numpy()

    def values(scores: Scores, labels: list[torch.Tensor], shares: torch.Tensor) -> Values:
        whole, each = mean_loss(scores, labels, shares)
        return whole, each - 0.4

    return Problem(
        text=f"model groups; set G; {HEAD} minimize E[z ~ D] log1pexp(-z.y * s(w; z.x));"
        "subject to soil[k in G]: E[z ~ D | z.g == k] log1pexp(-z.y * s(w; z.x)) <= 0.4;",
        x=standard(cover), y=y, groups=soil, strata=[np.flatnonzero(soil == k) for k in np.unique(soil)], values=values,
    )  # fmt: skip


PROBLEMS = {made.__name__: made for made in (recall, rates, neyman_pearson, groups)}


# ---------------------------------------------------------------------------------------- the judge
def layers(width: int) -> torch.nn.Module:
    torch.manual_seed(0)
    ways = (
        torch.nn.Linear(width, 64),
        torch.nn.ELU(),
        torch.nn.Linear(64, 64),
        torch.nn.ELU(),
        torch.nn.Linear(64, 1),
    )
    return torch.nn.Sequential(*ways, torch.nn.Flatten(0))


class Judge:
    """Objective and violation over all rows in float64, of a network by its flat parameters."""

    def __init__(self, problem: Problem):
        self.problem, self.net = problem, layers(problem.x.shape[1]).double()
        self.x = [torch.as_tensor(problem.x[rows]) for rows in problem.strata]
        self.y = [torch.as_tensor(problem.y[rows]) for rows in problem.strata]

    @torch.no_grad()
    def __call__(self, w: torch.Tensor) -> tuple[float, float]:
        torch.nn.utils.vector_to_parameters(w.double(), self.net.parameters())
        objective, constraints = self.problem.values(
            [self.net(x) for x in self.x], self.y, self.problem.shares
        )
        return float(objective), max(float(constraints.max()), 0.0)


# ----------------------------------------------------------------------------------------- the runs
def ours(problem: Problem, judge: Judge) -> Curve:
    """Default solves, one for each budget."""
    curve = {}
    for seconds in SECONDS:
        began = time.process_time()
        model = fccomodel.compile(problem.text)
        data = {"x": problem.x, "y": problem.y, "g": problem.groups}
        bound = model.bind(D=data, nets={"s": layers(problem.x.shape[1])})
        result = bound.solve(seed=0, budget=f"{seconds}s", device="cpu")
        objective, violation = judge(torch.as_tensor(result.variables["w"]))
        curve[seconds] = objective if violation <= FEASIBLE else math.inf
        spent, said = (
            time.process_time() - began,
            f"{result.outcome.status}, epsilon {result.report.epsilon:.2g}",
        )
        print(
            f"    {seconds:4g} s: {objective:.5f}, violation {violation:.1e} ({spent:.1f} s; {said})",
            flush=True,
        )
    return curve


def draws(problem: Problem, batch: int) -> Iterator[tuple[list[torch.Tensor], ...]]:
    """Rows and labels by stratum: as many from each, or with ``batch`` 0 all."""
    x = [torch.as_tensor(problem.x[rows], dtype=torch.float32) for rows in problem.strata]
    y = [torch.as_tensor(problem.y[rows]) for rows in problem.strata]
    each, rng = max(batch // len(x), 1), torch.Generator().manual_seed(0)
    while True:
        chosen = [torch.randint(len(part), (each,), generator=rng) if batch else slice(None) for part in y]
        yield tuple([part[k] for part, k in zip(parts, chosen, strict=True)] for parts in (x, y))


def scored(net: torch.nn.Module, x: list[torch.Tensor]) -> Scores:
    return list(net(torch.cat(x)).split([len(part) for part in x]))


def cosine(share: float) -> float:
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(share, 1.0)))


def timed(net: torch.nn.Module, judge: Judge, step: Callable[[float], None]) -> Curve:
    """Steps for the longest time, and the lowest objective at a feasible point seen by each."""
    step(0.0)
    price = priced(lambda: step(0.0))[1]
    count, seen = int(SECONDS[-1] / price), []
    for k in range(count):
        step(k / count)
        if (k + 1) % max(count // LOOKS, 1) == 0 or k + 1 == count:
            seen.append((k * price, *judge(torch.nn.utils.parameters_to_vector(net.parameters()).detach())))
    feasible = [(at, objective) for at, objective, violation in seen if violation <= FEASIBLE]
    return {end: min((f for at, f in feasible if at <= end), default=math.inf) for end in SECONDS}


def by_hand(problem: Problem, judge: Judge, rate: float, penalty: float, batch: int) -> Curve:
    """Adam on f + sum_k (max(0, y_k + rho c_k)^2 - y_k^2) / (2 rho); y <- max(0, y + rho c) by the
    mean c of 50 steps (5 on all rows)."""
    net = layers(problem.x.shape[1])
    adam = torch.optim.Adam(net.parameters(), lr=rate)
    rows, shares = draws(problem, batch), problem.shares
    held: list[torch.Tensor] = []
    y: Any = 0.0

    def step(share: float) -> None:
        nonlocal y
        adam.param_groups[0]["lr"] = rate * cosine(share)
        x, labels = next(rows)
        f, c = problem.values(scored(net, x), labels, shares)
        value = f + ((y + penalty * c).clamp(min=0).square() / (2 * penalty)).sum()
        adam.zero_grad()
        value.backward()
        adam.step()
        held.append(c.detach())
        if len(held) == (50 if batch else 5):
            y = (y + penalty * torch.stack(held).mean(0)).clamp(min=0)
            held.clear()

    return timed(net, judge, step)


def cooper_lagrangian(problem: Problem, judge: Judge, rate: float, dual: float, batch: int) -> Curve:
    """Cooper's simultaneous steps on its Lagrangian: Adam for the network, ascent for the multipliers."""
    import cooper

    net, rows, shares = layers(problem.x.shape[1]), draws(problem, batch), problem.shares
    count = len(problem.values([torch.zeros(2)] * len(shares), [torch.ones(2)] * len(shares), shares)[1])

    class Constrained(cooper.ConstrainedMinimizationProblem):
        def __init__(self) -> None:
            super().__init__()
            self.bounds = cooper.Constraint(
                constraint_type=cooper.ConstraintType.INEQUALITY,
                multiplier=cooper.multipliers.DenseMultiplier(num_constraints=count),
                formulation_type=cooper.formulations.Lagrangian,
            )

        def compute_cmp_state(self, x: list[torch.Tensor], labels: list[torch.Tensor]) -> Any:
            f, c = problem.values(scored(net, x), labels, shares)
            return cooper.CMPState(
                loss=f, observed_constraints={self.bounds: cooper.ConstraintState(violation=c)}
            )

    constrained = Constrained()
    adam = torch.optim.Adam(net.parameters(), lr=rate)
    ascent = torch.optim.SGD(constrained.dual_parameters(), lr=dual, maximize=True)
    both = cooper.optim.SimultaneousOptimizer(cmp=constrained, primal_optimizers=adam, dual_optimizers=ascent)

    def step(share: float) -> None:
        adam.param_groups[0]["lr"], ascent.param_groups[0]["lr"] = rate * cosine(share), dual * cosine(share)
        x, labels = next(rows)
        both.roll(compute_cmp_state_kwargs={"x": x, "labels": labels})

    return timed(net, judge, step)


def best(
    problem: Problem, judge: Judge, run: Callable[..., Curve], grid: list[tuple[float, float, int]]
) -> tuple[str, Curve]:
    """The setting with the lowest end, in words, and its curve; at each earlier time that of the best
    setting there."""
    tried = {}
    for rate, weight, batch in grid:
        tried[rate, weight, batch] = curve = run(problem, judge, rate, weight, batch)
        print(f"    {rate:g}, {weight:g}, {batch or 'all rows'}: {shown(curve)}", flush=True)
    rate, weight, batch = min(tried, key=lambda key: tried[key][SECONDS[-1]])
    return f"{rate:g}, {weight:g}, {batch or 'all rows'}", {
        end: min(curve[end] for curve in tried.values()) for end in SECONDS
    }


def shown(curve: Curve) -> str:
    return " | ".join("none" if math.isinf(curve[end]) else f"{curve[end]:.5f}" for end in SECONDS)


def settings(
    rates: tuple[float, ...], weights: tuple[float, ...], batches: tuple[int, ...]
) -> list[tuple[float, float, int]]:
    return list(itertools.product(rates, weights, batches))


RUNS: dict[str, Callable[[Problem, Judge], tuple[str, Curve]]] = {
    "fccomodel": lambda problem, judge: ("default", ours(problem, judge)),
    "Adam, batches": lambda problem, judge: best(
        problem, judge, by_hand, settings((3e-3, 1e-2), (1.0, 10.0), (128, 512))
    ),
    "Adam, all rows": lambda problem, judge: best(problem, judge, by_hand, settings((1e-2,), (1.0,), (0,))),
    "Cooper 1.0.1": lambda problem, judge: best(
        problem, judge, cooper_lagrangian, settings((1e-2,), (1e-1, 1.0), (128,))
    ),
}


def main() -> None:
    global ROWS, SECONDS
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[[], *PROBLEMS], help="of problems")
    parser.add_argument("--only", nargs="*", default=list(RUNS), choices=list(RUNS))
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--seconds", nargs="*", type=float, default=SECONDS)
    parser.add_argument("--table", type=Path)
    asked = parser.parse_args()
    ROWS, SECONDS = asked.rows, tuple(asked.seconds)
    if not DATA.is_dir():
        sys.exit(f"the data are not here: {DATA}")
    torch.set_num_threads(1)
    times = " | ".join(f"{end:g} s" for end in SECONDS)
    lines = [f"| problem | who | {times} | settings |", "|---" * (3 + len(SECONDS)) + "|"]
    for name in asked.names or PROBLEMS:
        problem = PROBLEMS[name]()
        judge = Judge(problem)
        for who in asked.only:
            print(f"{name}, {who}", flush=True)
            try:
                said, curve = RUNS[who](problem, judge)
            except ImportError as error:
                print(f"    skipped: {error}", flush=True)
                continue
            lines.append(f"| {name} | {who} | {shown(curve)} | {said} |")
    print(text := "\n".join(lines))
    if asked.table:
        asked.table.write_text(f"{(__doc__ or '').strip()}\n\n{text}\n")


if __name__ == "__main__":
    main()
