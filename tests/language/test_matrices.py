"""Models of matrices: both notations, values, facts, conic forms, multipliers."""

import numpy as np
import pytest
import torch

import fccomodel as fc
from fccomodel import report, structure
from fccomodel.core.source import Source
from fccomodel.data.bind import bind
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.language.check import check
from fccomodel.language.parse import parse

N = 3
HEAD = """model t; dim n; data A : real[n, n]; data D : table(a: real[n]);
var P[n, n] in psd; var M[n, n]; var x[n]; var p[D] >= 0; var t;
let K[i in n, j in n] = x[i] * x[j] + (if i == j then 1 else 0);
"""
GRAM = "(sum[s in D] p[s] * outer(s.a, s.a))"


def problem_of(text: str):
    source = Source(text=text)
    return check(parse(source), source)


@pytest.fixture(scope="module")
def data() -> dict:
    rng = np.random.default_rng(0)
    return {"A": rng.normal(size=(N, N)), "D": {"a": rng.normal(size=(6, N))}}


def _gram(d: dict, p: torch.Tensor) -> torch.Tensor:
    a = torch.tensor(d["D"]["a"])
    return a.T @ (p[:, None] * a)


#: A formula, its value by torch, and its curvature.
CASES = {
    "logdet(P)": (lambda d, P, M, x, p: P.logdet(), "concave"),
    "logdet(P + 2 * eye(n))": (lambda d, P, M, x, p: (P + 2 * torch.eye(N)).logdet(), "concave"),
    f"trace(inv({GRAM}))": (lambda d, P, M, x, p: _gram(d, p).inverse().trace(), "convex"),
    f"lambda_min({GRAM})": (lambda d, P, M, x, p: torch.linalg.eigvalsh(_gram(d, p))[0], "concave"),
    "lambda_max(A @ P @ transpose(A))": (
        lambda d, P, M, x, p: torch.linalg.eigvalsh(torch.tensor(d["A"]) @ P @ torch.tensor(d["A"]).T)[-1],
        "convex",
    ),
    "matrix_frac(x, P)": (lambda d, P, M, x, p: x @ P.inverse() @ x, "convex"),
    "norm_spec(M - A)": (
        lambda d, P, M, x, p: torch.linalg.matrix_norm(M - torch.tensor(d["A"]), 2),
        "convex",
    ),
    "logdet(M)": (lambda d, P, M, x, p: M.det().abs().log(), "unknown"),
    "sum(inv(M) @ x)": (lambda d, P, M, x, p: torch.linalg.solve(M, x).sum(), "unknown"),
    "logdet(K)": (lambda d, P, M, x, p: (torch.outer(x, x) + torch.eye(N)).logdet(), "unknown"),
    "lambda_max([[t, x[1]], [x[1], x[2]]])": (
        lambda d, P, M, x, p: torch.linalg.eigvalsh(torch.tensor([[0.5, x[0]], [x[0], x[1]]]).double())[-1],
        "convex",
    ),
    "sum(inv(x))": (lambda d, P, M, x, p: (1 / x).sum(), "unknown"),
}


@pytest.mark.parametrize("formula", CASES)
def test_values_and_curvature(formula, data):
    problem = problem_of(f"{HEAD} minimize f: {formula};")
    bound = bind(problem, data=data)
    rng = np.random.default_rng(1)
    root = rng.normal(size=(N, N))
    point = {"P": root @ root.T, "M": rng.normal(size=(N, N)), "x": rng.normal(size=N), "t": np.array(0.5)}
    point |= {"p": rng.exponential(size=6)}
    at = {name: torch.tensor(value) for name, value in point.items()}
    expected, curvature = CASES[formula]
    value = Evaluator(bound, at).value(problem.objective.expr, {}).data
    assert float(value) == pytest.approx(float(expected(data, at["P"], at["M"], at["x"], at["p"])), rel=1e-9)
    assert structure.analyse(problem, bound).objective.curvature == curvature


LYAPUNOV = """model t; dim n; data A : real[n, n]; var P[n, n] in sym; minimize size: trace(P);
subject to falls: transpose(A) @ P + P @ A << -eye(n); positive: P >> 0.01 * eye(n);"""


@pytest.mark.slow
def test_a_matrix_inequality_and_its_multiplier():
    """Optimum and multiplier are those of CVXPY."""
    cp = pytest.importorskip("cvxpy")
    A = np.array([[-0.5, 2.0, 0.3], [-1.0, -0.7, 0.0], [0.2, 0.1, -1.5]])
    bound = bind(problem_of(LYAPUNOV), data={"A": A})
    P = cp.Variable((3, 3), symmetric=True)
    falls = A.T @ P + P @ A << -np.eye(3)
    cp.Problem(cp.Minimize(cp.trace(P)), [falls, P >> 0.01 * np.eye(3)]).solve(solver="CLARABEL")
    made = report.report(bound, {"P": P.value})
    assert made.solved and made.stationarity < 1e-5
    Z = np.array(made.matrices["falls"])
    assert np.allclose(Z, falls.dual_value, atol=1e-4)
    assert made.constraints["falls"].multiplier == pytest.approx(np.trace(Z), rel=1e-6)
    assert made.constraints["falls"].relation == "<<" and "largest" not in made.verdict


def test_both_notations_and_latex():
    m = fc.Model("t")
    m.n = fc.dim()
    m.A = fc.array(m.n, m.n)
    m.P = fc.var(m.n, m.n, domain=fc.sym)
    m.minimize(size=fc.trace(m.P))
    m.subject_to(falls=fc.transpose(m.A) @ m.P + m.P @ m.A << -fc.eye(m.n))
    m.subject_to(positive=m.P >> 0.01 * fc.eye(m.n))
    assert "falls: transpose(A) @ P + P @ A << -eye(n);" in str(m)
    chained = problem_of(LYAPUNOV.replace("positive: P >> 0.01 * eye(n)", "both: 0 << P << 9 * eye(n)"))
    assert [c.label for c in chained.constraints] == ["falls", "both.lower", "both.upper"]
    assert all(c.of_matrices for c in chained.constraints)
