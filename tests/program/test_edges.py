"""Problems that are not finite, or have no finite slope, where runs start or end: at edges of domains;
and constraints of which nothing is left."""

from __future__ import annotations

import numpy as np
import pytest

import fccomodel

#: text -> the optimum, where there is one, of x
EDGES = {
    "var x; minimize max(x^2, -x^2 + 0 * x);": 0.0,
    "var x >= 0; minimize sqrt(x);": 0.0,
    "var x <= 2; minimize sqrt(2 - x);": 2.0,
    "var x >= 0; minimize x - sqrt(x);": 0.25,
    "var x >= 0; minimize x*log(x);": np.exp(-1),
    "var x >= 0; minimize 1/x + x;": 1.0,
    "var x >= 0; minimize x - log(x);": 1.0,
    "var x >= 0; maximize log(x) - x^2;": np.sqrt(0.5),
    "var x >= 0, <= 1; minimize -log(x) - log(1 - x);": 0.5,
    "var x; minimize -log(x) - log(1 - x);": 0.5,
    "var x >= 0; minimize x - log(x + 1e-12);": 1.0,
    "var x; minimize -log(1 - x^2);": 0.0,
    "var x; minimize (x - 1)^2 - sqrt(x - 3);": 3.01538732,
    "var x >= 0; minimize (x - 2)^2; subject to log(x) <= 0;": 1.0,
    "var x >= 0; minimize x; subject to 1/x <= 2;": 0.5,
    "var x >= 0; minimize x; subject to sqrt(x) >= 2;": 4.0,
    "var x[3] in simplex; minimize kl(x, x) + sumsq(x);": np.full(3, 1 / 3),
    "var x[3] >= 0; minimize sum[i in {1, 2, 3}] x[i]*log(x[i]) + sum(x);": np.full(3, np.exp(-2)),
}


@pytest.mark.parametrize("text", EDGES)
def test_edges_of_domains(text: str) -> None:
    found = fccomodel.compile(text).solve()
    assert found.report.verdict.startswith("Solved") and found.variables["x"] == pytest.approx(
        EDGES[text], abs=1e-5
    )


def test_what_has_no_optimum_is_not_solved() -> None:
    assert "No solution is attained" in fccomodel.compile("var x >= 0; minimize 1/x;").solve().report.verdict


@pytest.mark.parametrize(
    ("text", "optimum"),
    [
        ("var x; minimize (x - 1)^2; subject to 0*x <= 1;", 1.0),
        ("var x; minimize (x - 1)^2; subject to c: x - x <= 1;", 1.0),
        ("var x; minimize (x - 1)^2; subject to 1e9*x >= 1e9;", 1.0),
        ("param a default 2; var x; minimize (x - 1)^2; subject to a <= 3;", 1.0),
        ("param a default 2; var x; minimize (x - 1)^2; subject to (a - 2) * exp(x) <= 3;", 1.0),
        (
            "set I = {1, 2, 3}; var x[I]; minimize sumsq(x); subject to t[i in I]: (i - 1)*x[i] >= i - 1;",
            [0.0, 1.0, 1.0],
        ),
    ],
)
def test_constraints_that_nothing_is_left_of(text: str, optimum: float | list[float]) -> None:
    found = fccomodel.compile(text).solve()
    assert found.report.verdict.startswith("Solved") and found.variables["x"] == pytest.approx(
        optimum, abs=1e-5
    )


def test_a_start_at_an_edge_is_left_in_every_loop() -> None:
    """Of blocks and of vectors: rows whose logarithms are not defined at zero."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 1.5, (200, 3))
    text = "dim d; data D : table(x: real[d]); var w[d]; minimize sum(w) - E[z ~ D] log(dot(w, z.x));"
    bound = fccomodel.compile(text).bind(data={"D": {"x": x}})
    for algorithm in ("sonex", "nasa"):
        found = bound.solve(algorithm=algorithm, budget="2000it", unverified=True)
        assert found.report.epsilon < 1e-4 and found.variables["w"].sum() == pytest.approx(1.0, abs=1e-3)
