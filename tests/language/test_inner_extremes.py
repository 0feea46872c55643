"""Maxima and minima over balls and boxes are their closed forms."""

import itertools

import cvxpy as cp
import numpy as np
import pytest
import torch

import fccomodel as fc
from fccomodel.core import ir
from fccomodel.core.source import Source
from fccomodel.data.bind import bind
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.language.check import check
from fccomodel.language.parse import parse

HEAD = "dim d; data D : table(x: real[d], y: {-1, 1}); data A : real[d, d]; data e : real[d]; var w[d];"
RNG = np.random.default_rng(0)
DATA = {
    "D": {"x": RNG.normal(size=(6, 3)), "y": np.array([1, -1, 1, 1, -1, -1])},
    "A": RNG.normal(size=(3, 3)),
    "e": RNG.uniform(0.1, 1, 3),
}
A, E = DATA["A"], DATA["e"]
W = RNG.normal(size=3)
CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
SPHERE = RNG.normal(size=(20_000, 3))
SPHERE /= np.linalg.norm(SPHERE, axis=1, keepdims=True)
#: Points that hold the extremes, exactly or nearly, of monotone functions of affine numbers over a set.
POINTS = {
    "ball(0.5)": (0.5 * SPHERE, 1e-2),
    "ball1(0.5)": (0.5 * np.vstack([np.eye(3), -np.eye(3)]), 1e-12),
    "box(-e, e)": (CORNERS * E, 1e-12),
    "box(-0.2, 1)": (0.4 + 0.6 * CORNERS, 1e-12),
}


def value(text: str) -> float:
    """The value of a formula at W."""
    source = Source(text=f"{HEAD} minimize {text};")
    problem = check(parse(source), source)
    at = {name: torch.tensor(W) for name in problem.variables}
    return float(Evaluator(bind(problem, data=DATA), at).value(problem.objective.expr, {}).data)


def softplus(t):
    return np.logaddexp(0, t)


@pytest.mark.parametrize("where", POINTS)
@pytest.mark.parametrize(
    ("extreme", "text", "loss"),
    [
        ("max", "log1pexp(-z.y * dot(w, z.x + u))", lambda x, y, u: softplus(-y * ((x + u) @ W))),
        ("min", "log1pexp(-z.y * dot(w, z.x + u))", lambda x, y, u: softplus(-y * ((x + u) @ W))),
        ("max", "exp(sum(u * w) / 2 - z.y)", lambda x, y, u: np.exp(u @ W / 2 - y)),
        ("max", "hinge(1 - z.y * w @ (z.x + A @ u))", lambda x, y, u: (1 - y * ((x + u @ A.T) @ W)).clip(0)),
        ("min", "(u @ A @ w - z.y * sum[i in d] u[i] * w[i])", lambda x, y, u: u @ A @ W - y * (u @ W)),
        ("max", "max(dot(w, z.x - u), 0) ", lambda x, y, u: ((x - u) @ W).clip(0)),
    ],
)
def test_closed_forms_are_the_extremes_over_many_points(where, extreme, text, loss) -> None:
    points, near = POINTS[where]
    found = value(f"E[z ~ D] {extreme}[u in {where}] {text}")
    pick, sign = (np.max, 1) if extreme == "max" else (np.min, -1)
    rows = zip(DATA["D"]["x"], DATA["D"]["y"], strict=True)
    expected = np.mean([pick(loss(x, y, points)) for x, y in rows])
    assert -1e-12 <= sign * (found - expected) <= near * (1 + abs(expected))


@pytest.mark.parametrize("text", ["abs(dot(w, z.x + u) - z.y)", "(dot(w, z.x + 2 * u) - z.y)^2"])
def test_even_functions_of_symmetric_sets(text: str) -> None:
    found = value(f"E[z ~ D] max[u in box(-e, e)] {text}")
    twice = 2 if "^" in text else 1
    misses = np.abs(DATA["D"]["x"] @ W - DATA["D"]["y"]) + twice * E @ np.abs(W)
    assert found == pytest.approx(np.mean(misses**twice), rel=1e-12)


def test_what_a_closed_form_adds_has_the_text_of_the_maximum() -> None:
    source = Source(text=f"{HEAD} minimize E[z ~ D] max[u in box(-e, e)] log1pexp(dot(w, z.x + u));")
    problem = check(parse(source), source)
    added = [node for node in problem.expressions(ir.Apply) if node.op in ("abs", "norm1", "dot")]
    assert {"abs"} < {node.op for node in added} and all(map(problem.text, added))


@pytest.mark.slow
def test_a_robust_classifier_is_cvxpys() -> None:
    """The model is proved convex, and its optimum is that of the closed form."""
    text = f"{HEAD} minimize E[z ~ D] max[u in ball(0.3)] log1pexp(-z.y * dot(w, z.x + u)) + 0.1 * sumsq(w);"
    compiled = fc.compile(text)
    bound = compiled.bind(**DATA)
    assert "A convex problem" in str(bound.explain())
    result = bound.solve(budget="2s")
    w = cp.Variable(3)
    margins = cp.multiply(DATA["D"]["y"], DATA["D"]["x"] @ w)
    worst = cp.logistic(-margins + 0.3 * cp.norm2(w))
    peer = cp.Problem(cp.Minimize(cp.sum(worst) / 6 + 0.1 * cp.sum_squares(w))).solve()
    assert result.objective == pytest.approx(peer, rel=1e-5)


def test_a_radius_is_checked_when_it_comes_with_the_data() -> None:
    compiled = fc.compile(f"{HEAD} minimize sumsq(w) + max[u in box(-e, e)] dot(w, u);")
    compiled.bind(**DATA)
    with pytest.raises(fc.FccoError, match="needs a value in"):
        compiled.bind(**{**DATA, "e": -E})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max[u in ball(1)] sumsq(w + u) * dot(w, u)", "no closed form"),
        ("max[u in ball(1)] (exp(dot(w, u)) + exp(-dot(w, u)))", "no closed form"),
        ("max[u in box(0, 1)] (dot(w, u) - 1)^2", "no closed form"),
        ("max[u in ball(1)] norm2(w + u)", "no closed form"),
        ("max[u in ball(1)] logsumexp(w - u)", "no closed form"),
        ("min[u in box(-e, e)] norm1(w + e * u)", "no closed form"),
        ("max[u in box(0, inf)] dot(w, u)", "no closed form"),
        ("max[u in ball(1) | u[1] > 0] dot(w, u)", "under a condition"),
        ("sum[u in ball(1)[d]] dot(w, u)", "ranges over a ball"),
        ("max[u in ball(1)[d], k in d] dot(w, u)", "ranges over a ball"),
        ("max[u in ball(1)] exp(u)", "has no size"),
        ("max[u in ball(w[1])] dot(w, u)", "not fixed"),
    ],
)
def test_what_has_no_closed_form_says_so(text: str, message: str) -> None:
    with pytest.raises(fc.FccoError, match=message):
        fc.compile(f"{HEAD} minimize {text};")


def test_python_says_the_same() -> None:
    m = fc.Model("robust")
    m.d = fc.dim()
    m.D = fc.table(x=fc.real[m.d], y={-1, 1})
    m.w = fc.var(m.d)
    m.minimize(
        fc.E(fc.max(fc.log1pexp(-z.y * fc.dot(m.w, z.x + u)) for u in fc.ball(0.3)) for z in m.D)
        + fc.max(fc.dot(m.w, u) for u in fc.box(-1, 1)[m.d])
    )
    assert "max[u in ball(0.3)] log1pexp(-z.y * dot(w, z.x + u))" in str(m)
    assert "max[u in box(-1, 1)[d]] dot(w, u)" in str(m)
    assert fc.compile(str(m)).explain()
