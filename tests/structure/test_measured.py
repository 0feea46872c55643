"""Numbers that only the data decide: their sign is that of their values, not of intervals of their parts."""

from __future__ import annotations

import numpy as np
import pytest

import fccomodel
from fccomodel.core import ir
from fccomodel.structure import analyse

HEAD = """set B; data D : table(x: real, y: real, d: real[B]); data price : real[B]; data cost : real[B]; param a; param b;
set P = {z in D | z.x > 2}; var q[B]; var t; """
DATA = {
    "D": {"x": np.array([1.0, 5.0, 9.0]), "y": np.array([0.5, 4.0, 8.5]), "d": np.array([[1.0, 2.0]] * 3)},
    "price": np.array([3.0, 0.8]),
    "cost": np.array([1.0, 0.3]),
}
CONVEX = {
    "sum[k in B] (price[k] - cost[k]) * pos(q[k])": True,
    "sum[k in B] (cost[k] - price[k]) * pos(q[k])": False,
    "sum[k in B] sum[j in B] (price[k] - cost[j]) * pos(q[k])": False,
    "E[z ~ D] (z.x - z.y) * square(t - z.x)": True,
    "E[z ~ P] (z.x - 4) * square(t - z.x)": True,
    "E[z ~ D] (z.x - 4) * square(t - z.x)": False,
    "(a - b) * square(t)": True,
    "E[u ~ normal(0, 1)] (u * u - u + 1) * square(t)": False,
}


@pytest.mark.parametrize("text", CONVEX)
def test_signs_of_differences_of_data(text):
    model = fccomodel.compile(f"{HEAD} minimize {text} + sumsq(q) * 0 + 0 * t;")
    bound = model.bind(data=DATA, params={"a": 2.0, "b": 1.5}, spec={"sets": {"B": ["r", "w"]}}).bound
    found = analyse(bound.problem, bound).objective
    assert found.convex is CONVEX[text]


def test_the_range_is_that_of_the_values():
    bound = (
        fccomodel.compile(f"{HEAD} minimize t^2 * (E[z ~ D] (z.x - z.y) * z.x) + sumsq(q);")
        .bind(data=DATA, params={"a": 2.0, "b": 1.5}, spec={"sets": {"B": ["r", "w"]}})
        .bound
    )
    analysis = analyse(bound.problem, bound)
    (difference,) = [
        n for n in ir.walk(bound.problem.objective.expr) if isinstance(n, ir.Apply) and n.op == "sub"
    ]
    where = analysis.see(difference).interval.value
    assert (where.lo, where.hi) == (0.5, 1.0)
