"""Models whose outer functions need the proximal calculus, solved: optima by CVXPY, and KKT points of
weakly convex ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from fccomodel import pipeline
from fccomodel.core.source import Source
from fccomodel.evaluation import interpret
from fccomodel.execution import run
from fccomodel.program import emit
from fccomodel.program.lower import lower

HEAD = "dim d; data D : table(x: real[d], y: real, g: {0, 1, 2, 3, 4}); var w[d];\n"


def table(n: int = 60, d: int = 4) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d))
    return {
        "D": {
            "x": x,
            "y": x @ rng.normal(size=d) + 0.5 * rng.normal(size=n),
            "g": rng.integers(0, 5, size=n).astype(float),
        }
    }


def solved(body: str, algorithm: str) -> tuple[float, str]:
    """The objective at the point found, by the interpreter; and the emitted program."""
    compiled = pipeline.compile_model(Source(text=f"model m; {HEAD}{body}", name="m"))
    bound = pipeline.bind(compiled, pipeline.Binding(data=table()))
    made = pipeline.decide(
        pipeline.analyse(compiled.problem, bound), {"algorithm": (algorithm, "command line")}
    )
    program = emit.emit(lower(compiled.problem, bound, made))
    solution = run.run(program, bound, run.RunSettings(seed=3, iterations=4000, precision="float64"))
    point = {name: torch.as_tensor(value) for name, value in solution.variables.items()}
    return float(interpret.evaluate(bound, bound.problem.objective.expr, point)), program.text


def groups(x: np.ndarray, g: np.ndarray) -> list[np.ndarray]:
    return [x[g == k] for k in range(5)]


def gap(cp: Any, x: np.ndarray, y: np.ndarray, g: np.ndarray, w: Any) -> Any:
    near = [cp.sum_squares(p @ w - q) / len(q) for p, q in zip(groups(x, g), groups(y, g), strict=True)]
    apart = [cp.pos(cp.abs(p.mean(0) @ w - x.mean(0) @ w - 0.3) - 0.1) for p in groups(x, g)]
    return sum(near) / 5 + sum(apart)


CONVEX: dict[str, tuple[str, Callable[..., Any], str]] = {
    "norm of a vector of expectations": (
        "minimize mean[k in 0 .. 4] norm2(E[z ~ D | z.g == k] (w - z.x * z.y));",
        lambda cp, x, y, g, w: sum(
            cp.norm2(w - (p * q[:, None]).mean(0)) for p, q in zip(groups(x, g), groups(y, g), strict=True)
        ) / 5,
        "onto_ball",
    ),
    "largest entry": (
        "minimize mean[k in 0 .. 4] norminf(E[z ~ D | z.g == k] (w - z.x * z.y)) + 0.1 * sumsq(w);",
        lambda cp, x, y, g, w: sum(
            cp.norm_inf(w - (p * q[:, None]).mean(0)) for p, q in zip(groups(x, g), groups(y, g), strict=True)
        ) / 5 + 0.1 * cp.sum_squares(w),
        "onto_cross_polytope",
    ),
    "two expectations in one function": (
        "minimize mean[k in 0 .. 4] (E[z ~ D | z.g == k] (dot(w, z.x) - z.y)^2)"
        " + sum[k in 0 .. 4] pos(abs((E[z ~ D | z.g == k] dot(w, z.x)) - (E[z ~ D] dot(w, z.x)) - 0.3) - "
        "0.1);",
        gap,
        "clamp(-1, 0)",
    ),
    "distance to a ball": (
        "minimize mean[k in 0 .. 4] pos(norm2(E[z ~ D | z.g == k] (w - z.x * z.y)) - 0.3) + 0.05 * sumsq(w);",
        lambda cp, x, y, g, w: sum(
            cp.pos(cp.norm2(w - (p * q[:, None]).mean(0)) - 0.3) for p, q in zip(groups(x, g), groups(y, g), strict=True)
        ) / 5 + 0.05 * cp.sum_squares(w),
        "along_ray",
    ),
    "nuclear norm": (
        "minimize norm_nuc(E[z ~ D] outer(w - z.x, z.x)) + sumsq(w - 1);",
        lambda cp, x, y, g, w: (
            cp.normNuc(cp.reshape(w, (4, 1), order="C") @ x.mean(0)[None] - x.T @ x / len(x)) + cp.sum_squares(w - 1)
        ),
        "onto_spectral_ball",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVEX)
@pytest.mark.parametrize("algorithm", ["sonex"])
def test_optima(name: str, algorithm: str) -> None:
    cp = pytest.importorskip("cvxpy")
    body, twin, word = CONVEX[name]
    found, text = solved(body, algorithm)
    assert word in text[text.index("# ---- smoothing") :]
    data = table()["D"]
    w = cp.Variable(4)
    best = cp.Problem(cp.Minimize(twin(cp, data["x"], data["y"], data["g"], w))).solve(solver=cp.CLARABEL)
    assert found == pytest.approx(best, abs=2e-3 * max(1.0, abs(best)))


@pytest.mark.parametrize(("name", "word"), [("scad", "min(h.lam_y1, 1.35)"), ("mcp", "min(h.lam_y1, 1)")])
def test_weakly_convex_outer_functions(name: str, word: str) -> None:
    """No descent from the point found gains anything, and the prox is never asked for a lambda that is
    too large."""
    from scipy.optimize import minimize

    a = {"scad": 3.7, "mcp": 2.0}[name]
    body = (
        f"minimize E[z ~ D] (dot(w, z.x) - z.y)^2 + sum[k in 0 .. 4] {name}(E[z ~ D | z.g == k] "
        f"dot(w, z.x), {a}, 0.6);"
    )
    found, text = solved(body, "sonex")
    assert word in text
    data = table()["D"]
    means = np.stack([p.mean(0) for p in groups(data["x"], data["g"])])

    def penalty(u: np.ndarray) -> np.ndarray:
        u = np.abs(u)
        if name == "mcp":
            return np.where(u <= a * 0.6, 0.6 * u - u**2 / (2 * a), a * 0.18)
        bend = (2 * a * 0.6 * u - u**2 - 0.36) / (2 * (a - 1))
        return np.where(u <= 0.6, 0.6 * u, np.where(u <= a * 0.6, bend, 0.18 * (a + 1)))

    def objective(w: np.ndarray) -> float:
        return float(((data["x"] @ w - data["y"]) ** 2).mean() + penalty(means @ w).sum())

    start = np.linalg.lstsq(data["x"], data["y"], rcond=None)[0]
    starts = [start, np.zeros(4), -start]
    best = min(
        minimize(objective, w, method="Nelder-Mead", options={"maxiter": 20000, "fatol": 1e-10}).fun
        for w in starts
    )
    assert found <= best + 5e-3 * abs(best)
