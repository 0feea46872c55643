"""Matrix variables whose rows lie in a simplex each."""

import cvxpy as cp
import numpy as np
import pytest

import fccomodel
from fccomodel.core.diagnostics import FccoError

RANDOM = np.random.default_rng(4)
X = RANDOM.normal(size=(150, 4))
Y = X @ RANDOM.normal(size=4) + RANDOM.normal(size=150)
K = RANDOM.integers(1, 4, 150)
HEAD = "model m; dim d; set K = 1 .. 3 by 1; data D : table(x: real[d], y: real, k: K);\n"
MODEL = """var W[K, d] in {};
minimize f: sum[k in K] E[z ~ D | z.k == k] square(dot(W[k], z.x) - z.y);
subject to c[k in K]: E[z ~ D | z.k == k] dot(W[k], z.x) <= 0.05;
"""


@pytest.mark.parametrize(("family", "cap"), [("simplex(d)", 1.0), ("capped_simplex(d, 0.5)", 0.5)])
def test_the_optimum(family, cap):
    found = (
        fccomodel.compile(HEAD + MODEL.format(family))
        .bind(data={"D": {"x": X, "y": Y, "k": K}})
        .solve(seed=0, budget="60s")
    )
    best = 0.0
    for k in (1, 2, 3):
        w, x, y = cp.Variable(4), X[K == k], Y[K == k]
        inside = [w >= 0, w <= cap, cp.sum(w) == 1, cp.sum(x @ w) / len(y) <= 0.05]
        best += cp.Problem(cp.Minimize(cp.sum_squares(x @ w - y) / len(y)), inside).solve(solver="CLARABEL")
    assert found.objective == pytest.approx(best, rel=1e-6) and found.report.epsilon <= 1e-5
    assert found.report.gap.value <= 1e-4


def test_the_last_axis_counts():
    with pytest.raises(FccoError, match=r"(?s)F0301.*matrix \[K, d\].*simplex\(d\)"):
        fccomodel.compile(HEAD + "var W[K, d] in simplex(K); minimize f: sumsq(W);")
