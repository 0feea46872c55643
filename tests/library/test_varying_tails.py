"""Tails whose share or number depends on an index: values, gradients, optima, notations, refusals."""

import cvxpy as cp
import numpy as np
import pytest
import torch

import fccomodel as fc
from fccomodel.evaluation.interpret.evaluator import Evaluator

HEAD = (
    "dim d; set K = 1 .. 3; data D : table(x: real[d], y: real, g: K, n: int); "
    "data al : real[K]; data m : real[K]; var w[d]; "
)
RNG = np.random.default_rng(0)
ROWS, GROUP, NUMBER = RNG.normal(size=(40, 3)), RNG.integers(1, 4, 40), RNG.integers(1, 4, 40)
Y = ROWS @ [1, 2, 3] + RNG.normal(size=40)
SHARES, NUMBERS = np.array([0.1, 0.25, 0.5]), np.array([1.0, 4.0, 9.0])
DATA = {"D": {"x": ROWS, "y": Y, "g": GROUP, "n": NUMBER}, "al": SHARES, "m": NUMBERS}
W = np.array([0.5, 1.0, 2.0])
U = (ROWS @ W - Y) ** 2


def top(elements: np.ndarray, k: float) -> float:
    """The mean of the k largest elements."""
    share = np.clip(k - np.arange(len(elements)), 0, 1)
    return np.sort(elements)[::-1] @ share / share.sum()


@pytest.mark.parametrize(
    ("formula", "closed"),
    [
        ("sum[k in K] cvar(tail = al[k])[z ~ D] (dot(w, z.x) - z.y)^2", sum(top(U, 40 * a) for a in SHARES)),
        ("sum[k in K] topk(k = m[k])[z in D] (dot(w, z.x) - z.y)^2", sum(top(U, k) for k in NUMBERS)),
        (
            "max[k in K] cvar(tail = al[k])[z ~ D | z.g == k] (k * (dot(w, z.x) - z.y)^2)",
            max(k * top(U[k == GROUP], SHARES[k - 1] * (k == GROUP).sum()) for k in (1, 2, 3)),
        ),
        ("sum[k in K] topk(k = k)[i in d] w[i]", 2 + 1.5 + 3.5 / 3),
        (
            "E[z ~ D] topk(k = z.n)[i in d] (w[i] * z.x[i])",
            np.mean([top(x * W, k) for x, k in zip(ROWS, NUMBER, strict=True)]),
        ),
    ],
)
def test_values_and_gradients(formula: str, closed: float) -> None:
    bound = fc.compile(f"{HEAD} minimize risk: {formula};").bind(**DATA).bound

    def value(w: torch.Tensor) -> torch.Tensor:
        return Evaluator(bound, {"w": w}).value(bound.problem.objective.expr, {}).data

    assert float(value(torch.tensor(W))) == pytest.approx(closed, rel=1e-12)
    assert torch.autograd.gradcheck(value, torch.tensor(W, requires_grad=True))


@pytest.mark.slow
def test_optimum_and_report() -> None:
    """Bounds of a family of tails, each with a share of its own, against CVXPY."""
    text = (
        "maximize gain: sum(w) subject to risk[k in K]: cvar(tail = al[k])[z ~ D] dot(w, z.x) <= m[k]; "
        "size: sumsq(w) <= 9;"
    )
    found = fc.compile(HEAD + text).bind(**DATA).solve(budget="6s")
    w = cp.Variable(3)
    risks = [cp.cvar(ROWS @ w, 1 - a) <= m for a, m in zip(SHARES, NUMBERS, strict=True)]
    best = cp.Problem(cp.Maximize(cp.sum(w)), [*risks, cp.sum_squares(w) <= 9])
    best.solve()
    assert found.objective == pytest.approx(best.value, rel=1e-6)
    assert found.status == "solved"


def test_shares_beyond_their_domain_are_refused_with_the_data() -> None:
    model = fc.compile(f"{HEAD} minimize risk: sum[k in K] cvar(tail = al[k])[z ~ D] dot(w, z.x)^2;")
    with pytest.raises(fc.FccoError, match="al"):
        model.bind(**{**DATA, "al": np.array([0.1, 0.0, 1.0])}).solve(budget="1it")


def test_python_notation() -> None:
    text = "minimize risk: sum[k in K] topk(k = m[k])[z in D] (dot(w, z.x) - z.y)^2;"
    model = fc.Model.parse(HEAD + text)
    names: dict[str, object] = {}
    exec(model.to_python(), names)
    assert any(str(one) == str(model) for one in names.values() if type(one) is type(model))
    assert "m_{k}" in fc.compile(HEAD + text).latex()


def test_members_of_a_family_keep_lists_of_their_own() -> None:
    """Rows listed for one member are not those of another, where each is named alone."""
    bound = fc.compile(
        f"{HEAD} let risk[k in K] = E[z ~ D | z.g == k] (dot(w, z.x) - z.y)^2; "
        "minimize max(risk[1], risk[2], risk[3]);"
    ).bind(**DATA)
    value = Evaluator(bound.bound, {"w": torch.tensor(W)}).value(bound.bound.problem.objective.expr, {})
    assert float(value.data) == pytest.approx(max(U[k == GROUP].mean() for k in (1, 2, 3)))
