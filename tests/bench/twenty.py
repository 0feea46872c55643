"""Twenty problems whose solutions are known: what ``solve`` says of each, and what is true.

    python tests/bench/twenty.py [name ...] [--budget 10s]

gap        objective less the optimum (closed form or CVXPY), relative above 1
certified  the gap that the report proves
judged     ``wrong`` where the verdict says solved and the gap or the violation exceeds 1e-2, where
           a problem without a solution
           is called solved, or where a failure is named that is not there; ``unsolved`` where the
           report says so itself

Exit status 1 if any is wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

import fccomodel
from fccomodel.core.diagnostics import FccoError

Array = np.ndarray
GOOD = 1e-2
REGRESSION = "model m; dim d; data D : table(x: real[d], y: real);"
CLASSES = "model m; dim d; data D : table(x: real[d], y: {-1, 1});"
GROUPS = "model m; dim d; set G; data D : table(x: real[d], y: real, g: G);"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A model with its data; ``optimum`` is None where there is no solution to find (``expected``
    names what is)."""

    text: str
    data: dict[str, Any] = field(default_factory=dict)
    optimum: float | None = None
    expected: str = "solved"


def gaussian(n: int, d: int, seed: int = 0, noise: float = 0.3) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, d))
    return x, x[:, : min(d, 5)] @ np.array([1.0, -0.5, 0.25, 0.1, 0.0])[: min(d, 5)] + noise * random.normal(
        size=n
    )


def rows(x: Array, y: Array, **more: Array) -> dict[str, Any]:
    return {"D": {"x": x, "y": y, **more}}


def conic(
    objective: Callable[[Any, Any], Any], d: int, constraints: list[Callable[[Any, Any], Any]] | None = None
) -> float:
    """The optimum by CVXPY with Clarabel, at tolerance 1e-10."""
    import cvxpy

    w = cvxpy.Variable(d)
    tight = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
    problem = cvxpy.Problem(
        cvxpy.Minimize(objective(cvxpy, w)), [make(cvxpy, w) for make in constraints or []]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver="CLARABEL", **tight)
    return float(problem.value)


def squares(x: Array, y: Array) -> Callable[[Any, Any], Any]:
    """The mean square, from the QR factor of the data so that its size does not depend on the rows."""
    r = np.linalg.qr(np.column_stack([x, y]), mode="r") / len(y) ** 0.5
    return lambda c, w: c.sum_squares(r[:, :-1] @ w - r[:, -1])


def logistic(x: Array, y: Array) -> Callable[[Any, Any], Any]:
    return lambda c, w: c.sum(c.logistic(-c.multiply(y, x @ w))) / len(y)


# ------------------------------------------------------------------------------------- the problems
FIT, LOSS = "E[z ~ D] square(dot(w, z.x) - z.y)", "E[z ~ D] log1pexp(-z.y * dot(w, z.x))"


def least_squares(n: int, d: int) -> Problem:
    x, y = gaussian(n, d)
    w = np.linalg.lstsq(x, y, rcond=None)[0]
    return Problem(
        text=f"{REGRESSION} var w[d]; minimize {FIT};",
        data=rows(x, y),
        optimum=float(np.mean((x @ w - y) ** 2)),
    )


def one_variable() -> Problem:
    x, y = gaussian(10, 1)
    w = max(float(x[:, 0] @ y / (x[:, 0] @ x[:, 0])), 2.0)
    text = f"{REGRESSION} var w[d]; minimize {FIT}; subject to large: w[1] >= 2;"
    return Problem(text=text, data=rows(x, y), optimum=float(np.mean((w * x[:, 0] - y) ** 2)))


def equality() -> Problem:
    x, y = gaussian(1000, 10)
    text = f"{REGRESSION} var w[d]; minimize {FIT}; subject to total: sum(w) == 1; pair: w[1] - w[2] == 0.2;"
    return Problem(
        text=text,
        data=rows(x, y),
        optimum=conic(squares(x, y), 10, [lambda c, w: c.sum(w) == 1, lambda c, w: w[0] - w[1] == 0.2]),
    )


def two_sided() -> Problem:
    x, y = gaussian(2000, 8)
    mean = x[:, 0] * y
    text = (
        f"{REGRESSION} var w[d]; minimize {FIT}; subject to band: 0.1 <= E[z ~ D] z.y * dot(w, z.x) <= 0.2;"
    )
    vector = (x * y[:, None]).mean(0)
    assert len(mean) == 2000
    limits = [lambda c, w: vector @ w >= 0.1, lambda c, w: vector @ w <= 0.2]
    return Problem(text=text, data=rows(x, y), optimum=conic(squares(x, y), 8, limits))


def inactive() -> Problem:
    x, y = gaussian(1000, 5)
    w = np.linalg.lstsq(x, y, rcond=None)[0]
    text = f"{REGRESSION} var w[d]; minimize {FIT}; subject to size: sumsq(w) <= 100; first: w[1] <= 7;"
    return Problem(text=text, data=rows(x, y), optimum=float(np.mean((x @ w - y) ** 2)))


def degenerate() -> Problem:
    """Three constraints through one point of the plane, two of them the same."""
    x, y = gaussian(1000, 2)
    text = (
        f"{REGRESSION} var w[d]; minimize {FIT};subject to a: w[1] + w[2] <= 0.2; b: 2 * w[1] + 2 * "
        "w[2] <= 0.4; c: w[1] <= 0.5;"
    )
    limits = [lambda c, w: w[0] + w[1] <= 0.2, lambda c, w: w[0] <= 0.5]
    return Problem(text=text, data=rows(x, y), optimum=conic(squares(x, y), 2, limits))


def no_interior() -> Problem:
    """The only feasible point is the origin: no multiplier exists."""
    x, y = gaussian(500, 3)
    text = f"{REGRESSION} var w[d]; minimize {FIT}; subject to zero: sumsq(w) <= 0;"
    return Problem(text=text, data=rows(x, y), optimum=float(np.mean(y**2)))


def infeasible() -> Problem:
    x, y = gaussian(500, 4)
    text = f"{REGRESSION} var w[d]; minimize {FIT}; subject to low: sum(w) <= -1; high: sum(w) >= 1;"
    return Problem(text=text, data=rows(x, y), expected="infeasible")


def unbounded() -> Problem:
    x, y = gaussian(500, 4)
    text = (
        f"{REGRESSION} var w[d]; minimize E[z ~ D] (dot(w, z.x) + w[1] + 0.1 * z.y); subject to half: "
        "w[2] <= 1;"
    )
    return Problem(text=text, data=rows(x, y), expected="unbounded")


def separable() -> Problem:
    """Two classes that a plane tells apart: the infimum 0 is attained nowhere."""
    x, _ = gaussian(300, 3)
    x[:, 0] += 0.5 * np.sign(x[:, 0])
    return Problem(
        text=f"{CLASSES} var w[d]; minimize {LOSS};", data=rows(x, np.sign(x[:, 0])), expected="unattained"
    )


def logistic_ball() -> Problem:
    x, y = gaussian(2000, 20, noise=2.0)
    y = np.sign(y)
    text = f"{CLASSES} var w[d]; minimize {LOSS}; subject to size: sumsq(w) <= 0.1;"
    return Problem(
        text=text, data=rows(x, y), optimum=conic(logistic(x, y), 20, [lambda c, w: c.sum_squares(w) <= 0.1])
    )


def lasso() -> Problem:
    x, y = gaussian(500, 50)
    fit = squares(x, y)
    optimum = conic(lambda c, w: fit(c, w) + 0.1 * c.norm1(w), 50)
    return Problem(
        text=f"{REGRESSION} var w[d]; minimize {FIT} + 0.1 * norm1(w);", data=rows(x, y), optimum=optimum
    )


def worst_group() -> Problem:
    x, y = gaussian(900, 6)
    g = np.array(["a", "b", "c"])[np.arange(900) % 3]
    y = y + (g == "a") * 0.5 * x[:, 1] - (g == "b") * 0.7
    parts = [squares(x[g == k], y[g == k]) for k in "abc"]
    text = (
        f"{GROUPS} var w[d]; minimize max[k in G] E[z ~ D | z.g == k] square(dot(w, z.x) - z.y) + "
        "0.01 * sumsq(w);"
    )
    optimum = conic(lambda c, w: c.max(c.hstack([part(c, w) for part in parts])) + 0.01 * c.sum_squares(w), 6)
    return Problem(text=text, data=rows(x, y, g=g), optimum=optimum)


def absolute() -> Problem:
    x, y = gaussian(400, 5)
    text = (
        f"{REGRESSION} var w[d]; minimize mean[i in D] abs(dot(w, i.x) - i.y); subject to size: "
        "norm1(w) <= 1;"
    )
    optimum = conic(lambda c, w: c.norm1(x @ w - y) / 400, 5, [lambda c, w: c.norm1(w) <= 1])
    return Problem(text=text, data=rows(x, y), optimum=optimum)


def tail() -> Problem:
    x, y = gaussian(1000, 5)
    text = f"{REGRESSION} var w[d]; minimize cvar(tail = 0.1)[i in D] square(dot(w, i.x) - i.y);"
    optimum = conic(lambda c, w: c.sum_largest(c.square(x @ w - y), 100) / 100, 5)
    return Problem(text=text, data=rows(x, y), optimum=optimum)


def wide() -> Problem:
    """5,000 variables, 300 rows: the optimum by the dual of ridge regression."""
    x, y = gaussian(300, 5000)
    x /= 5000**0.5
    mu, n = 0.1, 300
    dual = np.linalg.solve(x @ x.T / n + mu * np.eye(n), y)
    w = x.T @ dual / n
    optimum = float(np.mean((x @ w - y) ** 2) + mu * w @ w)
    return Problem(
        text=f"{REGRESSION} var w[d]; minimize {FIT} + {mu} * sumsq(w);", data=rows(x, y), optimum=optimum
    )


def long() -> Problem:
    """500,000 rows, an active constraint."""
    x, y = gaussian(500_000, 6)
    text = f"{REGRESSION} var w[d]; minimize {FIT}; subject to size: sumsq(w) <= 0.5;"
    return Problem(
        text=text, data=rows(x, y), optimum=conic(squares(x, y), 6, [lambda c, w: c.sum_squares(w) <= 0.5])
    )


def badly_scaled() -> Problem:
    """Features whose scales differ by a million."""
    x, y = gaussian(2000, 4)
    x = x * np.array([1e-3, 1.0, 1e3, 1.0])
    w = np.linalg.lstsq(x, y, rcond=None)[0]
    return Problem(
        text=f"{REGRESSION} var w[d]; minimize {FIT};",
        data=rows(x, y),
        optimum=float(np.mean((x @ w - y) ** 2)),
    )


def badly_scaled_constraint() -> Problem:
    x, y = gaussian(2000, 4)
    x = x * np.array([1.0, 1e3, 1.0, 1.0])
    text = f"{REGRESSION} var w[d]; minimize {FIT}; subject to large: 1000000 * w[1] <= 500000;"
    return Problem(text=text, data=rows(x, y), optimum=conic(squares(x, y), 4, [lambda c, w: w[0] <= 0.5]))


def portfolio() -> Problem:
    random = np.random.default_rng(2)
    x = random.normal(size=(600, 12)) * np.linspace(0.5, 1.5, 12) + np.linspace(0.0, 0.2, 12)
    covariance, mean = np.cov(x.T, bias=True), x.mean(0)
    root = np.linalg.cholesky(covariance).T
    text = (
        f"{REGRESSION} var w[d] in simplex(d); minimize variance[z ~ D] dot(w, z.x); subject to r: "
        "E[z ~ D] dot(w, z.x) >= 0.12;"
    )
    limits = [lambda c, w: w >= 0, lambda c, w: c.sum(w) == 1, lambda c, w: mean @ w >= 0.12]
    return Problem(
        text=text, data=rows(x, x[:, 0]), optimum=conic(lambda c, w: c.sum_squares(root @ w), 12, limits)
    )


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "least_squares": lambda: least_squares(1000, 10),
    "one_variable": one_variable,
    "equality": equality,
    "two_sided": two_sided,
    "inactive": inactive,
    "degenerate": degenerate,
    "no_interior": no_interior,
    "infeasible": infeasible,
    "unbounded": unbounded,
    "separable": separable,
    "logistic_ball": logistic_ball,
    "lasso": lasso,
    "worst_group": worst_group,
    "absolute": absolute,
    "tail": tail,
    "wide": wide,
    "long": long,
    "badly_scaled": badly_scaled,
    "badly_scaled_constraint": badly_scaled_constraint,
    "portfolio": portfolio,
}


# ---------------------------------------------------------------------------------------- the table
FAILURES = ("infeasible", "unbounded", "unattained")


def judged(problem: Problem, status: str, claimed: bool, gap: float, violation: float) -> str:
    """``right``, ``wrong``, or ``unsolved`` where the report says so itself."""
    if problem.optimum is None or status in FAILURES:
        return (
            "right"
            if status == problem.expected
            else "wrong"
            if claimed or status in FAILURES
            else "unsolved"
        )
    good = abs(gap) <= GOOD and violation <= GOOD
    return "right" if good else "wrong" if claimed else "unsolved"


def line(name: str, problem: Problem, budget: str) -> tuple[str, bool]:
    """A line of the table, and whether the verdict was wrong."""
    began = time.perf_counter()
    try:
        result = fccomodel.compile(problem.text).bind(data=problem.data).solve(budget=budget, seed=0)
    except FccoError as error:
        found = error.diagnostics[0]
        return (
            f"{name:24}{'':50}{time.perf_counter() - began:6.1f}  {'unsolved':9}{found.code} {found.message}",
            False,
        )
    seconds, report = time.perf_counter() - began, result.report
    gap = (
        float("nan")
        if problem.optimum is None
        else (report.objective - problem.optimum) / max(1.0, abs(problem.optimum))
    )
    claimed = report.verdict.startswith("Solved")
    status = result.outcome.status
    said = judged(problem, status, claimed, gap, report.feasibility)
    proved = "-" if report.gap is None or report.gap.value is None else f"{report.gap.value:.0e}"
    figures = f"{gap:10.1e}{proved:>10}{report.feasibility:10.1e}{report.residual:10.1e}"
    return (
        f"{name:24}{figures}{'':10}{seconds:6.1f}  "
        f"{said:9}{status if status in FAILURES else report.verdict.partition(':')[0]}",
        said == "wrong",
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="name")
    parser.add_argument("--budget", default="10s")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(
        f"{'problem':24}{'gap':>10}{'certified':>10}{'violation':>10}{'KKT':>10}{'':10}{'s':>6}  judged   "
        "verdict"
    )
    wrong = 0
    for name in arguments.names or PROBLEMS:
        shown, bad = line(name, PROBLEMS[name](), arguments.budget)
        wrong += bad
        print(shown, flush=True)
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
