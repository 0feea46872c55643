"""Conformance problems: a model, its data, and its optimum by other means (closed form, or a convex solver)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Data = dict[str, dict[str, np.ndarray]]


@dataclass(frozen=True, kw_only=True)
class Conformance:
    """``optimum(data)`` gives the optimal value and multipliers by label; ``tolerance`` is absolute, on value and violation."""

    name: str
    text: str
    data: Callable[[], Data]
    optimum: Callable[[Data], tuple[float, dict[str, float]]]
    tolerance: float = 2e-3
    options: dict[str, Any] = field(default_factory=dict)


def regression(n: int = 60, d: int = 4, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return {"D": {"x": x, "y": x @ rng.normal(size=d) + 0.5 * rng.normal(size=n), "g": rng.integers(0, 5, size=n).astype(float)}}


def solve(build: Callable[[Any], tuple[Any, dict[str, Any]]]) -> tuple[float, dict[str, float]]:
    """The optimum of a CVXPY problem: ``build(cvxpy)`` returns it with its labelled constraints."""
    import cvxpy

    problem, labels = build(cvxpy)
    problem.solve(solver=cvxpy.CLARABEL)
    return float(problem.value), {label: float(np.ravel(c.dual_value)[0]) for label, c in labels.items()}


HEAD = "dim d;\ndata D : table(x: real[d], y: real, g: {0, 1, 2, 3, 4});\nvar w[d];\n"


def _least_squares(data: Data) -> tuple[float, dict[str, float]]:
    x, y = data["D"]["x"], data["D"]["y"]
    w = np.linalg.solve(x.T @ x / len(y) + 0.1 * np.eye(x.shape[1]), x.T @ y / len(y))
    return float(((x @ w - y) ** 2).mean() + 0.1 * w @ w), {}


def _lasso(data: Data) -> tuple[float, dict[str, float]]:
    def build(cp: Any) -> Any:
        x, y = data["D"]["x"], data["D"]["y"]
        w = cp.Variable(x.shape[1])
        return cp.Problem(cp.Minimize(cp.sum_squares(x @ w - y) / len(y) + 0.4 * cp.norm1(w))), {}

    return solve(build)


def _square_of_mean(data: Data) -> tuple[float, dict[str, float]]:
    def build(cp: Any) -> Any:
        x, y, g = (data["D"][k] for k in "xyg")
        w = cp.Variable(x.shape[1])
        means = [cp.sum_squares(x[g == k] @ w - y[g == k]) / (g == k).sum() for k in range(5)]
        return cp.Problem(cp.Minimize(sum(cp.square(m) for m in means) / 5 + 0.05 * cp.sum_squares(w))), {}

    return solve(build)


def _worst_group(data: Data) -> tuple[float, dict[str, float]]:
    def build(cp: Any) -> Any:
        x, y, g = (data["D"][k] for k in "xyg")
        w = cp.Variable(x.shape[1])
        means = [cp.sum_squares(x[g == k] @ w - y[g == k]) / (g == k).sum() for k in range(5)]
        return cp.Problem(cp.Minimize(cp.maximum(*means) + 0.05 * cp.sum_squares(w))), {}

    return solve(build)


def _cvar(data: Data) -> tuple[float, dict[str, float]]:
    def build(cp: Any) -> Any:
        x, y = data["D"]["x"], data["D"]["y"]
        w, s = cp.Variable(x.shape[1]), cp.Variable()
        excess = cp.pos(cp.square(x @ w - y) - s)
        return cp.Problem(cp.Minimize(s + cp.sum(excess) / (0.3 * len(y)) + 0.05 * cp.sum_squares(w))), {}

    return solve(build)


def _entropic(data: Data) -> tuple[float, dict[str, float]]:
    def build(cp: Any) -> Any:
        x, y = data["D"]["x"], data["D"]["y"]
        w = cp.Variable(x.shape[1])
        risk = 2 * (cp.log_sum_exp(cp.square(x @ w - y) / 2) - np.log(len(y)))
        return cp.Problem(cp.Minimize(risk + 0.05 * cp.sum_squares(w))), {}

    return solve(build)


def _bounded_group(data: Data) -> tuple[float, dict[str, float]]:
    def build(cp: Any) -> Any:
        x, y, g = (data["D"][k] for k in "xyg")
        w = cp.Variable(x.shape[1])
        limit = cp.sum_squares(x[g == 1] @ w - y[g == 1]) / (g == 1).sum() <= 0.27
        loss = cp.sum_squares(x @ w - y) / len(y) + 0.3 * cp.sum_squares(w)
        return cp.Problem(cp.Minimize(loss), [limit]), {"one": limit}

    return solve(build)


def _equality(data: Data) -> tuple[float, dict[str, float]]:
    def build(cp: Any) -> Any:
        x, y = data["D"]["x"], data["D"]["y"]
        w = cp.Variable(x.shape[1])
        total = cp.sum(w) == 0.5
        return cp.Problem(cp.Minimize(cp.sum_squares(x @ w - y) / len(y)), [total]), {"total": total}

    return solve(build)


def _simplex(data: Data) -> tuple[float, dict[str, float]]:
    def build(cp: Any) -> Any:
        x, y = data["D"]["x"], data["D"]["y"]
        w = cp.Variable(x.shape[1])
        return cp.Problem(cp.Minimize(cp.sum_squares(x @ w - y) / len(y)), [w >= 0, cp.sum(w) == 1]), {}

    return solve(build)


def _variance(data: Data) -> tuple[float, dict[str, float]]:
    x = data["D"]["x"]
    covariance, mean = np.cov(x.T, ddof=0), x.mean(0)
    w = np.linalg.solve(2 * covariance, mean)
    return float(w @ covariance @ w - mean @ w), {}


def _absolute(data: Data) -> tuple[float, dict[str, float]]:
    def build(cp: Any) -> Any:
        x, y, g = (data["D"][k] for k in "xyg")
        w = cp.Variable(x.shape[1])
        gap = cp.abs(cp.sum(x[g == 0] @ w) / (g == 0).sum() - cp.sum(x[g == 1] @ w) / (g == 1).sum()) <= 0.01
        return cp.Problem(cp.Minimize(cp.sum_squares(x @ w - y) / len(y)), [gap]), {"gap": gap}

    return solve(build)


PROBLEMS = (
    Conformance(
        name="least_squares",
        text=HEAD + "minimize E[z ~ D] (dot(w, z.x) - z.y)^2 + 0.1 * sumsq(w);",
        data=regression,
        optimum=_least_squares,
    ),
    Conformance(
        name="lasso", text=HEAD + "minimize E[z ~ D] square(dot(w, z.x) - z.y) + 0.4 * norm1(w);", data=regression, optimum=_lasso
    ),
    Conformance(
        name="square_of_mean",
        text=HEAD
        + "minimize mean[k in {0, 1, 2, 3, 4}] square(E[z ~ D | z.g == k] square(dot(w, z.x) - z.y)) + 0.05 * sumsq(w);",
        data=regression,
        optimum=_square_of_mean,
    ),
    Conformance(
        name="worst_group",
        text=HEAD + "minimize max[k in {0, 1, 2, 3, 4}] (E[z ~ D | z.g == k] square(dot(w, z.x) - z.y)) + 0.05 * sumsq(w);",
        data=regression,
        optimum=_worst_group,
    ),
    Conformance(
        name="cvar",
        text=HEAD + "minimize cvar(tail = 0.3)[z in D] square(dot(w, z.x) - z.y) + 0.05 * sumsq(w);",
        data=regression,
        optimum=_cvar,
    ),
    Conformance(
        name="entropic",
        text=HEAD + "minimize logmeanexp(theta = 2)[z in D] square(dot(w, z.x) - z.y) + 0.05 * sumsq(w);",
        data=regression,
        optimum=_entropic,
    ),
    Conformance(
        name="bounded_group",
        text=HEAD + "minimize E[z ~ D] square(dot(w, z.x) - z.y) + 0.3 * sumsq(w);\n"
        "subject to one: E[z ~ D | z.g == 1] square(dot(w, z.x) - z.y) <= 0.27;",
        data=regression,
        optimum=_bounded_group,
    ),
    Conformance(
        name="equality",
        text=HEAD + "minimize E[z ~ D] square(dot(w, z.x) - z.y);\nsubject to total: sum(w) == 0.5;",
        data=regression,
        optimum=_equality,
    ),
    Conformance(
        name="simplex",
        text=HEAD.replace("var w[d];", "var w[d] in simplex;") + "minimize E[z ~ D] square(dot(w, z.x) - z.y);",
        data=regression,
        optimum=_simplex,
    ),
    Conformance(
        name="variance",
        text=HEAD + "minimize variance[z ~ D] dot(w, z.x) - E[z ~ D] dot(w, z.x);",
        data=regression,
        optimum=_variance,
    ),
    Conformance(
        name="absolute",
        text=HEAD + "minimize E[z ~ D] square(dot(w, z.x) - z.y);\n"
        "subject to gap: abs(E[z ~ D | z.g == 0] dot(w, z.x) - E[z ~ D | z.g == 1] dot(w, z.x)) <= 0.01;",
        data=regression,
        optimum=_absolute,
    ),
)
