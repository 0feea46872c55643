"""Other params for a model that has its data."""

from __future__ import annotations

import numpy as np
import pytest

import fccomodel as fc
from fccomodel.core.diagnostics import FccoError


def centre() -> fc.Model:
    m = fc.Model("centre")
    m.n, m.a = fc.param(ge=1, default=2), fc.param(ge=0, default=1)
    m.b = fc.param(default=2 * m.n)
    m.K = fc.grid(1, m.n)
    m.D, m.t = fc.table(x=fc.real), fc.var(m.K)
    m.minimize(fc.sum(fc.E((z.x - m.a * m.t[k]) ** 2 for z in m.D) for k in m.K) + m.b * m.t[1])
    return m


def test_only_the_number_changes():
    problem = centre().bind(D={"x": [1.0, 2.0, 4.0]})
    other = problem.with_params(a=3)
    assert other.bound.tables is problem.bound.tables and float(other.bound.params["a"]) == 3
    assert float(problem.bound.params["a"]) == 1 and other.binding.params["a"] == 3
    afresh = centre().bind(D={"x": [1.0, 2.0, 4.0]}, a=3)
    one, two = (p.solve(budget="500it") for p in (other, afresh))
    assert one.objective == two.objective and (one.variables["t"] == two.variables["t"]).all()


def test_what_decides_sizes_and_other_params_is_bound_again():
    problem = centre().bind(D={"x": [1.0, 2.0, 4.0]})
    other = problem.with_params(n=3)
    assert other.bound.dims["K"] == 3 and float(other.bound.params["b"]) == 6


@pytest.mark.parametrize(
    ("given", "code"),
    [({"a": -1}, "F0520"), ({"a": "x"}, "F0520"), ({"u": 1}, "F0518"), ({"a": np.inf}, "F0520")],
)
def test_what_is_refused(given, code):
    problem = centre().bind(D={"x": [1.0, 2.0, 4.0]})
    with pytest.raises(FccoError, match=code):
        problem.with_params(**given)
