"""Problems as LaTeX: brackets where they are needed, names, and every model of the repository in every
form."""

from __future__ import annotations

import re

import pytest
from support.places import ROOT, SHARED

import fccomodel
from fccomodel.app.cli import main
from fccomodel.app.shown.latex import FORMS
from fccomodel.language import latex, statements
from fccomodel.library import tex

PREFIX = "data R : table(a: real, b: real, x: real[3]); var x[3]; var t; var s; param mu default 1; "
CASES = {
    "(t + s) * s": r"\left(t + s\right)\, s",
    "t - (s - t)": r"t - \left(s - t\right)",
    "t - s - t": r"t - s - t",
    "-(t + s) * s": r"-\left(t + s\right)\, s",
    "t + -s": "t - s",
    "t - -s": r"t - \left(-s\right)",
    "(t*s)^2 + t^3": r"\left(t\, s\right)^{2} + t^{3}",
    "2 * (-t)": r"2\, \left(-t\right)",
    "exp(t) / (1 + s^2)": r"\frac{\exp\left(t\right)}{1 + s^{2}}",
    "sumsq(x) / 2": r"\frac{\left\lVert x \right\rVert_{2}^{2}}{2}",
    "norm2(x)^2": r"\left\lVert x \right\rVert_{2}^{2}",
    "mu * norm1(2 * x)": r"\mu\, \left\lVert 2\, x \right\rVert_{1}",
    "E[z ~ R | z.a >= 0] log1pexp(-z.b * t)":
        r"\mathbb{E}_{z \sim R \mid a_{z} \ge 0}\left[\log\left(1 + e^{-b_{z}\, t}\right)\right]",
    "(mean[z in R] z.a * t) + s": r"\operatorname*{mean}_{z \in R} a_{z}\, t + s",
    "mean[z in R] (z.a * t + s)": r"\operatorname*{mean}_{z \in R} \left(a_{z}\, t + s\right)",
    "cvar(tail = 0.1)[z in R] dot(z.x, x)": r"\operatorname{CVaR}_{0.1}^{z \in R}\left[x_{z}^{\top} x\right]",
    "x[2] + 1e-6 * t": r"x_{2} + 10^{-6}\, t",
    "E[u ~ normal(0, 1)] abs(t - u)":
        r"\mathbb{E}_{u \sim \mathrm{normal}\left(0, 1\right)}\left[\left\lvert t - u \right\rvert\right]",
}  # fmt: skip


@pytest.mark.parametrize("text", CASES)
def test_an_expression(text):
    problem = fccomodel.compile(f"{PREFIX} minimize {text} + t + s + sum(x);").compiled.problem
    (term, *_) = latex.LatexPrinter(problem)(problem.objective.expr).split(r" + t + s + \mathbf{1}")
    assert term == CASES[text]


def test_a_problem_with_its_constraints_and_quantities():
    text = """
        dim d; set G; data D : table(x: real[d], y: {0, 1}, g: G);
        set P = {z in D | z.y == 1}; param kappa default 0.1; var w[d] >= 0; var v[G] in simplex(G);
        let rate[k in G] = E[z ~ P | z.g == k] sigmoid(dot(w, z.x));
        maximize fit: E[z ~ P] dot(w, z.x) + sum[k in G] v[k]
        subject to
          gap[k in G]: kappa >= rate[k] - v[k];
          both: 0.1 <= sum(w) <= 0.9;
    """
    rows = statements.latex(fccomodel.compile(text).compiled.problem).splitlines()
    assert [row.strip().removesuffix(r" \\") for row in rows[1:-1]] == [
        r"\max_{w \in \mathbb{R}^{d},\; w \ge 0,\; v \in \Delta^{\lvert G \rvert}} \quad & "
        r"\mathbb{E}_{z \sim P}\left[w^{\top} x_{z}\right] + \sum_{k \in G} v_{k} && \text{(fit)}",
        r"\text{s.t.} \quad & \kappa \ge \mathrm{rate}_{k} - v_{k},\quad \forall\, k \in G && \text{(gap)}",
        r"& 0.1 \le \mathbf{1}^{\top} w && \text{(both.lower)}",
        r"& \mathbf{1}^{\top} w \le 0.9 && \text{(both.upper)}",
        r"\text{where} \quad & \mathrm{rate}_{k} = "
        r"\mathbb{E}_{z \sim P \mid g_{z} = k}\left[\sigma\left(w^{\top} x_{z}\right)\right]",
        r"& P = \left\{z \in D \mid y_{z} = 1\right\}",
    ]


MODELS = sorted(
    [*ROOT.glob("examples/**/*.fcco"), *ROOT.glob("tests/golden/facts/*.fcco"), *SHARED.glob("models/*.fcco")]
)


@pytest.mark.slow
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_every_model_is_mathematics(path):
    """Brackets match, and a converter to MathML takes every row."""
    from latex2mathml.converter import convert

    model = fccomodel.compile(path)
    for form in FORMS:
        text = model.latex(form)
        assert text.startswith("% ")
        for row in re.sub(r"^%.*|\\begin{align\*}|\\end{align\*}", "", text, flags=re.M).split(r"\\"):
            if not row.strip():
                continue
            assert row.count(r"\left") == row.count(r"\right") and balanced(row), row
            assert "math" in convert(row.replace("&", " "))


def balanced(text: str) -> bool:
    depth = 0
    for character in re.sub(r"\\[{}]", "", text):
        depth += (character == "{") - (character == "}")
        if depth < 0:
            return False
    return not depth


def test_names_and_numbers():
    assert [tex.name(text) for text in ("w", "mu", "lam", "w1", "own_rate", "x_2")] == [
        "w", r"\mu", r"\lambda", "w_{1}", r"\mathrm{own\_rate}", "x_{2}",
    ]  # fmt: skip
    assert [str(tex.number(v)) for v in (2.0, -0.5, 1e-7, 2.5e8, float("inf"))] == [
        "2", "-0.5", "10^{-7}", r"2.5 \cdot 10^{8}", r"\infty",
    ]  # fmt: skip


def test_the_command(capsys):
    assert main(["latex", str(ROOT / "examples" / "neyman_pearson.fcco"), "--form", "smoothed"]) == 0
    text = capsys.readouterr().out
    assert (
        text.count("align*") == 2
        and r"\mathcal{M}_{\lambda}\left\{\rho\, \left[" in text
        and "Moreau envelope" in text
    )
    assert main(["latex", str(ROOT / "examples" / "neyman_pearson.fcco")]) == 0
    assert capsys.readouterr().out.count(r"\begin{align*}") == 3


def test_notebooks_show_mathematics():
    model = fccomodel.compile("var t; minimize t^2;")
    assert model._repr_latex_().startswith(r"\begin{align*}") and "t^{2}" in model.bind()._repr_latex_()


def test_arrays_by_formula_are_their_entries():
    text = "model t; dim n; var x[n]; minimize f: sumsq(diff(x)); subject to up: x[2 .. n] >= ones(n - 1);"
    found = fccomodel.compile(text).latex()
    assert r"\left(x_{i + 1} - x_{i}\right)^{2}" in found
    assert r"x_{i + 1} \ge 1" in found
