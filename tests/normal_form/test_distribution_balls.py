"""Maxima over balls of distributions: values and gradients, optima, reports, notations, refusals."""

import cvxpy as cp
import numpy as np
import pytest
import torch

import fccomodel as fc
from fccomodel.evaluation.interpret.evaluator import Evaluator
from fccomodel.numerics import ball_maxima
from fccomodel.report.kinks.weights import SHAPES, WeightSet

HEAD = (
    "dim d; set G = 1 .. 4; data D : table(x: real[d], y: real, g: G); data p : real[G] > 0; "
    "param r > 0, < 1 default 0.1; var w[d]; "
    "let risk[k in G] = E[z ~ D | z.g == k] (dot(w, z.x) - z.y)^2; "
)
RNG = np.random.default_rng(1)
ROWS, GROUP, CENTRE = RNG.normal(size=(40, 3)), np.arange(40) % 4 + 1, RNG.dirichlet(np.ones(4))
Y = ROWS @ [1, 2, 3] + GROUP * ROWS[:, 0] + 0.5 * RNG.normal(size=40)
DATA = {"D": {"x": ROWS, "y": Y, "g": GROUP}, "p": CENTRE}
W = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
DIVERGENCES = {
    "kl": lambda q, p: cp.sum(cp.rel_entr(q, p)),
    "chi2": lambda q, p: cp.sum_squares(cp.multiply(q - p, 1 / np.sqrt(p))),
    "tv": lambda q, p: cp.norm1(q - p) / 2,
}
GENERATORS = {"kl": ball_maxima.KL, "chi2": ball_maxima.CHI2, "tv": ball_maxima.TV}


def ball(divergence: str, centre: str = "p") -> str:
    measure = f"norm1(q - {centre}) / 2" if divergence == "tv" else f"{divergence}(q, {centre})"
    return f"max[q in simplex(G) | {measure} <= r] sum[k in G] q[k] * risk[k]"


def largest(divergence: str, r: np.ndarray, p: np.ndarray, radius: float) -> float:
    q = cp.Variable(len(p), nonneg=True)
    conditions = [cp.sum(q) == 1, DIVERGENCES[divergence](q, p) <= radius]
    return cp.Problem(cp.Maximize(r @ q), conditions).solve(solver="CLARABEL")


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_maximisers_against_cvxpy(divergence: str) -> None:
    for radius in (0.01, 0.2, 0.7):
        r, p = RNG.normal(size=5), RNG.dirichlet(np.ones(5))
        weights = WeightSet(kind=GENERATORS[divergence], centre=tuple(p), radius=radius)
        q = weights.top(r[None])[0]
        assert q @ r == pytest.approx(largest(divergence, r, p, radius), abs=1e-6)
        near = weights.project(RNG.normal(size=(3, 5)))
        assert np.allclose(near.sum(-1), 1) and near.min() >= 0
        assert (SHAPES[weights.kind]._distance(weights, near) <= radius + 1e-12).all()


@pytest.mark.slow
@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_values_gradients_and_convexity(divergence: str) -> None:
    model = fc.compile(f"{HEAD} minimize {ball(divergence)};")
    assert "A convex problem" in str(model.explain())
    bound = model.bind(**DATA).bound

    def value(w: torch.Tensor) -> torch.Tensor:
        return Evaluator(bound, {"w": w}).value(bound.problem.objective.expr, {}).data

    losses = (ROWS @ W.numpy() - Y) ** 2
    risks = np.array([losses[k == GROUP].mean() for k in range(1, 5)])
    assert float(value(W)) == pytest.approx(largest(divergence, risks, CENTRE, 0.1), rel=1e-6)
    assert torch.autograd.gradcheck(value, W.clone().requires_grad_(True))


@pytest.mark.slow
@pytest.mark.parametrize(("divergence", "centre"), [("kl", "p"), ("chi2", "uniform(G)"), ("tv", "p")])
def test_optima_are_recognised(divergence: str, centre: str) -> None:
    """The report's weights prove the optimum, at a tie of risks too, which a large radius ends at."""
    bound = fc.compile(f"{HEAD} minimize {ball(divergence, centre)};").bind(**DATA, r=0.6)
    answer = bound.solve(budget="6s")
    assert answer.status == "solved"
    w, s = cp.Variable(3), cp.Variable()
    risks = cp.hstack([cp.sum_squares(ROWS[k == GROUP] @ w - Y[k == GROUP]) / 10 for k in range(1, 5)])
    if divergence == "chi2":
        value = s + np.sqrt(1.6) * cp.norm(cp.pos(risks - s)) / 2
    elif divergence == "tv":
        value = 0.6 * cp.max(risks) + 0.4 * s + CENTRE @ cp.pos(risks - s)
    else:
        value = cp.max(risks)  # a ball of this radius reaches a vertex
        assert largest("kl", np.eye(4)[3], CENTRE, 0.6) < 1 or -np.log(CENTRE.max()) < 0.6
    best = cp.Problem(cp.Minimize(value)).solve(solver="CLARABEL")
    if divergence != "kl":
        assert answer.objective == pytest.approx(best, rel=1e-5)
    else:
        assert answer.objective <= best * (1 + 1e-6)


@pytest.mark.slow
def test_a_family_of_balls() -> None:
    """Each member has a centre and a radius of its own."""
    text = (
        "dim n; set T = 1 .. 2; set K = 1 .. 2; data p : real[T, K] > 0; data r : real[T] in [0.01, 0.9]; "
        "data M : real[T, K, n]; var x[n]; minimize sumsq(x) - 3 * x[1] - x[2]; subject to "
        "c[t in T]: max[q in simplex(K) | chi2(q, p[t]) <= r[t]] dot(q, M[t] @ x) <= 0.3;"
    )
    p, r, M = RNG.dirichlet(np.ones(2), 2), np.array([0.1, 0.5]), RNG.normal(size=(2, 2, 2))
    answer = fc.compile(text).bind(p=p, r=r, M=M).solve(budget="1s")
    x, s = cp.Variable(2), cp.Variable(2)
    bounds = [
        s[t] + np.sqrt(1 + r[t]) * cp.norm(cp.multiply(np.sqrt(p[t]), cp.pos(M[t] @ x - s[t]))) <= 0.3
        for t in range(2)
    ]
    best = cp.Problem(cp.Minimize(cp.sum_squares(x) - 3 * x[0] - x[1]), bounds).solve(solver="CLARABEL")
    assert answer.objective == pytest.approx(best, rel=1e-5)


@pytest.mark.slow
def test_the_least_mean_is_maximised() -> None:
    head = "dim n; set G = 1 .. 4; data p : real[G] > 0; data M : real[G, n]; var x[n] in simplex(n); "
    data, found = {"p": CENTRE, "M": RNG.normal(size=(4, 2))}, []
    for text in (
        "maximize min[{}] dot(q, M @ x) - sumsq(x);",
        "minimize max[{}] dot(q, (-M) @ x) + sumsq(x);",
    ):
        model = fc.compile(head + text.format("q in simplex(G) | chi2(q, p) <= 0.2"))
        answer = model.bind(**data).solve(budget="1s")
        assert answer.status == "solved"
        found.append(answer.objective)
    assert found[0] == pytest.approx(-found[1], rel=1e-6)


def refused(text: str, **data: object) -> str:
    with pytest.raises(fc.FccoError) as caught:
        fc.compile(HEAD + text).bind(**{**DATA, **data}).solve(budget="1it")
    return str(caught.value)


@pytest.mark.parametrize(
    "condition", ["kl(q, p) <= 0 * r", "q[1] <= 0.5", "norm1(q - p) <= 3", "kl(p, q) <= r", "kl(q, p) >= r"]
)
def test_other_conditions_are_refused(condition: str) -> None:
    text = f"minimize max[q in simplex(G) | {condition}] sum[k in G] q[k] * risk[k];"
    assert "F0602" in refused(text)


def test_a_ball_is_not_to_be_large() -> None:
    assert "F0601" in refused(f"maximize {ball('kl')};")


def test_the_centre_is_a_distribution() -> None:
    assert "its entries sum to 2" in refused(f"minimize {ball('tv')};", p=2 * CENTRE)


def test_notations() -> None:
    model = fc.Model.parse(f"{HEAD} minimize {ball('tv')};")
    names: dict[str, object] = {}
    exec(model.to_python(), names)
    assert any(str(one) == str(model) for one in names.values() if type(one) is type(model))
    assert r"_{1}}{2}" in fc.compile(f"{HEAD} minimize {ball('tv')};").latex()
