"""Families of constraints without members ask for nothing."""

from __future__ import annotations

import numpy as np
import pytest

import fccomodel

TABLE = "data D : table(x: real[2], t: real); param p default 100; var w[2];"
DATA = {"x": np.ones((5, 2)), "t": np.arange(5.0)}


@pytest.mark.parametrize(
    "body", ["dot(w, z.x) >= z.t", "dot(w, z.x)^2 <= z.t", "E[u ~ D] exp(dot(w, z.x - u.x)) <= 2"]
)
def test_an_empty_family(body: str) -> None:
    text = f"{TABLE} minimize sumsq(w - 1); subject to c[z in D | z.t > p]: {body};"
    bound = fccomodel.compile(text).bind(D=DATA)
    assert str(bound.explain())
    result = bound.solve(seed=0, budget="2s")
    assert result.report.solved and result.objective == pytest.approx(0, abs=1e-8)
    assert any("`c` has no members" in note for note in bound.plan(budget="2s").bound.notes)


def test_a_family_that_other_params_fill() -> None:
    bound = fccomodel.compile(
        f"{TABLE} minimize sumsq(w - 1); subject to c[z in D | z.t > p]: dot(w, z.x) >= z.t;"
    ).bind(D=DATA)
    assert bound.solve(seed=0, budget="2s").objective == pytest.approx(0, abs=1e-8)
    assert bound.with_params(p=3).solve(seed=0, budget="2s").objective == pytest.approx(2, abs=1e-4)
