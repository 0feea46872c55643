"""Conformance problems: a model, its data, and its optimum by other means (closed form, or a convex
solver).

Small convex problems of every shape that the theorems distinguish; a few that are not convex, whose
optimum is known because it is planted; and one known by its stationarity alone. ``compositions``
has those of more than two levels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Data = dict[str, dict[str, np.ndarray]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Conformance:
    """``optimum(data)`` gives the optimal value and multipliers by label, None where points are judged
    by their stationarity; ``tolerance`` is that of value (relative above 1) and violation."""

    name: str
    text: str
    data: Callable[[], Data]
    optimum: Callable[[Data], tuple[float, dict[str, float]]] | None
    tolerance: float = 2e-3
    options: dict[str, Any] = field(default_factory=dict)


def regression(n: int = 60, d: int = 4, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return {
        "D": {
            "x": x,
            "y": x @ rng.normal(size=d) + 0.5 * rng.normal(size=n),
            "g": rng.integers(0, 5, size=n).astype(float),
        }
    }


def solve(build: Callable[[Any], tuple[Any, dict[str, Any]]]) -> tuple[float, dict[str, float]]:
    """The optimum of a CVXPY problem: ``build(cvxpy)`` returns it with its labelled constraints."""
    import cvxpy

    problem, labels = build(cvxpy)
    problem.solve(solver=cvxpy.CLARABEL)
    return float(problem.value), {label: float(np.ravel(c.dual_value)[0]) for label, c in labels.items()}


def convex(build: Callable[[Any, Any, Data], Any]) -> Callable[[Data], tuple[float, dict[str, float]]]:
    """The optimum of a convex problem in w: ``build(cvxpy, w, data)`` gives the objective, and perhaps
    labelled constraints."""

    def optimum(data: Data) -> tuple[float, dict[str, float]]:
        def problem(cp: Any) -> Any:
            w = cp.Variable(data["D"]["x"].shape[1])
            made = build(cp, w, data)
            objective, labels = made if isinstance(made, tuple) else (made, {})
            return cp.Problem(cp.Minimize(objective), list(labels.values())), labels

        return solve(problem)

    return optimum


def residuals(cp: Any, w: Any, data: Data) -> list[Any]:
    """Mean squared residuals of the five groups."""
    x, y, g = (data["D"][k] for k in "xyg")
    return [cp.sum_squares(x[g == k] @ w - y[g == k]) / (g == k).sum() for k in range(5)]


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


def _hinge_of_groups(cp: Any, w: Any, data: Data) -> Any:
    return sum(cp.pos(r - 0.2) for r in residuals(cp, w, data)) / 5 + 0.05 * cp.sum_squares(w)


def _group_cvar(cp: Any, w: Any, data: Data) -> Any:
    return cp.sum_largest(cp.hstack(residuals(cp, w, data)), 2) / 2 + 0.05 * cp.sum_squares(w)


def _largest_of_three(cp: Any, w: Any, data: Data) -> Any:
    losses = residuals(cp, w, data)
    return cp.maximum(losses[0], 2 * losses[1], losses[2] + 0.1) + 0.05 * cp.sum_squares(w)


def _loss(cp: Any, w: Any, data: Data) -> Any:
    return cp.sum_squares(data["D"]["x"] @ w - data["D"]["y"]) / len(data["D"]["y"])


def _mean_score(cp: Any, w: Any, data: Data) -> Any:
    return cp.sum(data["D"]["x"] @ w) / len(data["D"]["y"])


def _inactive(cp: Any, w: Any, data: Data) -> Any:
    return _loss(cp, w, data) + 0.1 * cp.sum_squares(w), {"loose": residuals(cp, w, data)[1] <= 2}


def _two_sided(cp: Any, w: Any, data: Data) -> Any:
    score = _mean_score(cp, w, data)
    return _loss(cp, w, data), {"score.lower": -0.1 - score <= 0, "score.upper": score - 0.1 <= 0}


def _elastic(cp: Any, w: Any, data: Data) -> Any:
    losses = residuals(cp, w, data)
    return sum(cp.square(m) for m in losses) / 5 + 0.2 * cp.norm1(w) + 0.1 * cp.sum_squares(w)


def _weighted_entropic(cp: Any, w: Any, data: Data) -> Any:
    return (
        0.5 * cp.log_sum_exp(2 * cp.hstack(residuals(cp, w, data)))
        - 0.5 * np.log(5)
        + 0.05 * cp.sum_squares(w)
    )


def planted(n: int = 60, d: int = 3, seed: int = 2) -> Data:
    """Rows of five groups and, for each of them, the mean square of its scores at a point that is to
    be found again."""
    rng = np.random.default_rng(seed)
    x, g = rng.normal(size=(n, d)), np.arange(n) % 5
    scores = (x @ rng.uniform(-0.4, 0.4, size=d) + 1) ** 2
    means = np.array([scores[g == k].mean() for k in range(5)])
    return {"D": {"x": x, "y": means[g], "g": g.astype(float)}}


def classes(n: int = 60, d: int = 3, seed: int = 3) -> Data:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return {"D": {"x": x, "y": np.sign(x[:, 0] + rng.normal(size=n)), "g": (np.arange(n) % 5).astype(float)}}


GROUPS = "mean[k in {0, 1, 2, 3, 4}]"
LOSS = "E[z ~ D | z.g == k] square(dot(w, z.x) - z.y)"
SQUARES = "E[z ~ D] square(dot(w, z.x) - z.y)"


# ------------------------------------------------------------------------------ deeper compositions
def _scores(cp: Any, w: Any, data: Data) -> Any:
    return cp.sum_squares(data["D"]["x"] @ w) / len(data["D"]["y"])


def _composition_bound(cp: Any, w: Any, data: Data) -> Any:
    bound = sum(cp.square(r) for r in residuals(cp, w, data)) / 5 <= 0.4
    return _scores(cp, w, data), {"spread": bound}


def _cvar_bound(cp: Any, w: Any, data: Data) -> Any:
    squares = cp.square(data["D"]["x"] @ w - data["D"]["y"])
    n = len(data["D"]["y"])
    return _scores(cp, w, data), {"tail": cp.sum_largest(squares, int(0.25 * n)) / int(0.25 * n) <= 1.6}


def _composition_and_bound(cp: Any, w: Any, data: Data) -> Any:
    losses = residuals(cp, w, data)
    return sum(cp.square(r) for r in losses) / 5 + 0.05 * cp.sum_squares(w), {"one": losses[1] <= 0.27}


def _three_levels(cp: Any, w: Any, data: Data) -> Any:
    x, g = data["D"]["x"], data["D"]["g"]
    scores = x @ w
    first = [cp.log_sum_exp(scores[g != 0] - scores[i]) - np.log((g != 0).sum()) for i in range(len(g))]
    means = [sum(first[i] for i in np.flatnonzero(g == k)) / (g == k).sum() for k in range(1, 5)]
    return cp.log_sum_exp(2 * cp.hstack(means)) / 2 - np.log(4) / 2 + 0.5 * cp.sum_squares(w - 0.2)


def _stochastic_outer(cp: Any, w: Any, data: Data) -> Any:
    x, y, g = (data["D"][k] for k in "xyg")
    scales, targets = data["A"]["s"], data["A"]["t"]
    means = [cp.sum(x[g == k] @ w - y[g == k]) / (g == k).sum() for k in range(5)]
    return sum(cp.sum_squares(scales * m - targets) for m in means) / (
        5 * len(scales)
    ) + 0.05 * cp.sum_squares(w)


def with_targets() -> Data:
    rng = np.random.default_rng(5)
    return {**regression(), "A": {"s": rng.uniform(0.5, 2, size=30), "t": rng.normal(size=30)}}


COMPOSITIONS = (
    Conformance(
        name="composition_bound",
        text=HEAD
        + f"minimize E[z ~ D] square(dot(w, z.x));\nsubject to spread: {GROUPS} square({LOSS}) <= 0.4;",
        data=regression,
        optimum=convex(_composition_bound),
    ),
    Conformance(
        name="cvar_bound",
        text=HEAD + "minimize E[z ~ D] square(dot(w, z.x));\n"
        "subject to tail: cvar(tail = 0.25)[z in D] square(dot(w, z.x) - z.y) <= 1.6;",
        data=regression,
        optimum=convex(_cvar_bound),
    ),
    Conformance(
        name="composition_and_bound",
        text=HEAD + f"minimize {GROUPS} square({LOSS}) + 0.05 * sumsq(w);\n"
        "subject to one: E[z ~ D | z.g == 1] square(dot(w, z.x) - z.y) <= 0.27;",
        data=regression,
        optimum=convex(_composition_and_bound),
    ),
    Conformance(
        name="three_levels",
        text=HEAD + "set N = {z in D | z.g >= 1};\n"
        "minimize logmeanexp(theta = 0.5)[k in {1, 2, 3, 4}] "
        "(E[i ~ D | i.g == k] log(E[j ~ N] exp(dot(w, j.x) - dot(w, i.x)))) + 0.5 * sumsq(w - 0.2);",
        data=regression,
        optimum=convex(_three_levels),
    ),
    Conformance(
        name="stochastic_outer",
        text=HEAD + "data A : table(s: real, t: real);\n"
        f"minimize {GROUPS} E[a ~ A] square(a.s * (E[z ~ D | z.g == k] (dot(w, z.x) - z.y)) - "
        "a.t) + 0.05 * sumsq(w);",
        data=with_targets,
        optimum=convex(_stochastic_outer),
    ),
)

PROBLEMS = (
    Conformance(
        name="least_squares",
        text=HEAD + "minimize E[z ~ D] (dot(w, z.x) - z.y)^2 + 0.1 * sumsq(w);",
        data=regression,
        optimum=_least_squares,
    ),
    Conformance(
        name="lasso",
        text=HEAD + "minimize E[z ~ D] square(dot(w, z.x) - z.y) + 0.4 * norm1(w);",
        data=regression,
        optimum=_lasso,
    ),
    Conformance(
        name="square_of_mean",
        text=HEAD
        + "minimize mean[k in {0, 1, 2, 3, 4}] square(E[z ~ D | z.g == k] square(dot(w, z.x) - z.y)) + "
        "0.05 * sumsq(w);",
        data=regression,
        optimum=_square_of_mean,
    ),
    Conformance(
        name="worst_group",
        text=HEAD
        + "minimize max[k in {0, 1, 2, 3, 4}] (E[z ~ D | z.g == k] square(dot(w, z.x) - z.y)) + 0.05 * "
        "sumsq(w);",
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
        text=HEAD.replace("var w[d];", "var w[d] in simplex;")
        + "minimize E[z ~ D] square(dot(w, z.x) - z.y);",
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

#: further shapes of outer functions and constraints
SHAPES = (
    Conformance(
        name="hinge_of_groups",
        text=HEAD + f"minimize {GROUPS} pos(({LOSS}) - 0.2) + 0.05 * sumsq(w);",
        data=regression,
        optimum=convex(_hinge_of_groups),
    ),
    Conformance(
        name="group_cvar",
        text=HEAD + f"minimize cvar(tail = 0.4)[k in {{0, 1, 2, 3, 4}}] ({LOSS}) + 0.05 * sumsq(w);",
        data=regression,
        optimum=convex(_group_cvar),
    ),
    Conformance(
        name="largest_of_three",
        text=HEAD
        + "let r[k in {0, 1, 2}] = "
        + LOSS
        + ";\nminimize max(r[0], 2 * r[1], r[2] + 0.1) + 0.05 * sumsq(w);",
        data=regression,
        optimum=convex(_largest_of_three),
    ),
    Conformance(
        name="group_entropic",
        text=HEAD + f"minimize logmeanexp(theta = 0.5)[k in {{0, 1, 2, 3, 4}}] ({LOSS}) + 0.05 * sumsq(w);",
        data=regression,
        optimum=convex(_weighted_entropic),
    ),
    Conformance(
        name="elastic_composition",
        text=HEAD + f"minimize {GROUPS} square({LOSS}) + 0.2 * norm1(w) + 0.1 * sumsq(w);",
        data=regression,
        optimum=convex(_elastic),
    ),
    Conformance(
        name="inactive",
        text=HEAD + f"minimize {SQUARES} + 0.1 * sumsq(w);\n"
        "subject to loose: E[z ~ D | z.g == 1] square(dot(w, z.x) - z.y) <= 2;",
        data=regression,
        optimum=convex(_inactive),
    ),
    Conformance(
        name="two_sided",
        text=HEAD + f"minimize {SQUARES};\nsubject to score: -0.1 <= E[z ~ D] dot(w, z.x) <= 0.1;",
        data=regression,
        optimum=convex(_two_sided),
    ),
    Conformance(
        name="planted_squares",
        text=HEAD + f"minimize {GROUPS} square(E[z ~ D | z.g == k] (square(dot(w, z.x) + 1) - z.y));",
        data=planted,
        optimum=lambda data: (0.0, {}),
    ),
    Conformance(
        name="planted_absolute",
        text=HEAD + f"minimize {GROUPS} abs(E[z ~ D | z.g == k] (square(dot(w, z.x) + 1) - z.y));",
        data=planted,
        optimum=lambda data: (0.0, {}),
        tolerance=2e-2,
    ),
    Conformance(
        name="sigmoid_losses",
        text=HEAD
        + f"minimize {GROUPS} square(E[z ~ D | z.g == k] sigmoid(-z.y * dot(w, z.x))) + 0.02 * sumsq(w);",
        data=classes,
        optimum=None,
        tolerance=1e-2,
    ),
)

ALL = (*PROBLEMS, *SHAPES, *COMPOSITIONS)
