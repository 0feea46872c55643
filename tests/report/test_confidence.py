"""Confidence intervals on a sample of rows: against the delete-one formulas, and by their coverage."""

import numpy as np
import pytest
from test_kkt import D, N, X, Y, bound

import fccomodel
from fccomodel.report.confidence import _student, intervals

MEAN = 'var w[d]; minimize E[z ~ D] z.y * sum(w); subject to a: E[z ~ D | z.g == "a"] z.y * sum(w) <= 9; e: E[z ~ D] z.y == 0;'


def many(n, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, D))
    return {"data": {"D": {"x": x, "y": x[:, 0] + 0.3 * random.normal(size=n), "g": np.array(["a", "b", "c"])[np.arange(n) % 3]}}}


def test_a_mean_has_its_standard_error():
    data = many(4000)
    y, g = data["data"]["D"]["y"], data["data"]["D"]["g"]
    found = intervals(bound(MEAN, **data), {"w": np.array([1.0, 0, 0, 0])})
    assert found.groups == 20 and found.objective.value == pytest.approx(y.mean())
    assert found.objective.half == pytest.approx(_student(0.975, 19) * y.std() / 4000**0.5, rel=0.4)
    own = y[g == "a"]
    assert found.constraints["a"].half == pytest.approx(_student(0.975, 19) * own.std() / len(own) ** 0.5, rel=0.4)
    assert found.constraints["a"].holds is True


def test_what_is_said_of_a_constraint_is_what_its_interval_says():
    """A one-sided test may not contradict the interval shown."""
    data = many(900)
    y = data["data"]["D"]["y"]
    half = intervals(bound("var w[d]; minimize E[z ~ D] z.y * w[1];", **data), {"w": np.eye(D)[0]}).objective.half
    for shift in (-1.1, -0.95, 0.95, 1.1):
        text = f"var w[d]; minimize sumsq(w); subject to c: E[z ~ D] z.y * w[1] <= {float(y.mean() - shift * half)!r};"
        found = intervals(bound(text, **data), {"w": np.eye(D)[0]}).constraints["c"]
        assert found.holds is {-1.1: True, 1.1: False}.get(shift)


def test_student_quantiles():
    stats = pytest.importorskip("scipy.stats")
    for freedom in (7, 12, 39):
        for share in (0.95, 0.975):
            assert _student(share, freedom) == pytest.approx(stats.t.ppf(share, freedom), rel=1e-3)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    text = "var w[d]; minimize sqrt(E[z ~ D] square(z.y)) / (1 + E[z ~ D] square(dot(w, z.x)));"  # a ratio of means
    w, truth, hits = np.array([1.0, 0, 0, 0]), 1.09**0.5 / 2, 0
    for seed in range(60):
        own = intervals(bound(text, **many(300, seed)), {"w": w}).objective
        hits += abs(own.value - truth) <= own.half
    assert 50 <= hits <= 60


def test_what_the_rows_can_tell():
    data = many(900)
    for limit, holds in ((0.3, True), (-0.3, False), (0.01, None)):
        text = f"var w[d]; minimize sumsq(w); subject to c: E[z ~ D] z.y * sum(w) <= {limit} + {data['data']['D']['y'].mean()};"
        assert intervals(bound(text, **data), {"w": np.array([1.0, 0, 0, 0])}).constraints["c"].holds is holds


def test_where_there_are_none_it_says_why():
    drawn = intervals(bound("var w[d]; minimize sumsq(w);"), {"w": np.ones(D)})
    assert drawn.why == "nothing is averaged over rows" and np.isnan(drawn.objective.half)
    few = {"data": {"D": {"x": X[:9], "y": Y[:9], "g": np.array(list("abcabcabc"))}}}
    assert "has 9 rows" in intervals(bound("var w[d]; minimize E[z ~ D] z.y * w[1];", **few), {"w": np.ones(D)}).why


def test_rows_held_out_of_a_solve():
    split = np.where(np.arange(N) < 40, "train", "test")
    model = fccomodel.compile(
        "model m; dim d; data D : table(x: real[d], y: real); var w[d]; let size = E[z ~ D] square(dot(w, z.x));"
        "minimize E[z ~ D] square(dot(w, z.x) - z.y); subject to small: E[z ~ D] square(dot(w, z.x)) <= 0.5;"
    )
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({f"x{k}": X[:, k] for k in range(D)} | {"y": Y, "split": split})
    made = model.bind(spec={"D": {"x": {"columns": [f"x{k}" for k in range(D)]}}}, D=frame)
    result = made.solve(budget="2000it", holdout="split == 'test'", sensitivity=True, show=["size"])
    w, held = result.variables["w"], split == "test"
    assert result.objective == pytest.approx(np.mean((X[~held] @ w - Y[~held]) ** 2))
    assert result.heldout.objective.value == pytest.approx(np.mean((X[held] @ w - Y[held]) ** 2))
    assert result.heldout.constraints["small"].value == pytest.approx(np.mean((X[held] @ w) ** 2) - 0.5)
    text = str(result)
    assert "held out: split == 'test'" in text and "± (95%)" in text and "if moved" in text
    assert "of the rows solved on" in text and "rows solved on" not in str(made.solve(budget="200it", show=["size"]))
    record = result.json
    assert record["heldout"]["objective"]["half"] > 0 and record["sensitivity"]["objective"]["small"] < 0
