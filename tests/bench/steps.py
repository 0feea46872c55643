"""Time of one step of emitted solvers against a plain loop of torch autograd and Adam: medians in
microseconds, and ratios.

    python tests/bench/steps.py [ROUNDS]

One thread, 20,000 rows of 122 numbers, batches of 32 + 32 rows; the two take turns, so that a busy
machine slows both.
"""

from __future__ import annotations

import statistics
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from support.emitted_models import Case, Made, make  # noqa: E402

torch.set_num_threads(1)
ROWS, WIDTH, STEPS = 20_000, 122, 200
HEAD = (
    "dim d; set G; data D : table(x: real[d], y: {-1, 1}, g: G); set P = {z in D | z.y == 1}; set N "
    "= {z in D | z.y == -1};"
)
LINEAR, NET = "var w[d];", "net s : real[d] -> real; var w = params(s);"
PAUC = "minimize mean[p in P] log(E[n ~ N] exp(sqhinge(1 + SCORE(n) - SCORE(p))));"
GROUPS = (
    "minimize E[z ~ D] log1pexp(-z.y * SCORE(z)); subject to c[k in G]: E[z ~ D | z.g == k] "
    "log1pexp(-z.y * SCORE(z)) <= 0.65;"
)


def data() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, WIDTH))
    y = np.where(x @ rng.normal(size=WIDTH) + 3 * rng.normal(size=ROWS) > 0, 1, -1)
    return {"D": {"x": x, "y": y, "g": np.array([f"g{k:02}" for k in rng.integers(0, 14, ROWS)])}}


def mlp() -> torch.nn.Module:
    torch.manual_seed(0)
    layers = [
        torch.nn.Linear(WIDTH, 64),
        torch.nn.ELU(),
        torch.nn.Linear(64, 64),
        torch.nn.ELU(),
        torch.nn.Linear(64, 1),
        torch.nn.Flatten(0),
    ]
    return torch.nn.Sequential(*layers)


def model(body: str, net: bool) -> Case:
    for row in "znp":
        body = body.replace(f"SCORE({row})", f"s(w; {row}.x)" if net else f"dot(w, {row}.x)")
    nets = {"nets": lambda: {"s": mlp()}} if net else {}
    return Case(
        text=f"model bench;{HEAD}{NET if net else LINEAR}{body}",
        data=data,
        options={"outer_batch": 32, "inner_batch": 32},
        **nets,
    )


def emitted(case: Made) -> Callable[[], None]:
    """``STEPS`` steps of a solver's own loop."""
    solver, rng = case.solver, torch.Generator().manual_seed(0)
    with solver.no_grad():
        made = solver.prepare(solver.as_namespace(dict(case.program.data), "cpu", torch.float32))
        w = solver.start(rng, "cpu", torch.float32)
        state = types.SimpleNamespace(w=w, w_prev=w.clone())
        u, c = solver.buffers("cpu", torch.float32), solver.centres("cpu", torch.float32)
    h = solver.Settings()
    solver.SOLVER.begin(state, h)

    def run() -> None:
        with solver.no_grad():
            for _ in range(STEPS // solver.SOLVER.block + 1):
                for batch in solver.drawn(solver.SOLVER, made, rng, solver.SOLVER.block):
                    solver.advance(solver.SOLVER, made, state, u, c, batch, h)

    run.steps = (STEPS // solver.SOLVER.block + 1) * solver.SOLVER.block  # type: ignore[attr-defined]
    return run


def plain(net: bool, constrained: bool) -> Callable[[], None]:
    """The same mathematics as people write it: modules, autograd, Adam."""
    table = data()["D"]
    x, y = torch.as_tensor(table["x"], dtype=torch.float32), torch.as_tensor(table["y"])
    codes = torch.as_tensor(np.unique(table["g"], return_inverse=True)[1])
    positive, negative = (y == 1).nonzero()[:, 0], (y == -1).nonzero()[:, 0]
    score = mlp() if net else torch.nn.Sequential(torch.nn.Linear(WIDTH, 1, bias=False), torch.nn.Flatten(0))
    adam, u, multipliers = torch.optim.Adam(score.parameters(), lr=1e-3), torch.zeros(ROWS), torch.zeros(14)

    def loss() -> torch.Tensor:
        if constrained:
            rows = torch.randint(ROWS, (64,))
            losses = torch.nn.functional.softplus(-y[rows] * score(x[rows]))
            group = torch.nn.functional.one_hot(codes[rows], 14).float()
            values = (losses @ group) / group.sum(0).clamp(min=1) - 0.65
            multipliers.add_(values.detach(), alpha=0.1).clamp_(min=0)
            return losses.mean() + multipliers @ values
        p, n = positive[torch.randint(len(positive), (32,))], negative[torch.randint(len(negative), (32,))]
        s = score(x[torch.cat([p, n])])
        pairs = (1 + s[32:] - s[:32, None]).relu().square().exp()
        with torch.no_grad():
            u[p] = 0.5 * u[p] + 0.5 * pairs.mean(1)
        return (pairs.mean(1) / u[p]).mean()

    def run() -> None:
        for _ in range(STEPS):
            adam.zero_grad()
            loss().backward()
            adam.step()

    run.steps = STEPS  # type: ignore[attr-defined]
    return run


def microseconds(run: Callable[[], None]) -> float:
    began = time.perf_counter()
    run()
    return 1e6 * (time.perf_counter() - began) / run.steps  # type: ignore[attr-defined]


def main(rounds: int) -> None:
    print(f"{'':28}{'emitted':>10}{'plain':>10}{'ratio':>8}")
    for name, body, net, algorithm in [
        ("KL pAUC, linear, SOX", PAUC, False, "sox"),
        ("KL pAUC, linear, SONEX", PAUC, False, "sonex"),
        ("KL pAUC, mlp(64,64), SOX", PAUC, True, "sox"),
        ("KL pAUC, mlp(64,64), SONEX", PAUC, True, "sonex"),
        ("14 constraints, linear", GROUPS, False, "sonex"),
        ("14 constraints, mlp(64,64)", GROUPS, True, "sonex"),
    ]:
        ours, theirs = (
            emitted(make("bench", model(body, net), algorithm=algorithm)),
            plain(net, body is GROUPS),
        )
        ours(), theirs()
        pairs = [(microseconds(ours), microseconds(theirs)) for _ in range(rounds)]
        a, b = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"{name:28}{a:10.0f}{b:10.0f}{statistics.median(x / y for x, y in pairs):8.2f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 11)
