"""Whole solves beside peers, by size: processor seconds and memory of one thread.

    python tests/bench/whole.py [CASE ...] [--rows 500 6000 30000] [--most 1e5] [--write]

Each row is a process of its own. It solves a small instance first, so that modules are read on both
sides, then binds and solves the case by us and by its peer. Memory is the peak of the process above
that before each part, in units of the data. ``--rows`` replaces the sizes of the cases, ``--most``
leaves out larger ones, and ``--write`` keeps the table in ``whole.md``.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).resolve()
LIMIT = 900  # seconds by the clock of one process
COLUMNS = ("case", "rows", "ours s", "bind s", "peer", "peer s", "ratio", "relative gap", "MB", "x data")


class Case(NamedTuple):
    """Sizes to solve, a problem of so many rows, and a peer's objective of the same data."""

    sizes: tuple[int, ...]
    posed: Callable[[int], tuple[str, dict[str, Any]]]
    peer: Callable[[str, dict[str, Any]], float] | None
    budget: str = "60s"
    swept: dict[str, list[float]] | None = None


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


# ---------------------------------------------------------------------------------------- problems
COX = """dim d; data D: table(x: real[d], time: real, event: {0, 1}); set I = {z in D | z.event == 1};
var w[d]; minimize mean[i in I] log(E[j ~ D | j.time >= i.time] exp(dot(w, j.x) - dot(w, i.x)))
+ 0.005 * sumsq(w);"""
CENTRES = """dim d; set K = 1 .. 8; data D: table(x: real[d]); var c[K, d];
minimize E[z ~ D] min[k in K] sumsq(z.x - c[k]);"""
MARKOWITZ = """dim d; data R: table(r: real[d]); var x[d] in simplex(d); let m = E[z ~ R] dot(z.r, x);
minimize E[z ~ R] square(dot(z.r, x) - m) - 0.2 * m;"""
TURNOVER = """dim d; data R: table(r: real[d]); param held[d]; var x[d] in simplex(d);
let m = E[z ~ R] dot(z.r, x); minimize E[z ~ R] square(dot(z.r, x) - m) - 0.2 * m;
subject to turnover: norm1(x - held) <= 0.3;"""
TRANSPORT = """dim a; dim b; set I = 1 .. a; set J = 1 .. b; param supply[I]; param demand[J]; param cost[I, J]; var x[I, J] >= 0;
minimize sum[i in I] sum[j in J] cost[i, j] * x[i, j];
subject to given[i in I]: sum[j in J] x[i, j] <= supply[i];
wanted[j in J]: sum[i in I] x[i, j] >= demand[j];"""
NEWSVENDOR = """data D: table(d: real); var q >= 0;
minimize cvar(tail = 0.1)[z in D] (4 * q - 10 * min(q, z.d));"""
LASSO = """dim d; param lam default 0.1; data D: table(x: real[d], y: real); var w[d];
minimize 0.5 * E[z ~ D] square(dot(w, z.x) - z.y) + lam * norm1(w);"""
ELASTIC = LASSO.replace("* norm1(w)", "* (0.5 * norm1(w) + 0.25 * sumsq(w))")
LOGISTIC = """dim d; data D: table(x: real[d], y: {-1, 1}); var w[d];
minimize E[z ~ D] log1pexp(-z.y * dot(w, z.x)) + 0.005 * sumsq(w);"""
TAIL = """dim d; data D: table(x: real[d], y: {-1, 1}); var w[d];
minimize cvar(tail = 0.1)[z in D] log1pexp(-z.y * dot(w, z.x)) + 0.005 * sumsq(w);"""
PAIRS = """dim d; data P: table(x: real[d]); data N: table(x: real[d]); var w[d];
minimize E[i ~ P] E[j ~ N] square(pos(1 - dot(w, i.x) + dot(w, j.x))) + 0.005 * sumsq(w);"""
GROUPS = """dim d; set G; data D: table(x: real[d], y: {-1, 1}, g: G); var w[d];
minimize max[k in G] (E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x))) + 0.005 * sumsq(w);"""
BOUNDED = """dim d; data D: table(x: real[d], y: {-1, 1}); var w[d];
minimize E[z ~ D | z.y == -1] log1pexp(dot(w, z.x)) + 0.005 * sumsq(w);
subject to misses: E[z ~ D | z.y == 1] log1pexp(-dot(w, z.x)) <= 0.6;"""
ISOTONIC = """dim n; param y[n]; var x[n]; minimize sumsq(x - y);
subject to rises[k in 1 .. n - 1]: x[k] <= x[k + 1];"""


def survival(n: int) -> tuple[str, dict[str, Any]]:
    draw = rng()
    x, w = draw.normal(size=(n, 10)), draw.normal(size=10) / 2
    lived = draw.exponential(np.exp(-x @ w))
    seen = draw.exponential(2 * np.median(lived), size=n)
    return COX, {"D": {"x": x, "time": np.minimum(lived, seen), "event": (lived <= seen).astype(int)}}


def clusters(n: int) -> tuple[str, dict[str, Any]]:
    draw = rng()
    x = np.concatenate([draw.normal(size=(n // 8, 8)) + 4 * draw.normal(size=8) for _ in range(8)])
    return CENTRES, {"D": {"x": x}}


def returns(n: int, d: int = 30) -> np.ndarray:
    draw = rng()
    factors = draw.normal(size=(n, 3)) @ draw.normal(size=(3, d))
    return 0.05 + factors + draw.normal(size=(n, d)) * draw.uniform(0.5, 2, d)


def markowitz(n: int) -> tuple[str, dict[str, Any]]:
    return MARKOWITZ, {"R": {"r": returns(n)}}


def turnover(n: int) -> tuple[str, dict[str, Any]]:
    return TURNOVER, {"R": {"r": returns(n)}, "held": np.full(30, 1 / 30)}


def transport(n: int) -> tuple[str, dict[str, Any]]:
    draw, side = rng(), int(n**0.5)
    demand, cost = draw.uniform(0.5, 1, side), draw.uniform(size=(side, side))
    return TRANSPORT, {"supply": np.full(side, 1.1 * demand.sum() / side), "demand": demand, "cost": cost} | {
        "a": side,
        "b": side,
    }


def newsvendor(n: int) -> tuple[str, dict[str, Any]]:
    return NEWSVENDOR, {"D": {"d": rng().lognormal(3, 0.5, n)}}


def regression(n: int, d: int = 20) -> dict[str, Any]:
    draw = rng()
    x = draw.normal(size=(n, d))
    return {"D": {"x": x, "y": x[:, :5] @ np.arange(1, 6) + draw.normal(size=n)}}


def labelled(n: int, d: int = 50) -> dict[str, Any]:
    draw = rng()
    x = draw.standard_normal((n, d), dtype=np.float32)
    y = np.where(x @ draw.normal(size=d) / d**0.5 + draw.logistic(size=n) > 0, 1, -1)
    return {"D": {"x": x, "y": y}}


def in_groups(n: int) -> tuple[str, dict[str, Any]]:
    data = labelled(n, 10)
    return GROUPS, {"D": data["D"] | {"g": np.arange(n) % 10}}


def scored(n: int) -> tuple[str, dict[str, Any]]:
    draw = rng()
    return PAIRS, {"P": {"x": draw.normal(size=(n // 10, 10)) + 0.2}, "N": {"x": draw.normal(size=(n, 10))}}


def isotonic(n: int) -> tuple[str, dict[str, Any]]:
    return ISOTONIC, {"n": n, "y": np.sqrt(np.arange(n) / n) + rng().normal(size=n)}


# ------------------------------------------------------------------------------------------- peers
def by_lbfgs(objective: Callable[[Any], tuple[float, Any]], d: int) -> float:
    from scipy.optimize import minimize

    options = {"gtol": 1e-9, "maxiter": 500}
    return float(minimize(objective, np.zeros(d), jac=True, options=options, method="L-BFGS-B").fun)


def cox_peer(_: str, data: dict[str, Any]) -> float:
    return partial_likelihood(data["D"], 0.005)


def partial_likelihood(rows: dict[str, Any], mu: float) -> float:
    """Cox's objective at its minimum by L-BFGS, risk sets by one cumulative sum over sorted times."""
    latest_first = np.argsort(-rows["time"], kind="stable")
    x, died = rows["x"][latest_first], rows["event"][latest_first] == 1
    at_risk = np.arange(1, len(died) + 1)[died]

    def objective(w: Any) -> tuple[float, Any]:
        scores = x @ w
        top = scores.max()
        hazards = np.exp(scores - top)
        sums = np.cumsum(hazards)
        loss = (np.log(sums[died] / at_risk) + top - scores[died]).mean()
        shares = np.where(died, 1 / sums, 0)[::-1].cumsum()[::-1] * hazards
        return loss + mu * w @ w, x.T @ (shares - died) / died.sum() + 2 * mu * w

    return by_lbfgs(objective, x.shape[1])


def logistic_peer(_: str, data: dict[str, Any]) -> float:
    x, y = data["D"]["x"].astype(float), data["D"]["y"]

    def objective(w: Any) -> tuple[float, Any]:
        margin = -y * (x @ w)
        shares = -y / (1 + np.exp(-margin))
        return np.logaddexp(0, margin).mean() + 0.005 * w @ w, x.T @ shares / len(y) + 0.01 * w

    return by_lbfgs(objective, x.shape[1])


def kmeans_peer(_: str, data: dict[str, Any]) -> float:
    from sklearn.cluster import KMeans

    x = data["D"]["x"]
    return float(KMeans(8, n_init=1, random_state=0).fit(x).inertia_ / len(x))


def lasso_peer(text: str, data: dict[str, Any]) -> float:
    from sklearn.linear_model import ElasticNet

    rows, path = data["D"], PATH["lam"]
    share = 1.0 if text == LASSO else 0.5
    fit = ElasticNet(l1_ratio=share, fit_intercept=False, warm_start=True, tol=1e-8, precompute=True)
    for value in path:
        fit.set_params(alpha=value).fit(rows["x"], rows["y"])
    rest, w = rows["y"] - rows["x"] @ fit.coef_, fit.coef_
    penalty = share * np.abs(w).sum() + (1 - share) / 2 * w @ w
    return float(rest @ rest / (2 * len(rest)) + path[-1] * penalty)


def solved(minimized: Any, constraints: list[Any]) -> float:
    import cvxpy as cp

    return float(cp.Problem(cp.Minimize(minimized), constraints).solve(solver="CLARABEL"))


def markowitz_peer(text: str, data: dict[str, Any]) -> float:
    import cvxpy as cp

    r = data["R"]["r"]
    x, mean = cp.Variable(r.shape[1]), r.mean(0)
    constraints = [x >= 0, cp.sum(x) == 1]
    if "held" in data:
        constraints.append(cp.norm1(x - data["held"]) <= 0.3)
    return solved(cp.quad_form(x, np.cov(r.T, bias=True)) - 0.2 * mean @ x, constraints)


def transport_peer(_: str, data: dict[str, Any]) -> float:
    import cvxpy as cp

    x = cp.Variable(data["cost"].shape, nonneg=True)
    constraints = [cp.sum(x, axis=1) <= data["supply"], cp.sum(x, axis=0) >= data["demand"]]
    return solved(cp.sum(cp.multiply(data["cost"], x)), constraints)


def newsvendor_peer(_: str, data: dict[str, Any]) -> float:
    import cvxpy as cp

    demand = data["D"]["d"]
    q, top = cp.Variable(nonneg=True), cp.Variable()
    loss = 4 * q - 10 * cp.minimum(q, demand)
    return solved(top + cp.sum(cp.pos(loss - top)) / (0.1 * len(demand)), [])


def groups_peer(_: str, data: dict[str, Any]) -> float:
    import cvxpy as cp

    rows = data["D"]
    w = cp.Variable(rows["x"].shape[1])
    loss = cp.logistic(cp.multiply(-rows["y"], rows["x"].astype(float) @ w))
    worst = cp.maximum(*(cp.sum(loss[k::10]) / len(rows["y"][k::10]) for k in range(10)))
    return solved(worst + 0.005 * cp.sum_squares(w), [])


def tail_peer(_: str, data: dict[str, Any]) -> float:
    import cvxpy as cp

    rows = data["D"]
    w, top = cp.Variable(rows["x"].shape[1]), cp.Variable()
    loss = cp.logistic(cp.multiply(-rows["y"], rows["x"].astype(float) @ w))
    tail = top + cp.sum(cp.pos(loss - top)) / (0.1 * len(rows["y"]))
    return solved(tail + 0.005 * cp.sum_squares(w), [])


def isotonic_peer(_: str, data: dict[str, Any]) -> float:
    import cvxpy as cp

    y = data["y"]
    x = cp.Variable(len(y))
    return solved(cp.sum_squares(x - y), [cp.diff(x) >= 0])


PATH = {"lam": [float(value) for value in np.geomspace(1, 0.01, 20)]}
CASES = {
    "Cox": Case((500, 2_000, 6_000, 20_000, 100_000, 1_000_000), survival, cox_peer),
    "k-means": Case((4_000, 40_000, 400_000), clusters, kmeans_peer, "30s"),
    "Markowitz": Case((500, 5_000, 50_000, 1_000_000), markowitz, markowitz_peer),
    "turnover": Case((500, 5_000, 50_000), turnover, markowitz_peer),
    "transport": Case((500, 5_000, 50_000), transport, transport_peer),
    "newsvendor": Case((500, 5_000, 50_000, 1_000_000), newsvendor, newsvendor_peer),
    "lasso": Case((500, 5_000, 50_000), lambda n: (LASSO, regression(n)), lasso_peer, swept=PATH),
    "elastic net": Case((500, 5_000), lambda n: (ELASTIC, regression(n)), lasso_peer, swept=PATH),
    "logistic": Case((500, 5_000, 50_000, 1_000_000), lambda n: (LOGISTIC, labelled(n)), logistic_peer),
    "bounded": Case((500, 5_000, 50_000, 1_000_000), lambda n: (BOUNDED, labelled(n)), None),
    "CVaR": Case((500, 5_000, 50_000), lambda n: (TAIL, labelled(n, 10)), tail_peer),
    "worst group": Case((500, 5_000, 50_000, 1_000_000), in_groups, groups_peer),
    "pairs": Case((1_000, 10_000, 100_000), scored, None),
    "isotonic": Case((200, 2_000), isotonic, isotonic_peer),
}


# --------------------------------------------------------------------------------------- measuring
def megabytes() -> float:
    """The largest resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def nbytes(data: dict[str, Any]) -> int:
    columns = [c for given in data.values() for c in (given.values() if isinstance(given, dict) else [given])]
    return sum(np.asarray(column).nbytes for column in columns)


def solved_here(case: Case, text: str, data: dict[str, Any]) -> dict[str, Any]:
    """Seconds and memory of binding and solving, and the objective that comes out."""
    import fccomodel

    gc.collect()
    before, began = megabytes(), time.process_time()
    problem = fccomodel.compile(text).bind(**data)
    bind, bound_memory = time.process_time() - began, megabytes() - before
    if case.swept is None:
        found = problem.solve(seed=0, budget=case.budget)
    else:
        found = problem.sweep(**case.swept)[-1]
    taken = {"ours": time.process_time() - began, "bind": bind, "verdict": str(found.status)}
    return taken | {"objective": float(found.objective), "bound": bound_memory, "MB": megabytes() - before}


def measured(name: str, n: int) -> dict[str, Any]:
    """Figures of one case and size, by us and by its peer."""
    import torch

    torch.set_num_threads(1)
    case = CASES[name]
    small = case.posed(min(case.sizes[0], n) // 2)
    if case.peer is not None:
        case.peer(*small)
    solved_here(case, *small)
    text, data = case.posed(n)
    figures = solved_here(case, text, data) | {"data": nbytes(data) / 2**20}
    if case.peer is not None:
        began = time.process_time()
        figures["best"] = case.peer(text, data)
        figures["peer"] = time.process_time() - began
    return figures


def apart(name: str, n: int) -> dict[str, Any]:
    """The figures of a process of its own, or the last line of its error."""
    command = [sys.executable, str(HERE), "--one", name, str(n)]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT, env=os.environ | threads
        )
    except subprocess.TimeoutExpired:
        return {"error": f"beyond {LIMIT} s"}
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def row(name: str, n: int, found: dict[str, Any]) -> str:
    """A line of the table."""
    if "error" in found:
        return f"| {name} | {n:,} | {found['error']} |" + " |" * 7
    peer = ratio = gap = ""
    if "peer" in found:
        peer = f"{found['peer']:.3f}"
        ratio = f"{found['ours'] / found['peer']:.1f}"
        gap = f"{(found['objective'] - found['best']) / max(abs(found['best']), 1e-12):.0e}"
    times = f"{found['MB'] / found['data']:.1f}" if found["data"] > 1 else ""
    cells = (name, f"{n:,}", f"{found['ours']:.2f}", f"{found['bind']:.2f}", found["verdict"], peer, ratio)
    return "| " + " | ".join((*cells, gap, f"{found['MB']:.0f}", times)) + " |"


def lines(asked: argparse.Namespace) -> Iterator[str]:
    yield "| case | rows | ours, s | of these bind | verdict | peer, s | ratio | gap to the peer | MB | times the data |"
    yield "|---" * 10 + "|"
    for name in asked.cases or CASES:
        for n in asked.rows or CASES[name].sizes:
            if n <= asked.most:
                yield row(name, n, apart(name, n))


def in_markdown(about: str) -> str:
    """The text of a benchmark's module, its command, which ends with ``[--write]``, in a fenced block."""
    return about.replace("\n    python", "\n```\npython").replace("[--write]\n", "[--write]\n```\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--rows", nargs="*", type=int)
    parser.add_argument("--most", type=float, default=1e7)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--one", nargs=2)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measured(asked.one[0], int(asked.one[1]))))
        return
    kept = []
    for line in lines(asked):
        kept.append(line)
        print(line, flush=True)
    if asked.write:
        text = "\n".join(["# Whole solves, by size\n", in_markdown(__doc__ or ""), *kept])
        HERE.with_suffix(".md").write_text(text + "\n")


if __name__ == "__main__":
    main()
