"""What textbooks know of products, powers and averages: each rule with its claim, and the claim at
random points."""

from __future__ import annotations

from math import erf, exp, pi, sqrt

import numpy as np
import pytest
from support.claims import claims
from support.random_expressions import MODEL, data, value

from fccomodel import structure
from fccomodel.core import ir
from fccomodel.core.source import Source
from fccomodel.language.check import check
from fccomodel.language.parse import parse
from fccomodel.structure.facts import Facts

DECLARED = MODEL.partition("minimize")[0]
WIDE = DECLARED.format(**dict.fromkeys(("w", "u", "v", "p", "l", "q", "M"), ""))
#: expression -> (curvature, continuously differentiable, the rule that gives the curvature or the smoothness)
CLAIMS = {
    "l * log(l)": ("convex", True, "entropy"),
    "l * log(3 * l)": ("convex", True, "entropy"),
    "-2 * l * log(l)": ("concave", True, "scaling"),
    "sum(q * log(q))": ("convex", True, "entropy"),
    "sum(2 * q * log(q / 3))": ("convex", True, "entropy"),
    "dot(q, log(q))": ("convex", True, "entropy"),
    "(2 * l) * log(l / 2)": ("convex", True, "entropy"),
    "l * log(E[z ~ D] exp(z.t * u / l))": ("convex", True, "perspective"),
    "l * log(E[z ~ D] exp(square(dot(w, z.x) - z.t) / l))": ("convex", True, "perspective"),
    "l * (0.5 + log(E[z ~ D] exp(log1pexp(-z.y * dot(w, z.x)) / l)))": ("convex", True, "perspective"),
    "2 * l * square(u / l)": ("convex", True, "perspective"),
    "l * log(p / l + 1)": ("concave", True, "perspective"),
    "-log(1 - sigmoid(u))": ("convex", True, "affine argument"),
    "log(1 - normcdf(u))": ("concave", True, "affine argument"),
    "(u - 1) * (u + 3)": ("convex", True, "shifted square"),
    "(1 - u) * (u + 3)": ("concave", True, "shifted square"),
    "(square(u) - 1) * (square(u) + 1)": ("convex", True, "shifted square"),
    "(exp(u) - 1) * (1 + exp(u))": ("convex", True, "shifted square"),
    "(abs(u) - 1) * (abs(u) + 1)": ("convex", True, "radial"),
    "sum(w / 0.5 * (2 * w))": ("convex", True, "square"),
    "(2 * u - 6) * (3 - u)": ("concave", True, "square"),
    "(3 + 3 * abs(u)) * (1 + abs(u))": ("convex", False, "square"),
    "abs(u)^3": ("convex", True, "radial"),
    "abs(u - v)^1.5": ("convex", True, "radial"),
    "norm2(w)^3": ("convex", True, "radial"),
    "huber(norm2(w), b)": ("convex", True, "radial"),
    "sqrt(p * l)": ("concave", False, "geometric mean"),
    "sqrt(p) * sqrt(l)": ("concave", False, "geometric mean"),
    "(p * l * (1 + h))^(1/3)": ("concave", False, "geometric mean"),
    "p^0.3 * l^0.5 * 2": ("concave", False, "scaling"),
    "(E[z ~ D] square(u - z.t)) * (E[y ~ D] square(u - y.t))": ("convex", True, "square"),
    "(1 + E[z ~ D] abs(u - z.t)) * (1 + E[y ~ D] abs(u - y.t))": ("convex", False, "square"),
}
#: near misses: what each would be if a rule were applied where it must not be
REFUSED = [
    "u * log(1 + exp(v) + p)",
    "p * log(l)",
    "sum(q * log(1 + q))",
    "dot(q, log(q + w))",
    "h * square(u / l)",
    "l * square(u / (l + 1))",
    "l * (square(u / l) * u)",
    "l * log(E[z ~ D] exp(-square(u) / l))",
    "(square(u) - 3) * (square(u) + 1)",
    "(exp(u) - 1) * (exp(v) + 1)",
    "sqrt(u * v)",
    "p * sqrt(l)",
    "sqrt(square(u) * l)",
    "(E[z ~ D] square(u - z.t)) * (E[z ~ D] square(v - z.t))",
    "(E[z ~ D] (u - z.t)) * (E[z ~ D | z.y == 1] (u - z.t))",
]
DRAWN = {
    "E[e ~ normal(0, 1)] abs(u - e)": lambda at: 2 * _density(at["u"]) + at["u"] * (2 * _below(at["u"]) - 1),
    "E[e ~ normal(0, 1)] pos(log1pexp(u) + 2 * e)": lambda at: _hinge(float(np.logaddexp(0, at["u"])), 2.0),
    "E[e ~ normal(0, 1)] max(u - e, v + e)": lambda at: (
        float(at["v"]) + _hinge(float(at["u"] - at["v"]), 2.0)
    ),
    "E[e ~ uniform(0, 1)] pos(u - e)": lambda at: np.clip(at["u"], 0, 1) ** 2 / 2 + max(at["u"] - 1, 0),
}
KEPT = ["E[e ~ normal(0, 1)] abs(u * e)", "E[e ~ normal(0, 1)] abs(u)", "E[e ~ normal(0, a)] abs(u - e)",
        "E[e ~ bernoulli(0.5)] abs(u - e)", "E[e ~ normal(0, 1)] sqrt(abs(u - e))", "E[e ~ normal(0, 1)] step(u - e)",
        "E[e ~ normal(0, 1)] max(u - e, v - e)"]  # fmt: skip


def expression(text: str) -> tuple[ir.Problem, ir.Expr]:
    source = Source(text=f"{WIDE}minimize e: {text};")
    problem = check(parse(source), source)
    return problem, problem.objective.expr


def facts(text: str) -> Facts:
    problem, expr = expression(text)
    return structure.facts_of(expr, problem=problem)


def refuted(text: str, seed: int = 0) -> list[str]:
    """Claims of an expression, by its text and with data, that random points refute."""
    problem, expr = expression(text)
    bound, rng = data(problem, seed), np.random.default_rng(seed)
    known = [
        structure.facts_of(expr, problem=problem),
        structure.facts_of(expr, problem=problem, bound=bound),
    ]

    def f(at: dict) -> float:
        return float(value(expr, at, bound))

    return [wrong for found in known if not found.domain for wrong in claims(found, f, rng)]


def rules(found: Facts) -> set[str]:
    """The rules behind an expression's curvature and smoothness."""
    names, stack = set(), [found.below, found.above, found.differentiable]
    while stack:
        fact = stack.pop()
        names.add(fact.rule)
        stack.extend(fact.uses)
    return names


@pytest.mark.parametrize("text", CLAIMS)
def test_what_is_claimed(text: str) -> None:
    curvature, smooth, rule = CLAIMS[text]
    found = facts(text)
    assert (found.curvature, found.smooth) == (curvature, smooth)
    assert rule in rules(found)


@pytest.mark.parametrize("text", [*CLAIMS, *REFUSED])
def test_claims_survive_random_points(text: str) -> None:
    assert not [wrong for seed in range(4) for wrong in refuted(text, seed)]


@pytest.mark.parametrize("text", REFUSED)
def test_near_misses_are_not_taken(text: str) -> None:
    assert not facts(text).convex and not facts(text).concave


#: functions of a norm that leave the kink at 0 where it is
KINKED = ["pinball(norm2(w), 0.7)", "normcdf(norm2(w))", "pos(pos(u))", "sigmoid(abs(u))", "exp(abs(u))", "abs(u)^0.9",
          "log1pexp(norm2(w))", "huber(1 + norm2(w), b)", "square(1 + abs(u))", "huber(pos(u) - 1, b)"]  # fmt: skip


@pytest.mark.parametrize("text", KINKED)
def test_a_slope_at_0_keeps_the_kink(text: str) -> None:
    assert not facts(text).smooth and not [wrong for seed in range(4) for wrong in refuted(text, seed)]


def test_an_entropy_is_not_smooth_at_0() -> None:
    for text in ("p * log(p)", "2 * p * log(p)", "log(3 * p) * p"):
        assert facts(text).convex and not facts(text).smooth


def _density(x: float) -> float:
    return exp(-(float(x) ** 2) / 2) / sqrt(2 * pi)


def _below(x: float) -> float:
    return (1 + erf(float(x) / sqrt(2))) / 2


def _hinge(m: float, sd: float) -> float:
    """E max(0, m + sd e) of a standard normal e."""
    return m * _below(m / sd) + sd * _density(m / sd)


@pytest.mark.parametrize("text", DRAWN)
def test_kinks_under_a_density_are_passed_over(text: str) -> None:
    found, rng = facts(text), np.random.default_rng(0)
    assert found.smooth and "kinks under a density" in rules(found)
    assert not claims(found, lambda at: float(DRAWN[text](at)), rng)


@pytest.mark.parametrize("text", KEPT)
def test_kinks_that_draws_do_not_pass_over(text: str) -> None:
    assert not facts(text).smooth


def test_long_products_need_no_stack() -> None:
    terms = " + ".join(f"square(u - {k})" for k in range(500))
    assert facts(f"({terms}) * ({terms} + u)").below is not None
    assert facts(" * ".join(["(1 + square(u))"] * 200)).interval.value.lo >= 0
