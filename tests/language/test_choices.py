"""Conditions as numbers, ``if``, ``in`` with a list, functions of families: what they mean, in both notations."""

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

ROWS = 60
HEAD = """model t;
dim d;
set G = {"a", "b"};
data D : table(x: real[d], y: {-1, 0, 1}, v: real, g: G);
var w[d];
"""


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return {
        "x": rng.normal(size=(ROWS, 3)),
        "y": rng.integers(-1, 2, ROWS),
        "v": rng.normal(size=ROWS),
        "g": np.array(["a", "b"])[rng.integers(0, 2, ROWS)],
    }


def report(text: str, data: dict, w: np.ndarray) -> kkt.KKTReport:
    """The report of a model at a point."""
    source = Source(text=text)
    bound = bind.bind(check.check(parse.parse(source), source), data={"D": data})
    return kkt.report(bound, {"w": w})


def objective(formula: str, data: dict, w: np.ndarray) -> float:
    """The value of an objective at a point."""
    return report(f"{HEAD}minimize f: {formula};", data, w).objective


#: A formula, and its value by NumPy from the data and the scores u = x w.
CASES = {
    'E[z ~ D] ((z.y == 1) * dot(w, z.x) + 2 * (z.g == "a"))': lambda d, u: np.mean(
        (d["y"] == 1) * u + 2 * (d["g"] == "a")
    ),
    "E[z ~ D] (if z.v > 0 then log(z.v) * dot(w, z.x) else 1 - dot(w, z.x))": lambda d, u: np.mean(
        np.where(d["v"] > 0, np.log(np.abs(d["v"])) * u, 1 - u)
    ),
    'E[z ~ D] pos(if z.g == "a" then 1 - dot(w, z.x) else 2 + dot(w, z.x))': lambda d, u: np.mean(
        np.maximum(np.where(d["g"] == "a", 1 - u, 2 + u), 0)
    ),
    "E[z ~ D | z.y in {-1, 1}] dot(w, z.x)^2": lambda d, u: np.mean(u[d["y"] != 0] ** 2),
    "E[z ~ D | z.v in 0 .. 2] dot(w, z.x)": lambda d, u: np.mean(u[(d["v"] >= 0) & (d["v"] <= 2)]),
    '(E[z ~ D] (z.y == 1 and not z.g == "b")) * sumsq(w)': lambda d, u: np.mean(
        (d["y"] == 1) & (d["g"] != "b")
    ),
    "(if 1 < 2 then 3 else 4) * sumsq(w)": lambda d, u: 3.0,
}


@pytest.mark.parametrize("formula", CASES)
def test_values(formula: str, data: dict) -> None:
    w = np.array([1.0, -2.0, 0.5])
    if "sumsq" in formula:
        w = np.array([1.0, 0.0, 0.0])
    expected = CASES[formula](data, data["x"] @ w)
    assert objective(formula, data, w) == pytest.approx(expected, rel=1e-12)


def test_a_program_takes_the_same_choice(data: dict) -> None:
    """The answer of a solve, whose steps are emitted, is that of the sums written out."""
    chosen = 'E[z ~ D] (if z.g == "a" then (dot(w, z.x) - 1)^2 else 3 * (dot(w, z.x) + z.v)^2)'
    first = '(sum[z in D | z.g == "a"] (dot(w, z.x) - 1)^2)'
    second = '(sum[z in D | z.g == "b"] 3 * (dot(w, z.x) + z.v)^2)'
    answers = [
        fc.compile(f"{HEAD}minimize f: {text};").bind(D=data).solve(seed=0, budget="300it")
        for text in (chosen, f"({first} + {second}) / {ROWS}")
    ]
    assert answers[0].objective == pytest.approx(answers[1].objective, rel=1e-8)


@pytest.mark.parametrize("formula", CASES)
def test_both_notations(formula: str) -> None:
    assert goes_both_ways(f"{HEAD}minimize f: {formula};")


def test_in_python(data: dict) -> None:
    m = fc.Model("t")
    m.d = fc.dim()
    m.D = fc.table(x=fc.real[m.d], y={-1, 0, 1}, v=fc.real)
    m.w = fc.var(m.d)
    m.minimize(f=fc.E(fc.if_else(z.y == 1, fc.dot(m.w, z.x), 0) + 2 * (z.y == 0) for z in m.D))
    columns = {name: data[name] for name in ("x", "y", "v")}
    value = report(str(m), columns, np.ones(3)).objective
    u = data["x"].sum(axis=1)
    assert value == pytest.approx(np.mean(np.where(data["y"] == 1, u, 0) + 2 * (data["y"] == 0)))


def test_a_choice_is_as_convex_as_its_branches() -> None:
    text = "E[z ~ D] (if z.y == 1 then pos(1 - dot(w, z.x)) else (dot(w, z.x) - z.v)^2)"
    explanation = fc.compile(f"{HEAD}minimize f: {text};").explain()
    assert "convex" in str(explanation).splitlines()[2]


def test_pi_is_a_number_unless_the_model_has_the_name(data: dict) -> None:
    w = np.array([1.0, 0.0, 0.0])
    assert objective("pi * sumsq(w)", data, w) == pytest.approx(np.pi)
    text = HEAD + "const pi = 3;\nminimize f: pi * sumsq(w);"
    assert report(text, data, w).objective == pytest.approx(3.0)


def test_gradients_of_a_choice(data: dict) -> None:
    """The stationarity of the report at a point is the norm of autograd's gradient in float64."""
    text = 'E[z ~ D] (if z.g == "a" then log1pexp(dot(w, z.x)) else z.v * dot(w, z.x)^2)'
    point = np.array([0.3, -0.2, 0.1])
    found = report(f"{HEAD}minimize f: {text};", data, point)
    w = torch.tensor(point, requires_grad=True)
    u = torch.tensor(data["x"]) @ w
    inside = torch.where(
        torch.tensor(data["g"] == "a"), torch.nn.functional.softplus(u), torch.tensor(data["v"]) * u**2
    )
    inside.mean().backward()
    assert found.stationarity == pytest.approx(float(w.grad.norm()), rel=1e-9)


# ------------------------------------------------------------------------------ functions of families
MEMBERS = "param lam[G] default 2;\nlet r[k in G] = E[z ~ D | z.g == k] (dot(w, z.x) - z.v);\n"
#: A function of the family r, and its value from the members.
WHOLE = {
    "sum(r)": np.sum,
    "mean(r)": np.mean,
    "max(r)": np.max,
    "min(r)": np.min,
    "sumsq(r)": lambda r: np.sum(r**2),
    "norm1(r)": lambda r: np.sum(np.abs(r)),
    "norminf(r)": lambda r: np.max(np.abs(r)),
    "dot(lam, r)": lambda r: 2 * np.sum(r),
    "dot(r, r)": lambda r: np.sum(r**2),
    "max(pos(r - 0.1) + lam * r)": lambda r: np.max(np.maximum(r - 0.1, 0) + 2 * r),
    "sum(-r)": lambda r: -np.sum(r),
}


@pytest.mark.parametrize("formula", WHOLE)
def test_functions_of_families(formula: str, data: dict) -> None:
    w = np.array([1.0, -2.0, 0.5])
    found = report(f"{HEAD}{MEMBERS}minimize f: {formula} + 0 * w[1];", data, w).objective
    score = data["x"] @ w - data["v"]
    members = np.array([score[data["g"] == label].mean() for label in ("a", "b")])
    assert found == pytest.approx(WHOLE[formula](members), rel=1e-12)
