"""Which problems are known to have a minimum: of others a finish looks for directions in which they
fall for ever."""

from __future__ import annotations

import numpy as np
import pytest

import fccomodel as fc

MODEL = """
dim d;
set G;
data D : table(x: real[d], y: {{-1, 1}}, g: G);
param mu >= 0 default 0.1;
{variables}
minimize {objective};
"""
LOSS = "log1pexp(-z.y * dot(w, z.x))"


@pytest.mark.parametrize(
    ("variables", "objective", "known"),
    [
        ("var w[d];", f"E[z ~ D] {LOSS}", False),
        ("var w[d];", f"E[z ~ D] {LOSS} + mu * sumsq(w)", True),
        ("var w[d];", f"cvar(tail = 0.5)[k in G] (E[z ~ D | z.g == k] {LOSS}) + mu * sumsq(w)", True),
        ("var w[d] in simplex(d);", f"E[z ~ D] {LOSS}", True),
        ("var w[d];\nvar b;", "E[z ~ D] log1pexp(-z.y * (dot(w, z.x) + b)) + mu * sumsq(w)", False),
        (
            "var w[d];\nvar b >= -1, <= 1;",
            "E[z ~ D] log1pexp(-z.y * (dot(w, z.x) + b)) + mu * sumsq(w)",
            True,
        ),
        ("var w[d];", "E[z ~ D] sigmoid(-z.y * dot(w, z.x)) + mu * sumsq(w)", False),
    ],
)
def test_what_has_a_minimum(variables, objective, known):
    rng = np.random.default_rng(0)
    rows = {"x": rng.normal(size=(20, 3)), "y": rng.choice([-1, 1], 20), "g": rng.choice(["a", "b"], 20)}
    bound = fc.compile(MODEL.format(variables=variables, objective=objective)).bind(D=rows)
    assert bound.plan().plan.attained is known
