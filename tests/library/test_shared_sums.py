"""Sums that an expression uses several times take time in proportion to what is written, not to what it
means when written out."""

from __future__ import annotations

import time

import pytest

import fccomodel
from fccomodel.library import identities, linear

#: What each level is of the one before, which it uses twice: written out, 24 levels have 16 million terms.
LEVELS = [
    "{a} + {a}",
    "2 * {a} - {a}",
    "{a} * {a}",
    "max({a}, 2 * {a})",
    "exp(-{a}) + {a}",
    "{a} / (1 + {a}^2)",
]


@pytest.mark.parametrize("form", LEVELS)
def test_a_chain_of_lets_is_explained(form: str) -> None:
    levels = " ".join(f"let a{k} = {form.format(a=f'a{k - 1}')};" for k in range(1, 25))
    text = f"var x; var y; let a0 = 0.1 * x + 0.1 * y; {levels} minimize (a24 - 1)^2;"
    began = time.process_time()
    assert str(fccomodel.compile(text).bind().explain())
    assert time.process_time() - began < 15


def test_like_terms_are_collected() -> None:
    levels = " ".join(f"let a{k} = a{k - 1} + a{k - 1};" for k in range(1, 10))
    text = f"var x; var y; let a0 = x - 2 * y / 4; {levels} minimize a9 - y;"
    problem = fccomodel.compile(text).bind().compiled.problem
    expr = identities.after(problem, identities.all()["inlined_let"]).objective.expr
    found = linear.terms(expr)
    values: dict[str, float] = {}
    for term in found:
        value = float(term.sign)
        for op, by in term.factors:
            value = value * by.value if op == "mul" else value / by.value
        values[term.core.name] = values.get(term.core.name, 0.0) + value
    assert values == {"x": 512.0, "y": -257.0} and len(found) == 3


def test_facts_are_not_weaker() -> None:
    """Twenty levels of a convex function: it is solved with a proved gap, as without them."""
    levels = " ".join(f"let a{k} = 0.5 * a{k - 1} + 0.5 * a{k - 1};" for k in range(1, 21))
    found = fccomodel.compile(f"var x; let a0 = exp(x) - x; {levels} minimize a20;").bind().solve(seed=0)
    assert found.objective == pytest.approx(1.0, abs=1e-6)
    assert found.report.verdict.startswith("Solved to high accuracy"), found.report.verdict
