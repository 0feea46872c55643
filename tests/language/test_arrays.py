"""Arrays by formula: their values, gradients, facts and errors, in both notations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.notations import goes_both_ways

import fccomodel as fc
from fccomodel import report as kkt
from fccomodel.core.source import Source
from fccomodel.data import bind
from fccomodel.language import check, parse

N, M, ROWS = 5, 4, 12
HEAD = """model t;
dim n;
dim m;
set K = {"a", "b", "c"};
data A : real[K, n];
data B : real[m, n];
data S : real[n, n];
data p : real[K];
data D : table(x: real[n], g: K);
var x[n];
var u[3];
const c = [1, 2, -3];
const C = [[1, 2, 3], [4, 5, 6]];
let r[k in K] = dot(A[k], x) - p[k];
let q = [k in K] -2 * r[k];
def spread(v) = norm2(v) + sum(v);
"""


@pytest.fixture(scope="module")
def data() -> dict:
    rng = np.random.default_rng(0)
    labels = np.array(["a", "b", "c"])
    rows = {"x": rng.normal(size=(ROWS, N)), "g": labels[rng.integers(0, 3, ROWS)]}
    return {
        "A": rng.normal(size=(3, N)),
        "B": rng.normal(size=(M, N)),
        "S": rng.normal(size=(N, N)),
        "p": rng.normal(size=3),
        "D": rows,
    }


def _place(d: dict) -> torch.Tensor:
    return torch.tensor((d["D"]["g"][:, None] == np.array(["a", "b", "c"])).argmax(axis=1))


def _norm(values: torch.Tensor) -> torch.Tensor:
    return torch.sqrt((values**2).sum())


#: A formula, and its value by torch from the data d, x, u and r.
CASES = {
    "sum([i in n] x[i]^2)": lambda d, x, u, r: (x**2).sum(),
    "norm2(r)": lambda d, x, u, r: _norm(r),
    "max(x) - min(u)": lambda d, x, u, r: x.max() - u.min(),
    "sumsq(u - [1, 2, 3])": lambda d, x, u, r: ((u - torch.tensor([1.0, 2.0, 3.0])) ** 2).sum(),
    "dot(c, u)": lambda d, x, u, r: u[0] + 2 * u[1] - 3 * u[2],
    "sumsq(C @ u)": lambda d, x, u, r: (
        (torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).double() @ u) ** 2
    ).sum(),
    "sumsq(C[2, ..] * u) + C[1, 3]": lambda d, x, u, r: ((torch.tensor([4.0, 5.0, 6.0]) * u) ** 2).sum() + 3,
    "norm1(x[2 .. n] - x[1 .. n - 1])": lambda d, x, u, r: (x[1:] - x[:-1]).abs().sum(),
    "sumsq(x[3 .. n])": lambda d, x, u, r: (x[2:] ** 2).sum(),
    "sumsq(x[2 .. 3] - [1, 2])": lambda d, x, u, r: (x[1] - 1) ** 2 + (x[2] - 2) ** 2,
    "norm1(diff(x))": lambda d, x, u, r: torch.diff(x).abs().sum(),
    "sumsq(diff(diff(x)))": lambda d, x, u, r: (torch.diff(x, n=2) ** 2).sum(),
    "sumsq(cumsum(x) - x)": lambda d, x, u, r: ((torch.cumsum(x, 0) - x) ** 2).sum(),
    "sumsq(B @ x - ones(m))": lambda d, x, u, r: ((d["B"] @ x - 1) ** 2).sum(),
    "dot(B @ ones(n), B @ x)": lambda d, x, u, r: d["B"].sum(1) @ (d["B"] @ x),
    "sumsq(S @ diag(x) @ ones(n) + zeros(n))": lambda d, x, u, r: ((d["S"] @ x) ** 2).sum(),
    "trace(S) * sumsq((S + eye(n)) @ x)": lambda d, x, u, r: (
        torch.trace(d["S"]) * ((d["S"] @ x + x) ** 2).sum()
    ),
    "sumsq(diag(S) * x)": lambda d, x, u, r: ((torch.diagonal(d["S"]) * x) ** 2).sum(),
    "dot(B[.., 2], B @ x)": lambda d, x, u, r: d["B"][:, 1] @ (d["B"] @ x),
    "E[z ~ D] r[z.g]^2": lambda d, x, u, r: (r[_place(d)] ** 2).mean(),
    "logsumexp(q)": lambda d, x, u, r: torch.logsumexp(-2 * r, 0),
    "sumsq(softmax(q) - p)": lambda d, x, u, r: ((torch.softmax(-2 * r, 0) - d["p"]) ** 2).sum(),
    "sumsq(sum[k in K] [i in n] A[k, i] * x[i])": lambda d, x, u, r: ((d["A"].sum(0) * x) ** 2).sum(),
    "sumsq([1] * x[1])": lambda d, x, u, r: x[0] ** 2,
    "max([z in D] dot(z.x, x))": lambda d, x, u, r: (d["D"]["x"] @ x).max(),
    "spread(r)": lambda d, x, u, r: _norm(r) + r.sum(),
    "spread([i in n] S[i, i] * x[i])": lambda d, x, u, r: (
        _norm(torch.diagonal(d["S"]) * x) + (torch.diagonal(d["S"]) * x).sum()
    ),
    "norm2([i in n] [j in m] B[j, i] * x[i])": lambda d, x, u, r: _norm(d["B"] * x),
    'norminf(transpose([i in n, k in K] A[k, i] * x[i])["b"])': lambda d, x, u, r: (
        (d["A"][1] * x).abs().max()
    ),
    "sumsq([i in n] (if i > 2 then x[i] else 2 * i))": lambda d, x, u, r: (x[2:] ** 2).sum() + 4 + 16,
    "sumsq([i in n] (i * x[i] - 2 * outer(x, u)[i, 1]))": lambda d, x, u, r: (
        (torch.arange(1, N + 1) * x - 2 * x * u[0]) ** 2
    ).sum(),
    "sum(max(r, 0) + pos(-r))": lambda d, x, u, r: r.abs().sum(),
    '([i in n] x[i]^2)[2] + q["a"]': lambda d, x, u, r: x[1] ** 2 - 2 * r[0],
}


#: Functions with kinks.
KINKED = ("max", "norm1", "norminf")


def report(text: str, data: dict, point: dict[str, np.ndarray]) -> kkt.KKTReport:
    """The report of a model at a point."""
    source = Source(text=text)
    return kkt.report(bind.bind(check.check(parse.parse(source), source), data=data), point)


@pytest.mark.parametrize("formula", CASES)
def test_values_and_gradients(formula: str, data: dict) -> None:
    """The objective is torch's number, and the stationarity the norm of autograd's gradient.

    Near a kink the stationarity is less: the report takes the best subgradient around the point.
    """
    rng = np.random.default_rng(1)
    point = {"x": rng.normal(size=N), "u": rng.normal(size=3)}
    found = report(f"{HEAD}minimize f: {formula} + 0 * sum(x) + 0 * sum(u);", data, point)
    x, u = (torch.tensor(point[name], requires_grad=True) for name in ("x", "u"))
    tensors = {name: torch.tensor(data[name]) for name in ("A", "B", "S", "p")}
    rows = {"x": torch.tensor(data["D"]["x"]), "g": data["D"]["g"]}
    expected = CASES[formula]({**tensors, "D": rows}, x, u, tensors["A"] @ x - tensors["p"])
    assert found.objective == pytest.approx(float(expected.detach()), rel=1e-11)
    if any(word in formula for word in KINKED):
        return
    gradients = torch.autograd.grad(expected, (x, u), allow_unused=True)
    norm = np.sqrt(sum(float((g**2).sum()) for g in gradients if g is not None))
    assert found.stationarity == pytest.approx(norm, rel=1e-9)


@pytest.mark.parametrize("formula", CASES)
def test_both_notations(formula: str) -> None:
    assert goes_both_ways(f"{HEAD}minimize f: {formula};")


def test_in_python(data: dict) -> None:
    m = fc.Model("t")
    m.n = fc.dim()
    m.S = fc.array(m.n, m.n)
    m.x = fc.var(m.n)
    m.c = fc.const(fc.vector([1, 2]))
    m.let(y=fc.vector(i * m.x[i] for i in m.n))
    total = fc.sumsq(m.y) + fc.sumsq(m.S[:, 1] - m.x) + fc.dot(m.c, m.x[fc.grid(2, 3)])
    m.minimize(f=total + fc.norm1(fc.diff(m.x)) + fc.sumsq(m.S @ fc.ones(m.n)))
    x = np.arange(1.0, N + 1)
    value = report(str(m), {"S": data["S"]}, {"x": x}).objective
    expected = np.sum((x * x) ** 2) + np.sum((data["S"][:, 0] - x) ** 2) + 2 + 6 + np.abs(np.diff(x)).sum()
    assert value == pytest.approx(expected + np.sum(data["S"].sum(axis=1) ** 2))


#: Formulas, and what is proved of them.
PROVED = {
    "norm2(r)": "convex",
    "logsumexp([k in K] -r[k])": "convex",
    "max([i in n] abs(x[i] - i))": "convex",
    "sumsq(cumsum(x) - [i in n] i)": "convex",
    "-sumsq(diff(x))": "concave",
    "dot([i in n] i, x)": "affine",
}


@pytest.mark.parametrize("formula", PROVED)
def test_facts(formula: str) -> None:
    explained = str(fc.compile(f"{HEAD}minimize f: {formula};").explain()).splitlines()
    line = next(line for line in explained if line.startswith("minimize f"))
    assert PROVED[formula] in line


def test_a_constraint_of_arrays_is_a_family(data: dict) -> None:
    """The projection on nondecreasing vectors is the isotonic regression."""
    text = "model t; dim n; data y : real[n]; var x[n]; minimize f: sumsq(x - y);"
    text += " subject to up: diff(x) >= zeros(n - 1); low: x[1 .. 2] >= [0, 0.5];"
    found = fc.compile(text).bind(y=np.array([1.0, -2.0, 3.0, 2.0, 5.0])).solve(seed=0)
    assert np.asarray(found.variables["x"]) == pytest.approx([0.5, 0.5, 2.5, 2.5, 5.0], abs=1e-5)


def test_total_variation_agrees_with_cvxpy() -> None:
    cvxpy = pytest.importorskip("cvxpy")
    y = np.random.default_rng(2).normal(size=30).cumsum()
    text = "model t; dim n; data y : real[n]; var x[n];"
    text += " minimize f: sumsq(x - y) + 2 * norm1(diff(x)) + norm2(x[2 .. n] - y[1 .. n - 1]);"
    found = fc.compile(text).bind(y=y).solve(seed=0)
    x = cvxpy.Variable(30)
    tv = 2 * cvxpy.norm1(cvxpy.diff(x)) + cvxpy.norm2(x[1:] - y[:-1])
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(x - y) + tv))
    assert found.objective == pytest.approx(problem.solve(), rel=1e-5)


def test_steps_on_an_array_over_rows(data: dict) -> None:
    """Steps of an emitted program on a member that a row's label picks."""
    rows = data["D"]
    text = "model t; dim n; set K; data D : table(x: real[n], v: real, g: K); var w[K, n];"
    text += (
        " let s[k in K, z in D] = dot(w[k], z.x); minimize f: E[z ~ D] (s[z.g, z] - z.v)^2 + 0.1 * sumsq(w);"
    )
    bound = {"D": {**rows, "v": rows["x"][:, 0]}}
    found = fc.compile(text).bind(**bound).solve(seed=0)
    plain = text.replace("s[z.g, z]", "dot(w[z.g], z.x)")
    assert found.objective == pytest.approx(fc.compile(plain).bind(**bound).solve(seed=0).objective, rel=1e-5)


def test_small_habits(data: dict) -> None:
    """``dim n = 2``, two variables in one statement, ``inf``, an unnamed range as a size."""
    text = (
        "dim k = 2; var a[k], b; var s[3] in simplex(1 .. 3); var e in box(-inf, 1); var g >= -inf, <= inf;"
    )
    text += " minimize f: sumsq(a - [1, 2]) + sum[i in k] (b - i)^2 + sumsq(s) + (e - 3)^2 + g^2;"
    found = fc.compile(text).bind().solve(seed=0)
    assert found.objective == pytest.approx(0.5 + 1 / 3 + 4, rel=1e-6)
    assert goes_both_ways(text + "\n")


@pytest.mark.parametrize(
    "formula",
    [
        "[[1, 2], [3, 4]][3, 1] * x[1]^2",
        "[[1, 2], [3, 4]][0, 1] * x[1]^2",
        "[5][3] * x[1]^2",
        "x[2 .. 3][3]^2",
        "([i in 1 .. 3] x[i])[5]^2",
        "([i in 3 .. 5] x[i])[1]^2",
    ],
)
def test_an_index_is_on_its_axis(formula: str) -> None:
    with pytest.raises(fc.FccoError, match="F0309"):
        fc.compile(f"var x[5]; minimize {formula};")


def test_a_function_slices_its_argument() -> None:
    text = "def f(v) = sum(v[1 .. 2]); var d[3] >= 1; minimize f(d)^2 + sumsq(d);"
    assert fc.compile(text).bind().solve(seed=0).objective == pytest.approx(4 + 3, abs=1e-5)


def test_lists_and_arrays_are_written_out_in_python() -> None:
    m = fc.Model("m")
    m.c = fc.const([1, 2, 3])
    m.x = fc.var(3, start=np.array([1.0, 2.0, 3.0]))
    m.minimize(fc.sumsq(m.x - m.c))
    assert "const c = [1, 2, 3];" in m.source.text and "start [1.0, 2.0, 3.0]" in m.source.text
    assert m.bind().solve(seed=0).variables["x"] == pytest.approx([1, 2, 3], abs=1e-6)
